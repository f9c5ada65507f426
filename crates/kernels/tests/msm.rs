//! Multi-scalar and fixed-base multiplication against the definition.

use ark_bls12_381::{Fr, G1Projective, G2Projective};
use ark_ec::CurveGroup;
use ark_ff::{PrimeField, Zero};
use ark_std::rand::{Rng, SeedableRng, rngs::StdRng};
use proofmill_kernels::{MsmGroup, fixed_base, msm, msm_bigint};
use proptest::prelude::*;

fn naive<G: MsmGroup>(bases: &[G::Affine], scalars: &[G::ScalarField]) -> G {
    bases
        .iter()
        .zip(scalars)
        .map(|(base, scalar)| *base * *scalar)
        .sum()
}

/// Few distinct bases, infinity among them, so that doublings and cancellations are common.
fn bases<G: MsmGroup>(rng: &mut StdRng, length: usize) -> Vec<G::Affine> {
    let mut pool = vec![G::zero(), G::generator(), -G::generator()];
    pool.extend((0..length / 2).map(|_| G::rand(rng)));
    let points: Vec<G> = (0..length)
        .map(|_| pool[rng.gen_range(0..pool.len())])
        .collect();
    G::normalize_batch(&points)
}

/// The shapes a witness takes: bits, all full-size, small and negative numbers, a mix.
fn scalars<F: PrimeField>(rng: &mut StdRng, length: usize, shape: u8) -> Vec<F> {
    (0..length)
        .map(|_| match (shape, rng.gen_range(0..100)) {
            (0, roll) => F::from(u64::from(roll % 2 == 0)),
            (1, _) => F::rand(rng),
            (2, _) => F::from(rng.gen_range(-9i64..10)),
            (_, 0..=44) => F::zero(),
            (_, 45..=89) => F::one(),
            (_, 90) => -F::one(),
            _ => F::rand(rng),
        })
        .collect()
}

fn check<G: MsmGroup>(seed: u64, length: usize, shape: u8) {
    let rng = &mut StdRng::seed_from_u64(seed);
    let bases = bases::<G>(rng, length);
    let scalars: Vec<G::ScalarField> = scalars(rng, length, shape);
    let expected = naive::<G>(&bases, &scalars);
    assert_eq!(msm::<G>(&bases, &scalars), expected);
    let bigints: Vec<_> = scalars.iter().map(|scalar| scalar.into_bigint()).collect();
    assert_eq!(msm_bigint::<G>(&bases, &bigints), expected);
    let base = G::rand(rng);
    let products: Vec<G> = scalars.iter().map(|scalar| base * scalar).collect();
    assert_eq!(fixed_base(base, &scalars), G::normalize_batch(&products));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn g1_agrees_with_the_definition(seed: u64, length in 0usize..300, shape in 0u8..4) {
        check::<G1Projective>(seed, length, shape);
    }

    #[test]
    fn g2_agrees_with_the_definition(seed: u64, length in 0usize..100, shape in 0u8..4) {
        check::<G2Projective>(seed, length, shape);
    }

    #[test]
    fn batched_additions_are_complete(seed: u64, length in 0usize..80) {
        let rng = &mut StdRng::seed_from_u64(seed);
        let mut left = bases::<G1Projective>(rng, length);
        let right = bases::<G1Projective>(rng, length);
        let expected: Vec<_> =
            left.iter().zip(&right).map(|(p, q)| (*p + *q).into_affine()).collect();
        G1Projective::batch_add_assign(&mut left, &right);
        prop_assert_eq!(left, expected);
    }
}

/// More than one chunk of every kind.
#[test]
fn long_inputs_agree_with_the_definition() {
    check::<G1Projective>(1, 40_000, 0);
    check::<G1Projective>(2, 20_000, 3);
}

#[test]
#[should_panic(expected = "one scalar for each base")]
fn lengths_must_match() {
    let _ = msm::<G1Projective>(&[], &[Fr::zero()]);
}
