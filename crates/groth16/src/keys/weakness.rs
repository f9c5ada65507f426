//! Verifying keys under which proofs prove nothing.
//!
//! Groth16 is sound for a key whose τ, α, β, γ and δ were drawn independently and forgotten. No check of
//! a key can show that they were forgotten. This module finds keys for which proofs can be forged
//! without them: if any two of β, γ and δ are equal or opposite in the second group, or one of the elements
//! is at infinity, the verification equation `e(A, B) = e(α, β) · e(I, γ) · e(C, δ)` has solutions that
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
//! A key of [`mirage`](crate::mirage) also has η, for a commitment D that the prover may choose, in
//! `e(A, B) = e(α, β) · e(I, γ) · e(C, δ) · e(D, η)`:
//!
//! | key | A, B, C, D |
//! |---|---|
//! | γ = η | α, β, ∞, −I |
//! | β = η | I, γ, ∞, −α |
//! | δ = η | of a proof that holds, A, B, C − X, D + X for any X: it holds with any commitment |
//! | η at infinity | of a proof that holds, A, B, C and any D |
//!
//! `snarkjs groth16 setup` writes keys with γ = δ before the first contribution to the second phase, and
//! with γ = β for powers of tau without contributions.

use std::fmt;

use ark_ec::AffineRepr;

use crate::{SnarkCurve, VerifyingKey};

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
    /// η, in the second group: of a [`mirage`](crate::mirage) key only.
    Eta,
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

impl<E: SnarkCurve> VerifyingKey<E> {
    /// The reasons why proofs under this key prove nothing; empty for the key of an honest setup. An empty
    /// list does not mean that the setup was honest.
    pub fn weaknesses(&self) -> Vec<Weakness> {
        self.weaknesses_with(None)
    }

    /// Like [`weaknesses`](Self::weaknesses), and also compares `other`, one more element of the second group.
    pub(crate) fn weaknesses_with(
        &self,
        other: Option<(KeyElement, E::G2Affine)>,
    ) -> Vec<Weakness> {
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
        let second: Vec<_> = second.into_iter().chain(other).collect();
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

    /// Checks that this key has no known weakness.
    ///
    /// # Errors
    ///
    /// [`InsecureKey`] with the [`weaknesses`](Self::weaknesses).
    pub fn require_secure(&self) -> Result<(), InsecureKey> {
        InsecureKey::unless_empty(self.weaknesses())
    }
}

// === impl InsecureKey ===

impl InsecureKey {
    pub(crate) fn unless_empty(found: Vec<Weakness>) -> Result<(), Self> {
        match found.is_empty() {
            true => Ok(()),
            false => Err(Self(found)),
        }
    }

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
            Self::Eta => "eta",
        })
    }
}
