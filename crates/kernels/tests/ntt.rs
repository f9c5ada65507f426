//! Transforms against evaluation by Horner's rule.

use ark_bls12_381::Fr;
use ark_ff::{FftField, Field, UniformRand, Zero};
use ark_std::rand::{SeedableRng, rngs::StdRng};
use proofmill_kernels::Domain;
use proptest::prelude::*;

fn evaluate(coefficients: &[Fr], point: Fr) -> Fr {
    coefficients
        .iter()
        .rev()
        .fold(Fr::zero(), |sum, c| sum * point + c)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn transforms_are_evaluations(seed: u64, points in 1usize..70) {
        let rng = &mut StdRng::seed_from_u64(seed);
        let domain = Domain::<Fr>::new(points).unwrap();
        let size = domain.size();
        prop_assert_eq!(size, points.next_power_of_two());
        let coefficients: Vec<Fr> = (0..size).map(|_| Fr::rand(rng)).collect();
        let root = Fr::get_root_of_unity(size as u64).unwrap();
        let at = |shift: Fr| -> Vec<Fr> {
            (0..size).map(|i| evaluate(&coefficients, shift * root.pow([i as u64]))).collect()
        };

        let mut values = coefficients.clone();
        domain.forward(&mut values);
        prop_assert_eq!(&values, &at(Fr::from(1)));
        domain.inverse(&mut values);
        prop_assert_eq!(&values, &coefficients);
        domain.coset_forward(&mut values);
        prop_assert_eq!(&values, &at(Fr::GENERATOR));
        domain.coset_inverse(&mut values);
        prop_assert_eq!(&values, &coefficients);

        let point = Fr::rand(rng);
        prop_assert_eq!(domain.vanishing_at(point), point.pow([size as u64]) - Fr::from(1));
        let dot = |weights: &[Fr], values: &[Fr]| -> Fr {
            weights.iter().zip(values).map(|(w, v)| *w * v).sum()
        };
        let expected = evaluate(&coefficients, point);
        prop_assert_eq!(dot(&domain.lagrange_at(point), &at(Fr::from(1))), expected);
        prop_assert_eq!(dot(&domain.coset_lagrange_at(point), &at(Fr::GENERATOR)), expected);
        for i in 0..size as u64 {
            let coset_point = Fr::GENERATOR * root.pow([i]);
            prop_assert_eq!(domain.vanishing_at(coset_point), domain.vanishing_on_coset());
        }
    }
}

#[test]
fn domains_the_field_lacks_are_refused() {
    assert!(Domain::<Fr>::new(1 << 40).is_err());
}

#[test]
#[should_panic(expected = "domain's size")]
fn lengths_must_match() {
    Domain::<Fr>::new(8)
        .unwrap()
        .forward(&mut vec![Fr::zero(); 7]);
}

/// snarkjs' shift is the root of order 2n, from ffjavascript's chain of roots.
#[test]
fn the_roots_of_snarkjs() {
    let bn254 = Domain::<ark_bn254::Fr>::snarkjs(1 << 10).unwrap();
    let ours = Domain::<ark_bn254::Fr>::new(1 << 10).unwrap();
    assert_eq!(bn254.generator(), ours.generator());
    assert_eq!(Some(bn254.shift()), ours.double_root());
    assert_eq!(bn254.shift().square(), bn254.generator());
    assert_eq!(bn254.vanishing_on_coset(), -ark_bn254::Fr::from(2));

    let bls12_381 = Domain::<Fr>::snarkjs(1 << 10).unwrap();
    assert_ne!(
        bls12_381.generator(),
        Domain::<Fr>::new(1 << 10).unwrap().generator()
    );
    let order = bls12_381.generator().pow([1 << 9]);
    assert_eq!(order, -Fr::from(1));

    let largest = Domain::<ark_bn254::Fr>::snarkjs(1 << 28).unwrap();
    assert_eq!(largest.double_root(), None);
    assert_eq!(largest.shift(), ark_bn254::Fr::from(25));
}
