//! Verifying keys under which proofs prove nothing.
//!
//! Groth16 is sound for a key whose τ, α, β, γ and δ were drawn independently and forgotten. Whether
//! they were forgotten no check of a key can tell. This module finds keys for which nobody has to know
//! them: with any two of β, γ and δ equal or opposite in the second group, or one of the elements at
//! infinity, the verification equation `e(A, B) = e(α, β) · e(I, γ) · e(C, δ)` has solutions that
//! follow from the key alone, for any public inputs (I is their point):
//!
//! | key | A, B, C |
//! |---|---|
//! | γ = δ | α, β, −I |
//! | γ = β | α + I, β, ∞ |
//! | β = δ | I, γ, −α |
//! | α or β at infinity | I, γ, ∞ |
//! | γ at infinity | α, β, ∞ |
//!
//! γ = δ is what `snarkjs groth16 setup` writes before the first contribution to the second phase, and
//! γ = β what it writes for powers of tau that nobody contributed to.

use std::fmt;

use ark_ec::AffineRepr;

use crate::{Engine, VerifyingKey};

/// An element of a verifying key beside the points of its public inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyElement {
    /// α, in the first group.
    Alpha,
    /// β, in the second group.
    Beta,
    /// γ, in the second group.
    Gamma,
    /// δ, in the second group.
    Delta,
}

/// A reason why proofs under a verifying key prove nothing. No key of an honest setup has one, but
/// with negligible probability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Weakness {
    /// The element is the point at infinity.
    Infinity(KeyElement),
    /// Two elements of the second group are equal, or each other's negation.
    Related(KeyElement, KeyElement),
    /// Points of public inputs (IC) are at infinity: a proof holds whatever these inputs are.
    UnboundInputs {
        /// The first such point; 0 is that of the leading one.
        first: usize,
        /// The number of such points.
        count: usize,
    },
    /// There is no point at all for public inputs, not even that of the leading one.
    NoInputPoints,
}

/// A verifying key under which proofs prove nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InsecureKey(Vec<Weakness>);

// === impl VerifyingKey ===

impl<E: Engine> VerifyingKey<E> {
    /// The reasons why proofs under this key prove nothing; none for the key of an honest setup. That
    /// there are none does not mean that the setup was honest.
    pub fn weaknesses(&self) -> Vec<Weakness> {
        use KeyElement::{Alpha, Beta, Delta, Gamma};
        let mut found = Vec::new();
        if self.alpha_g1.is_zero() {
            found.push(Weakness::Infinity(Alpha));
        }
        let second = [
            (Beta, self.beta_g2),
            (Gamma, self.gamma_g2),
            (Delta, self.delta_g2),
        ];
        let infinite = second.iter().filter(|(_, point)| point.is_zero());
        found.extend(infinite.map(|(element, _)| Weakness::Infinity(*element)));
        for (i, (left, point)) in second.iter().enumerate() {
            let related = second[i + 1..]
                .iter()
                .filter(|(_, other)| !point.is_zero() && (point == other || *point == -*other));
            found.extend(related.map(|(right, _)| Weakness::Related(*left, *right)));
        }
        let mut unbound = (0..self.instance.len()).filter(|i| self.instance[*i].is_zero());
        if let Some(first) = unbound.next() {
            let count = 1 + unbound.count();
            found.push(Weakness::UnboundInputs { first, count });
        }
        if self.instance.is_empty() {
            found.push(Weakness::NoInputPoints);
        }
        found
    }

    /// That no weakness is known of this key.
    ///
    /// # Errors
    ///
    /// [`InsecureKey`] with the [`weaknesses`](Self::weaknesses).
    pub fn require_secure(&self) -> Result<(), InsecureKey> {
        match self.weaknesses() {
            found if found.is_empty() => Ok(()),
            found => Err(InsecureKey(found)),
        }
    }
}

// === impl InsecureKey ===

impl InsecureKey {
    /// The weaknesses, at least one.
    pub fn weaknesses(&self) -> &[Weakness] {
        &self.0
    }
}

impl fmt::Display for InsecureKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("insecure key, under which proofs prove nothing: ")?;
        for (i, weakness) in self.0.iter().enumerate() {
            let separator = if i == 0 { "" } else { "; " };
            write!(f, "{separator}{weakness}")?;
        }
        Ok(())
    }
}

impl std::error::Error for InsecureKey {}

impl fmt::Display for Weakness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use KeyElement::{Beta, Delta, Gamma};
        match self {
            Self::Infinity(element) => write!(f, "{element} is the point at infinity"),
            Self::Related(left, right) => {
                write!(f, "{left} and {right} are equal or opposite")?;
                match (left, right) {
                    (Gamma, Delta) => f.write_str(" (nobody contributed to the second phase)"),
                    (Beta, Gamma) => f.write_str(" (nobody contributed to the powers of tau)"),
                    _ => Ok(()),
                }
            }
            Self::UnboundInputs { first, count: 1 } => write!(
                f,
                "the public-input point IC[{first}] is the point at infinity"
            ),
            Self::UnboundInputs { first, count } => write!(
                f,
                "{count} public-input points, the first of them IC[{first}], are the point at infinity"
            ),
            Self::NoInputPoints => f.write_str("there are no public-input points (IC)"),
        }
    }
}

// === impl KeyElement ===

impl fmt::Display for KeyElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Alpha => "alpha",
            Self::Beta => "beta",
            Self::Gamma => "gamma",
            Self::Delta => "delta",
        })
    }
}

#[cfg(test)]
mod tests {
    use ark_ec::{AffineRepr, CurveGroup};
    use ark_ff::{UniformRand, Zero};
    use ark_std::rand::{SeedableRng, rngs::StdRng};

    use super::{KeyElement, Weakness};
    use crate::{Bls12_381, Bn254, Engine, PreparedVerifyingKey, Proof, VerifyingKey, verify};

    fn random<E: Engine>(rng: &mut StdRng) -> VerifyingKey<E> {
        let g2 = |rng: &mut StdRng| E::G2::rand(rng).into_affine();
        VerifyingKey {
            circuit: [0; 32],
            alpha_g1: E::G1::rand(rng).into_affine(),
            beta_g2: g2(rng),
            gamma_g2: g2(rng),
            delta_g2: g2(rng),
            instance: (0..4).map(|_| E::G1::rand(rng).into_affine()).collect(),
        }
    }

    /// The point of inputs.
    fn point<E: Engine>(key: &VerifyingKey<E>, inputs: &[E::ScalarField]) -> E::G1 {
        let terms = key.instance[1..].iter().zip(inputs);
        terms.fold(key.instance[0].into_group(), |sum, (point, input)| {
            sum + *point * input
        })
    }

    /// That a key is found to have `weakness`, and that the proof that follows from the key alone
    /// holds for inputs nobody proved.
    fn forged<E: Engine>(
        key: &VerifyingKey<E>,
        weakness: Weakness,
        proof: impl Fn(&VerifyingKey<E>, E::G1) -> (E::G1, E::G2Affine, E::G1),
    ) {
        let rng = &mut StdRng::seed_from_u64(3);
        let inputs: Vec<_> = (1..key.instance.len())
            .map(|_| E::ScalarField::rand(rng))
            .collect();
        let (a, b, c) = proof(key, point(key, &inputs));
        let (a, c) = (a.into_affine(), c.into_affine());
        let prepared = PreparedVerifyingKey::from(key.clone());
        verify(&prepared, &inputs, &Proof { a, b, c }).unwrap();
        assert_eq!(key.weaknesses(), [weakness], "{weakness}");
        let refused = key.require_secure().unwrap_err();
        assert!(refused.to_string().contains(&weakness.to_string()));
    }

    fn forgeries<E: Engine>() {
        use KeyElement::{Alpha, Beta, Delta, Gamma};
        let rng = &mut StdRng::seed_from_u64(1);
        let sound = random::<E>(rng);
        assert_eq!(sound.weaknesses(), []);
        sound.require_secure().unwrap();
        let zero = E::G1::zero;
        let changed = |change: fn(&mut VerifyingKey<E>)| {
            let mut key = sound.clone();
            change(&mut key);
            key
        };

        let key = changed(|key| key.delta_g2 = key.gamma_g2);
        forged(&key, Weakness::Related(Gamma, Delta), |key, i| {
            (key.alpha_g1.into(), key.beta_g2, -i)
        });
        let key = changed(|key| key.delta_g2 = -key.gamma_g2);
        forged(&key, Weakness::Related(Gamma, Delta), |key, i| {
            (key.alpha_g1.into(), key.beta_g2, i)
        });
        let key = changed(|key| key.beta_g2 = key.gamma_g2);
        forged(&key, Weakness::Related(Beta, Gamma), |key, i| {
            (i + key.alpha_g1, key.beta_g2, zero())
        });
        let key = changed(|key| key.beta_g2 = key.delta_g2);
        forged(&key, Weakness::Related(Beta, Delta), |key, i| {
            (i, key.gamma_g2, -key.alpha_g1.into_group())
        });
        let key = changed(|key| key.alpha_g1 = E::G1Affine::zero());
        forged(&key, Weakness::Infinity(Alpha), |key, i| {
            (i, key.gamma_g2, zero())
        });
        let key = changed(|key| key.beta_g2 = E::G2Affine::zero());
        forged(&key, Weakness::Infinity(Beta), |key, i| {
            (i, key.gamma_g2, zero())
        });
        let key = changed(|key| key.gamma_g2 = E::G2Affine::zero());
        forged(&key, Weakness::Infinity(Gamma), |key, _| {
            (key.alpha_g1.into(), key.beta_g2, zero())
        });
    }

    #[test]
    fn forged_proofs_hold_under_degenerate_keys_and_the_keys_are_named() {
        forgeries::<Bn254>();
        forgeries::<Bls12_381>();
    }

    #[test]
    fn points_at_infinity_bind_nothing_and_are_counted() {
        let rng = &mut StdRng::seed_from_u64(2);
        let mut key = random::<Bn254>(rng);
        key.delta_g2 = AffineRepr::zero();
        key.instance[2] = AffineRepr::zero();
        key.instance[3] = AffineRepr::zero();
        let expected = [
            Weakness::Infinity(KeyElement::Delta),
            Weakness::UnboundInputs { first: 2, count: 2 },
        ];
        assert_eq!(key.weaknesses(), expected);
        let said = key.require_secure().unwrap_err().to_string();
        assert_eq!(
            said,
            "insecure key, under which proofs prove nothing: delta is the point at infinity; 2 \
             public-input points, the first of them IC[2], are the point at infinity"
        );
        // Two that are both at infinity are not called equal.
        key.gamma_g2 = AffineRepr::zero();
        assert_eq!(key.weaknesses().len(), 3);
        key.instance.clear();
        assert_eq!(key.weaknesses().last(), Some(&Weakness::NoInputPoints));
    }
}
