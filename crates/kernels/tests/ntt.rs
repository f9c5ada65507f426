//! Transforms on every back end: against arkworks', against Horner's rule, and edge values.

use ark_ff::{AdditiveGroup, FftField, Field, PrimeField, UniformRand, Zero};
use ark_poly::{EvaluationDomain, Radix2EvaluationDomain};
use ark_std::rand::{SeedableRng, rngs::StdRng};
use proofmill_kernels::{Domain, InstructionSet};
use proptest::prelude::*;

type Fr = ark_bls12_381::Fr;

/// Runs each check for each field, once on each back end that this machine has.
macro_rules! for_each_back_end {
    ($($check:ident),+ $(,)?) => {
        for_each_back_end!(@field bls12_381, ark_bls12_381::Fr, $($check),+);
        for_each_back_end!(@field bls12_377, ark_bls12_377::Fr, $($check),+);
        for_each_back_end!(@field bn254, ark_bn254::Fr, $($check),+);
    };
    (@field $field:ident, $type:ty, $($check:ident),+) => {
        mod $field {
            use super::InstructionSet::{Avx512Ifma, Portable};
            $(
                mod $check {
                    #[test]
                    fn portable() {
                        super::super::on(super::Portable, super::super::$check::<$type>);
                    }
                    #[test]
                    fn avx512ifma() {
                        super::super::on(super::Avx512Ifma, super::super::$check::<$type>);
                    }
                }
            )+
        }
    };
}

for_each_back_end!(
    every_size_agrees_with_arkworks,
    a_large_size_agrees_with_arkworks,
    edge_values_agree_with_arkworks,
    threads_do_not_matter,
    any_shift_and_any_roots,
);

/// Runs a check, or prints that this machine cannot run it.
/// One of a domain's transforms.
type Transform<F> = fn(&Domain<F>, &mut [F]);

fn on(set: InstructionSet, check: fn(InstructionSet)) {
    if set.is_available() {
        check(set);
    } else {
        println!("skipped: this machine has no {set}");
    }
}

fn random<F: PrimeField>(seed: u64, size: usize) -> Vec<F> {
    let rng = &mut StdRng::seed_from_u64(seed);
    (0..size).map(|_| F::rand(rng)).collect()
}

/// All five transforms of `values` against arkworks'; equal elements are equal words, so outputs
/// are canonical.
fn check<F: PrimeField>(set: InstructionSet, values: &[F], shift: F) {
    let size = values.len();
    let domain = Domain::<F>::with_shift(size, shift).unwrap().on(set);
    let subgroup = Radix2EvaluationDomain::<F>::new(size).unwrap();
    let coset = subgroup.get_coset(shift).unwrap();
    let run = |transform: fn(&Domain<F>, &mut [F])| {
        let mut values = values.to_vec();
        transform(&domain, &mut values);
        values
    };
    // No `assert_eq!`, which would print both vectors.
    let same = |ours: Vec<F>, theirs: Vec<F>, name: &str| {
        let difference = ours.iter().zip(&theirs).position(|(a, b)| a != b);
        assert_eq!(difference, None, "{name} of {size} points on {set}");
    };
    same(run(Domain::forward), subgroup.fft(values), "forward");
    same(run(Domain::inverse), subgroup.ifft(values), "inverse");
    same(
        run(Domain::coset_forward),
        coset.fft(values),
        "coset_forward",
    );
    same(
        run(Domain::coset_inverse),
        coset.ifft(values),
        "coset_inverse",
    );
    same(
        run(Domain::coset_extend),
        coset.fft(&subgroup.ifft(values)),
        "coset_extend",
    );
    same(
        run(|domain, values| {
            domain.coset_forward(values);
            domain.coset_inverse(values);
            domain.forward(values);
            domain.inverse(values);
        }),
        values.to_vec(),
        "round trip",
    );
}

fn every_size_agrees_with_arkworks<F: PrimeField>(set: InstructionSet) {
    for log in 0..=14 {
        check(set, &random::<F>(log, 1 << log), F::GENERATOR);
    }
}

fn a_large_size_agrees_with_arkworks<F: PrimeField>(set: InstructionSet) {
    check(set, &random::<F>(18, 1 << 18), F::GENERATOR);
}

/// The values that bring intermediate results to the ends of their ranges.
fn edge_values_agree_with_arkworks<F: PrimeField>(set: InstructionSet) {
    for log in [3, 6, 7, 10, 13] {
        let size = 1 << log;
        let all = |value: F| vec![value; size];
        let one_at = |place: usize, value: F| {
            let mut values = all(F::ZERO);
            values[place] = value;
            values
        };
        // The raw words are Montgomery's: these are 1 and r − 1 as words.
        let raw_one = F::from(2u64).pow([256]).inverse().unwrap();
        for values in [
            all(F::ZERO),
            all(F::ONE),
            all(-F::ONE),
            all(raw_one),
            all(-raw_one),
            one_at(0, -F::ONE),
            one_at(1, -raw_one),
            one_at(size - 1, F::ONE),
            (0..size)
                .map(|i| if i % 2 == 0 { -raw_one } else { F::ZERO })
                .collect(),
            (0..size)
                .map(|i| if i < size / 2 { raw_one } else { -raw_one })
                .collect(),
        ] {
            check(set, &values, F::GENERATOR);
        }
    }
}

fn threads_do_not_matter<F: PrimeField>(set: InstructionSet) {
    for threads in [1, 2, 5] {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        pool.install(|| check(set, &random::<F>(1, 1 << 12), F::GENERATOR));
    }
}

fn any_shift_and_any_roots<F: PrimeField>(set: InstructionSet) {
    let rng = &mut StdRng::seed_from_u64(3);
    for log in [1, 6, 9, 12] {
        let shift = F::rand(rng);
        check(set, &random::<F>(log, 1 << log), shift);
        check(set, &random::<F>(log, 1 << log), F::ONE);
        check(set, &random::<F>(log, 1 << log), -F::ONE);

        // Another root of the same order: an odd power.
        let root = F::TWO_ADIC_ROOT_OF_UNITY.pow([5]);
        let domain = Domain::with_roots(1 << log, root, shift).unwrap().on(set);
        let coefficients = random::<F>(9, 1 << log);
        for coset in [false, true] {
            let mut values = coefficients.clone();
            let (start, transform): (F, Transform<F>) = if coset {
                (shift, Domain::coset_forward)
            } else {
                (F::ONE, Domain::forward)
            };
            transform(&domain, &mut values);
            for i in [0, 1, (1 << log) - 1] {
                let point = start * domain.generator().pow([i as u64]);
                assert_eq!(values[i], evaluate(&coefficients, point));
            }
        }
    }
}

fn evaluate<F: Field>(coefficients: &[F], point: F) -> F {
    coefficients
        .iter()
        .rev()
        .fold(F::ZERO, |sum, c| sum * point + c)
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

#[test]
fn domains_the_field_lacks_are_refused() {
    assert!(Domain::<Fr>::new(1 << 40).is_err());
    assert!(Domain::<Fr>::new(usize::MAX).is_err());
}

#[test]
fn lengths_must_match_on_every_back_end() {
    for set in InstructionSet::ALL {
        if !set.is_available() {
            println!("skipped: this machine has no {set}");
            continue;
        }
        let domain = Domain::<Fr>::new(64).unwrap().on(set);
        for transform in [
            Domain::forward,
            Domain::inverse,
            Domain::coset_forward,
            Domain::coset_inverse,
            Domain::coset_extend,
        ] {
            for length in [0, 63, 65, 128] {
                let mut values = vec![Fr::zero(); length];
                let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                    transform(&domain, &mut values);
                }));
                assert!(outcome.is_err(), "{length} values for 64 points on {set}");
            }
        }
    }
}

#[test]
#[should_panic(expected = "a shift that is not zero")]
fn a_shift_of_zero_is_refused() {
    let _ = Domain::<Fr>::with_shift(8, Fr::ZERO);
}

#[test]
#[should_panic(expected = "a root of unity of order")]
fn a_root_of_another_order_is_refused() {
    let _ = Domain::<Fr>::with_roots(8, Fr::from(3), Fr::GENERATOR);
}
