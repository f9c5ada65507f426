//! Which points of a curve are in the subgroup of prime order.

use ark_ec::short_weierstrass::{Affine, SWCurveConfig};
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

/// As [`in_subgroup_each`], on a chosen back end.
///
/// # Panics
///
/// If this machine has not the instructions.
pub fn in_subgroup_each_on<G: MsmGroup>(set: InstructionSet, points: &[G::Affine]) -> Vec<bool> {
    points
        .par_chunks(CHUNK)
        .flat_map_iter(|points| G::in_subgroup_each_here(set, points))
        .collect()
}

/// By arkworks' arithmetic, on this thread.
pub(crate) fn portable<P: SWCurveConfig>(points: &[Affine<P>]) -> Vec<bool> {
    points.iter().map(is_in_subgroup).collect()
}

pub(crate) fn is_in_subgroup<P: SWCurveConfig>(point: &Affine<P>) -> bool {
    P::cofactor_is_one() || point.is_in_correct_subgroup_assuming_on_curve()
}

/// The numbers k by which membership is tested: a point P is in the subgroup exactly if k·P is what an
/// endomorphism `(x, y) ↦ (a·x^p, b·y^p)` makes of it (El Housni, Guillevic and Piellard,
/// eprint.iacr.org/2022/352).
///
/// With u the number that the curve's family has as its parameter:
/// * First groups of BLS12 curves, k = u², the endomorphism φ of order three with a sign: from −φ(P) =
///   u²·P and φ² + φ + 1 = 0 follows (u⁴ − u² + 1)·P = 0, and that number is the order r.
/// * Second groups of BLS12 curves, k = |u|, the endomorphism ψ from Frobenius' with a sign: from
///   ψ(P) = u·P and ψ² − (u + 1)·ψ + p = 0 follows (p − u)·P = 0, where p − u = r·(u − 1)²/3, which has
///   no factor but r in common with the order of the curve.
/// * Second groups of BN curves, k = 6·u²: in the same way (p + 1 − (6·u² + 1))·P = r·P = 0.
pub(crate) mod numbers {
    use ark_ec::bls12::Bls12Config;
    use ark_ec::bn::BnConfig;

    pub(crate) const fn of_bls12_g1<C: Bls12Config>() -> u128 {
        let u = C::X[0] as u128;
        u * u
    }

    pub(crate) const fn of_bls12_g2<C: Bls12Config>() -> u128 {
        C::X[0] as u128
    }

    pub(crate) const fn of_bn_g2<C: BnConfig>() -> u128 {
        let u = C::X[0] as u128;
        6 * u * u
    }
}

#[cfg(test)]
mod tests {
    use ark_ec::CurveConfig;
    use ark_ec::bls12::Bls12Config;
    use num_bigint::BigUint;
    use num_integer::Integer;

    fn number(words: &[u64]) -> BigUint {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        BigUint::from_bytes_le(&bytes)
    }

    /// What the test for second groups of BLS12 curves stands on.
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
}
