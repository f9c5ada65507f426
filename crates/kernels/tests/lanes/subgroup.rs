//! Tests for the subgroup of prime order against its definition, on every curve and back end.

use ark_ec::short_weierstrass::{Affine, Projective, SWCurveConfig};
use ark_ec::{AffineRepr, CurveGroup, PrimeGroup};
use ark_ff::{PrimeField, UniformRand};
use ark_std::rand::{SeedableRng, rngs::StdRng};
use proofmill_kernels::{InstructionSet, MsmGroup, in_subgroup_each_on};

/// A point of the curve: nearly always outside the subgroup, if that is not the whole curve.
fn of_curve<P: SWCurveConfig>(rng: &mut StdRng) -> Affine<P> {
    loop {
        let x = P::BaseField::rand(rng);
        if let Some(point) = Affine::get_point_from_x_unchecked(x, true) {
            return point;
        }
    }
}

/// Points whose orders divide the cofactor, times small divisors of it at most: their multiples are
/// equal, opposite and infinite where those of others are not.
fn of_small_order<P: SWCurveConfig>(rng: &mut StdRng) -> Vec<Affine<P>> {
    let order = <P::ScalarField as PrimeField>::MODULUS;
    let mut cofactor: Vec<u64> = P::COFACTOR.to_vec();
    for divisor in [2u64, 3, 5, 7, 11, 13] {
        while remainder(&cofactor, divisor) == 0 {
            divide(&mut cofactor, divisor);
        }
    }
    let mut points = Vec::new();
    for _ in 0..6 {
        let outside = of_curve::<P>(rng).mul_bigint(order);
        points.push(outside.into_affine());
        points.push(outside.into_affine().mul_bigint(&cofactor).into_affine());
    }
    points
}

fn remainder(words: &[u64], divisor: u64) -> u64 {
    let step = |rest: u128, word: &u64| (rest << 64 | u128::from(*word)) % u128::from(divisor);
    words.iter().rev().fold(0, step) as u64
}

fn divide(words: &mut [u64], divisor: u64) {
    let mut rest = 0u128;
    for word in words.iter_mut().rev() {
        let number = rest << 64 | u128::from(*word);
        *word = (number / u128::from(divisor)) as u64;
        rest = number % u128::from(divisor);
    }
}

fn check<P: SWCurveConfig>()
where
    Projective<P>: MsmGroup<Affine = Affine<P>> + PrimeGroup<ScalarField = P::ScalarField>,
{
    let rng = &mut StdRng::seed_from_u64(9);
    let mut points = vec![
        Affine::zero(),
        Affine::generator(),
        -Affine::<P>::generator(),
    ];
    points.extend(of_small_order::<P>(rng));
    for _ in 0..20 {
        let inside = Projective::<P>::rand(rng);
        points.push(inside.into_affine());
        let outside = of_curve::<P>(rng);
        points.push(outside);
        points.push((inside + outside).into_affine());
    }
    let small: Vec<_> = of_small_order::<P>(rng);
    points.extend(
        small
            .iter()
            .map(|p| (*p + Affine::<P>::generator()).into_affine()),
    );
    let order = <P::ScalarField as PrimeField>::MODULUS;
    let expected: Vec<bool> = points
        .iter()
        .map(|point| point.mul_bigint(order).into_affine().is_zero())
        .collect();
    let whole = P::cofactor_is_one();
    assert!(expected.contains(&true) && expected.contains(&false) != whole);
    for set in InstructionSet::ALL {
        if !set.is_available() {
            eprintln!("skipped: this machine has no {set}");
            continue;
        }
        for start in 0..points.len() {
            for count in [1, 3, 8] {
                let range = start..points.len().min(start + count);
                let verdicts = in_subgroup_each_on::<Projective<P>>(set, &points[range.clone()]);
                assert_eq!(verdicts, expected[range], "{start}, {count}, {set}");
            }
        }
        let verdicts = in_subgroup_each_on::<Projective<P>>(set, &points);
        assert_eq!(verdicts, expected, "{set}");
    }
    assert!(in_subgroup_each_on::<Projective<P>>(InstructionSet::Portable, &[]).is_empty());
}

#[test]
fn bls12_381() {
    check::<ark_bls12_381::g1::Config>();
    check::<ark_bls12_381::g2::Config>();
}

#[test]
fn bls12_377() {
    check::<ark_bls12_377::g1::Config>();
    check::<ark_bls12_377::g2::Config>();
}

#[test]
fn bn254_and_grumpkin() {
    check::<ark_bn254::g1::Config>();
    check::<ark_bn254::g2::Config>();
    check::<ark_grumpkin::GrumpkinConfig>();
}
