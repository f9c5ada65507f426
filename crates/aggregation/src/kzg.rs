//! Openings of the folded commitment keys ("Proofs for Inner Pairing Products and Applications",
//! eprint.iacr.org/2019/1177, section 5.2; SnarkPack, section 4.2).
//!
//! After all rounds a key of powers is one point, f(a)·H for a polynomial with the challenges in it that
//! anybody can evaluate with few multiplications. The prover opens it as a commitment to f (Kate,
//! Zaverucha and Goldberg, ASIACRYPT 2010) at a challenge z.

use ark_ff::Field;
use proofmill_kernels::{MsmGroup, msm};

/// Π (1 + yᵢ·X^(2^i)), times X^shift.
#[derive(Clone, Debug)]
pub(crate) struct KeyPolynomial<F> {
    factors: Vec<F>,
    shift: usize,
}

/// Numbers that leave one remainder: `first`, `first` + `step`, `first` + 2·`step`, ….
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Residue {
    pub(crate) first: usize,
    pub(crate) step: usize,
}

// === impl Residue ===

impl Residue {
    /// All numbers.
    pub(crate) const ALL: Self = Self { first: 0, step: 1 };
}

// === impl KeyPolynomial ===

impl<F: Field> KeyPolynomial<F> {
    /// The polynomial of v: coefficient i is r⁻ⁱ times the challenges of those rounds in which element i
    /// was in the upper half. The first round halves by the highest bit of i.
    pub(crate) fn of_v(challenges: &[F], r_inverse: F) -> Self {
        let mut power = r_inverse;
        let factors = challenges.iter().rev().map(|challenge| {
            let factor = *challenge * power;
            power.square_in_place();
            factor
        });
        Self {
            factors: factors.collect(),
            shift: 0,
        }
    }

    /// The polynomial of w, whose upper halves are multiplied by the inverses of the challenges, and whose
    /// powers begin with `size`.
    pub(crate) fn of_w(inverses: &[F], size: usize) -> Self {
        Self {
            factors: inverses.iter().rev().copied().collect(),
            shift: size,
        }
    }

    pub(crate) fn evaluate(&self, z: F) -> F {
        let mut power = z;
        let mut value = z.pow([self.shift as u64]);
        for factor in &self.factors {
            value *= F::ONE + *factor * power;
            power.square_in_place();
        }
        value
    }

    pub(crate) fn coefficients(&self) -> Vec<F> {
        let mut coefficients = vec![F::ZERO; self.shift];
        coefficients.push(F::ONE);
        for factor in &self.factors {
            let upper: Vec<F> = coefficients[self.shift..]
                .iter()
                .map(|coefficient| *coefficient * factor)
                .collect();
            coefficients.extend(upper);
        }
        coefficients
    }

    /// The coefficients of (f − f(z))/(X − z).
    fn quotient(&self, z: F) -> Vec<F> {
        let mut quotient = self.coefficients();
        let mut carry = F::ZERO;
        for coefficient in quotient.iter_mut().rev() {
            let above = carry;
            carry = *coefficient + z * carry;
            *coefficient = above;
        }
        // The first remainder belongs to the highest coefficient, one place above the quotient's.
        quotient.pop();
        quotient
    }

    /// The opening at z, the quotient in the exponent, for each of the lists of powers: the sum over the powers of the
    /// residue class, which the lists have without those in between.
    pub(crate) fn open<G: MsmGroup<ScalarField = F>>(
        &self,
        powers: [&[G::Affine]; 2],
        z: F,
        residue: Residue,
    ) -> [G::Affine; 2] {
        let quotient = self.quotient(z).into_iter();
        let quotient: Vec<F> = quotient.skip(residue.first).step_by(residue.step).collect();
        powers.map(|powers| msm::<G>(&powers[..quotient.len()], &quotient).into_affine())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ark_bls12_381::Fr;
    use ark_ff::{One, UniformRand, Zero};
    use ark_std::rand::SeedableRng;
    use ark_std::rand::rngs::StdRng;

    fn horner(coefficients: &[Fr], z: Fr) -> Fr {
        coefficients
            .iter()
            .rev()
            .fold(Fr::zero(), |sum, coefficient| sum * z + coefficient)
    }

    #[test]
    fn coefficients_are_the_products_of_challenges() {
        let rng = &mut StdRng::seed_from_u64(1);
        let challenges = [(); 3].map(|()| Fr::rand(rng));
        let r = Fr::rand(rng);
        let r_inverse = r.inverse().unwrap();
        let v = KeyPolynomial::of_v(&challenges, r_inverse).coefficients();
        let w = KeyPolynomial::of_w(&challenges, 8).coefficients();
        assert_eq!((v.len(), w.len()), (8, 16));
        for i in 0..8 {
            let mut product = Fr::one();
            for (round, challenge) in challenges.iter().enumerate() {
                if i >> (2 - round) & 1 == 1 {
                    product *= challenge;
                }
            }
            assert_eq!(w[8 + i], product);
            assert!(w[i].is_zero());
            assert_eq!(v[i], product * r_inverse.pow([i as u64]));
        }
    }

    #[test]
    fn quotients_are_exact() {
        let rng = &mut StdRng::seed_from_u64(2);
        for rounds in 0..5 {
            let challenges: Vec<Fr> = (0..rounds).map(|_| Fr::rand(rng)).collect();
            let polynomials = [
                KeyPolynomial::of_v(&challenges, Fr::rand(rng)),
                KeyPolynomial::of_w(&challenges, 1 << rounds),
            ];
            for polynomial in polynomials {
                let (z, at) = (Fr::rand(rng), Fr::rand(rng));
                let value = polynomial.evaluate(z);
                assert_eq!(value, horner(&polynomial.coefficients(), z));
                let quotient = horner(&polynomial.quotient(z), at);
                assert_eq!(quotient * (at - z), polynomial.evaluate(at) - value);
            }
        }
    }
}
