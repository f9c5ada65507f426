//! Tests of points of a curve for membership in the subgroup of prime order.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use ark_ec::bls12::Bls12Config;
use ark_ec::bn::BnConfig;
use ark_ec::short_weierstrass::{Affine, Projective, SWCurveConfig};
use ark_ec::{AdditiveGroup, AffineRepr, CurveGroup};
use ark_ff::Field;
use rayon::prelude::*;

use crate::{InstructionSet, MsmGroup};

/// Points of a task.
const CHUNK: usize = 64;

/// Whether each point, which is on the curve or infinite, is in the subgroup of prime order. On all
/// threads of the current rayon pool.
///
/// Never wrong: no randomness is involved. A point of small order takes as long as arkworks' test.
pub fn in_subgroup_each<G: MsmGroup>(points: &[G::Affine]) -> Vec<bool> {
    in_subgroup_each_on::<G>(InstructionSet::current(), points)
}

/// Like [`in_subgroup_each`], on a chosen back end.
///
/// # Panics
///
/// If this machine lacks the instructions.
pub fn in_subgroup_each_on<G: MsmGroup>(set: InstructionSet, points: &[G::Affine]) -> Vec<bool> {
    points
        .par_chunks(CHUNK)
        .flat_map_iter(|points| G::in_subgroup_each_here(set, points))
        .collect()
}

/// The test for membership in the subgroup of prime order, by an endomorphism of the curve (El Housni,
/// Guillevic and Piellard, eprint.iacr.org/2022/352 and 2022/348). With u the parameter of the curve in its
/// family:
///
/// * First groups of BLS12 curves, k = u², the endomorphism φ of order three with a sign: from −φ(P) =
///   u²·P and φ² + φ + 1 = 0 follows (u⁴ − u² + 1)·P = 0, and that number is the order r.
/// * Second groups of BLS12 curves, k = |u|, the endomorphism ψ from Frobenius' with a sign: from
///   ψ(P) = u·P and ψ² − (u + 1)·ψ + p = 0 follows (p − u)·P = 0, where p − u = r·(u − 1)²/3, which has
///   no factor but r in common with the order of the curve.
/// * Second groups of BN curves, see [`Self::BnTwist`]: from g(ψ)(P) = 0 follows N(g)·P = 0, where N is the norm of
///   ℤ\[ψ\], ψ² − (6·u² + 1)·ψ + p = 0. N(g) has no factor but r in common with the order of the curve, and only
///   once, and g(6·u²), by which g(ψ) multiplies in the subgroup, is zero modulo r.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Criterion {
    /// All points of the curve are in the subgroup.
    WholeCurve,
    /// k·P is the image of P under an endomorphism `(x, y) ↦ (a·x^p, b·y^p)`.
    Multiple(u128),
    /// (u + 1)·P + ψ(u·P) + ψ²(u·P) = ψ³(2·u·P): half the doublings of ψ(P) = 6·u²·P.
    BnTwist(u64),
}

/// The endomorphism `(x, y) ↦ (a·x^p, b·y^p)` that multiplies by a number in the subgroup.
#[derive(Clone, Copy)]
pub(crate) struct Endomorphism<F> {
    a: F,
    b: F,
}

/// The same by scalar arithmetic, on this thread.
pub(crate) fn portable<P: SWCurveConfig>(criterion: Criterion, points: &[Affine<P>]) -> Vec<bool> {
    match criterion {
        Criterion::BnTwist(u) => {
            let psi = criterion.endomorphism::<P>();
            let test = |point: &Affine<P>| psi.is_on_twist_subgroup(point, point.mul_bigint([u]));
            points.iter().map(test).collect()
        }
        // Arkworks tests the others by their endomorphisms, too.
        _ => points.iter().map(is_in_subgroup).collect(),
    }
}

pub(crate) fn is_in_subgroup<P: SWCurveConfig>(point: &Affine<P>) -> bool {
    P::cofactor_is_one() || point.is_in_correct_subgroup_assuming_on_curve()
}

// === impl Criterion ===

impl Criterion {
    pub(crate) const fn of_bls12_g1<C: Bls12Config>() -> Self {
        let u = C::X[0] as u128;
        Self::Multiple(u * u)
    }

    pub(crate) const fn of_bls12_g2<C: Bls12Config>() -> Self {
        Self::Multiple(C::X[0] as u128)
    }

    pub(crate) const fn of_bn_g2<C: BnConfig>() -> Self {
        assert!(!C::X_IS_NEGATIVE, "the criterion is for a positive u");
        Self::BnTwist(C::X[0])
    }

    /// The number that the endomorphism multiplies by in the subgroup.
    const fn eigenvalue(self) -> u128 {
        match self {
            Self::WholeCurve => 1,
            Self::Multiple(number) => number,
            Self::BnTwist(u) => 6 * (u as u128) * (u as u128),
        }
    }

    /// The endomorphism, determined by its image of the generator; computed once for each curve.
    pub(crate) fn endomorphism<P: SWCurveConfig>(self) -> Endomorphism<P::BaseField> {
        static KNOWN: Mutex<Option<HashMap<TypeId, Box<dyn Any + Send>>>> = Mutex::new(None);
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.get_or_insert_default();
        let found = known.entry(TypeId::of::<P>()).or_insert_with(|| {
            let generator = P::GENERATOR;
            let number = self.eigenvalue();
            let words = [number as u64, (number >> 64) as u64];
            let image = generator.mul_bigint(words).into_affine();
            let quotient = |image: P::BaseField, of: P::BaseField| {
                let of = of.frobenius_map(1);
                image
                    * of.inverse()
                        .expect("a generator's coordinates are not zero")
            };
            Box::new(Endomorphism {
                a: quotient(image.x, generator.x),
                b: quotient(image.y, generator.y),
            })
        });
        *found.downcast_ref().expect("the curve has one base field")
    }
}

// === impl Endomorphism ===

impl<F: Field> Endomorphism<F> {
    /// Whether it maps `point` to this finite point in Jacobian coordinates.
    pub(crate) fn maps<P: SWCurveConfig<BaseField = F>>(
        &self,
        point: &Affine<P>,
        [x, y, z]: [F; 3],
    ) -> bool {
        let square = z.square();
        self.a * point.x.frobenius_map(1) * square == x
            && self.b * point.y.frobenius_map(1) * square * z == y
    }

    /// [`Criterion::BnTwist`] of a point and its multiple by u. Sums are arkworks', which are right for equal and
    /// opposite points as well.
    pub(crate) fn is_on_twist_subgroup<P: SWCurveConfig<BaseField = F>>(
        &self,
        point: &Affine<P>,
        multiple: Projective<P>,
    ) -> bool {
        let first = self.image(&multiple);
        let second = self.image(&first);
        let third = self.image(&second);
        multiple + point + first + second == third.double()
    }

    /// The image of a point in Jacobian coordinates: an automorphism of the field maps Z as well.
    fn image<P: SWCurveConfig<BaseField = F>>(&self, point: &Projective<P>) -> Projective<P> {
        Projective::new_unchecked(
            self.a * point.x.frobenius_map(1),
            self.b * point.y.frobenius_map(1),
            point.z.frobenius_map(1),
        )
    }
}

#[cfg(test)]
mod tests {
    use ark_ec::CurveConfig;
    use ark_ec::bls12::Bls12Config;
    use ark_ec::bn::BnConfig;
    use ark_ff::PrimeField;
    use num_bigint::{BigInt, BigUint};
    use num_integer::Integer;

    fn number(words: &[u64]) -> BigUint {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        BigUint::from_bytes_le(&bytes)
    }

    /// Checks the premise of the test for second groups of BLS12 curves: (u − 1)²/3 and the cofactor have no
    /// common factor.
    fn only_the_order_is_common<C: Bls12Config>(cofactor: &[u64]) {
        let u = number(C::X);
        let one = BigUint::from(1u8);
        let less_one = if C::X_IS_NEGATIVE { u + &one } else { u - &one };
        let (first_cofactor, rest) = (&less_one * &less_one).div_rem(&BigUint::from(3u8));
        assert_eq!(rest, BigUint::ZERO);
        assert_eq!(number(cofactor).gcd(&first_cofactor), one);
    }

    #[test]
    fn cofactors_have_no_common_factor() {
        only_the_order_is_common::<ark_bls12_381::Config>(ark_bls12_381::g2::Config::COFACTOR);
        only_the_order_is_common::<ark_bls12_377::Config>(ark_bls12_377::g2::Config::COFACTOR);
    }

    /// The premise of the test for the second group of BN254, with g(ψ) = (u + 1) + u·ψ + u·ψ² − 2u·ψ³.
    #[test]
    fn the_norm_of_the_twists_polynomial_has_the_order_once() {
        type C = ark_bn254::Config;
        let u = BigInt::from(C::X[0]);
        let r = BigInt::from(BigUint::from(ark_bn254::Fr::MODULUS));
        let p = BigInt::from(BigUint::from(ark_bn254::Fq::MODULUS));
        let cofactor = BigInt::from(number(ark_bn254::g2::Config::COFACTOR));
        let t: BigInt = BigInt::from(6) * &u * &u + 1;
        assert_eq!(&r, &(&p + 1 - &t), "the trace of the curve");

        // ψ multiplies by p, which is 6u² modulo r.
        let eigenvalue: BigInt = &t - 1;
        let difference: BigInt = &p - &eigenvalue;
        assert_eq!(difference.mod_floor(&r), BigInt::ZERO);
        let twice_cubed = BigInt::from(2) * &u * eigenvalue.pow(3);
        let g: BigInt = &u + 1 + &u * &eigenvalue + &u * eigenvalue.pow(2) - twice_cubed;
        assert_eq!(g.mod_floor(&r), BigInt::ZERO);

        // ψ² = t·ψ − p and ψ³ = (t² − p)·ψ − t·p: g(ψ) = a + b·ψ, whose norm is a² + a·b·t + b²·p.
        let a: BigInt = &u + 1 - &u * &p + BigInt::from(2) * &u * &t * &p;
        let b: BigInt = &u + &u * &t - BigInt::from(2) * &u * (&t * &t - &p);
        let norm: BigInt = &a * &a + &a * &b * &t + &b * &b * &p;
        assert_eq!(norm.gcd(&(&r * &cofactor)), r);
        assert_ne!(cofactor.mod_floor(&r), BigInt::ZERO);
    }
}
