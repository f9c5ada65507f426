//! Multi-scalar and fixed-base multiplication against the definition: every group, every back end.

use ark_bls12_381::{Fr, G1Projective};
use ark_ec::short_weierstrass::{Affine, Projective, SWCurveConfig};
use ark_ec::{AffineRepr, CurveGroup, PrimeGroup, VariableBaseMSM};
use ark_ff::{AdditiveGroup, Field, PrimeField, UniformRand, Zero};
use ark_std::rand::{Rng, SeedableRng, rngs::StdRng};
use proofmill_kernels::{
    InstructionSet, MsmGroup, PreparedBases, fixed_base, msm, msm_bigint, msm_on, multiply_each,
    multiply_each_on, scale_each, scale_each_on,
};
use proptest::prelude::*;

/// The back ends this machine has; those it has not are reported.
fn back_ends() -> impl Iterator<Item = InstructionSet> {
    InstructionSet::ALL.into_iter().filter(|set| {
        if !set.is_available() {
            eprintln!("skipped: this machine has no {set}");
        }
        set.is_available()
    })
}

fn naive<G: MsmGroup>(bases: &[G::Affine], scalars: &[G::ScalarField]) -> G {
    bases
        .iter()
        .zip(scalars)
        .map(|(base, scalar)| *base * *scalar)
        .sum()
}

/// Few distinct bases, infinity among them, so that doublings and cancellations are common.
fn few_bases<G: MsmGroup>(rng: &mut StdRng, length: usize) -> Vec<G::Affine> {
    let mut pool = vec![G::zero(), G::generator(), -G::generator()];
    pool.extend((0..length / 2).map(|_| G::rand(rng)));
    let points: Vec<G> = (0..length)
        .map(|_| pool[rng.gen_range(0..pool.len())])
        .collect();
    G::normalize_batch(&points)
}

/// The shapes scalars take.
const SHAPES: u8 = 9;

fn scalars<F: PrimeField>(rng: &mut StdRng, length: usize, shape: u8) -> Vec<F> {
    let one_for_all = F::rand(rng);
    (0..length)
        .map(|i| match (shape, rng.gen_range(0..100)) {
            (0, roll) => F::from(u64::from(roll % 2 == 0)),
            (1, _) => F::rand(rng),
            (2, _) => F::from(rng.gen_range(-9i64..10)),
            (3, _) => one_for_all,
            (4, _) => -F::one(),
            (5, _) => F::zero(),
            // The ends of digits: powers of two, and one less.
            (6, roll) => F::from(2u64).pow([i as u64 % 256]) - F::from(roll as u64 % 2),
            (7, _) => F::from(rng.r#gen::<u64>() >> 32),
            (_, 0..=44) => F::zero(),
            (_, 45..=89) => F::one(),
            (_, 90) => -F::one(),
            _ => F::rand(rng),
        })
        .collect()
}

fn check<G: MsmGroup>(seed: u64, length: usize, shape: u8) {
    let rng = &mut StdRng::seed_from_u64(seed);
    let bases = few_bases::<G>(rng, length);
    let scalars: Vec<G::ScalarField> = scalars(rng, length, shape);
    let expected = naive::<G>(&bases, &scalars);
    assert_eq!(msm::<G>(&bases, &scalars), expected);
    let bigints: Vec<_> = scalars.iter().map(|scalar| scalar.into_bigint()).collect();
    assert_eq!(msm_bigint::<G>(&bases, &bigints), expected);
    for set in back_ends() {
        assert_eq!(msm_on::<G>(set, &bases, &scalars), expected, "{set}");
        for copies in [1, 2, 3, 6] {
            let limit = PreparedBases::<G>::bytes_for(set, length, copies);
            let prepared = PreparedBases::<G>::new_on(set, &bases, limit);
            assert!(prepared.bytes() <= limit);
            assert_eq!(prepared.len(), length);
            assert_eq!(
                prepared.msm(&scalars),
                expected,
                "{set}, {} of {copies} copies",
                prepared.copies()
            );
        }
    }
}

/// Tests of one group.
macro_rules! group {
    ($name:ident, $group:ty, $length:expr) => {
        mod $name {
            use super::*;

            proptest! {
                #![proptest_config(ProptestConfig::with_cases(8))]

                #[test]
                fn agrees_with_the_definition(
                    seed: u64,
                    length in 0usize..$length,
                    shape in 0..SHAPES,
                ) {
                    check::<$group>(seed, length, shape);
                }
            }

            /// Products large enough for windows as wide as in practice, and for full batches and queues, against
            /// arkworks.
            #[test]
            fn long_products_agree_with_arkworks() {
                let rng = &mut StdRng::seed_from_u64(7);
                let length = 10 * $length + 5;
                let bases: Vec<_> = {
                    // Multiples of the generator by 1, 2, 3, …, and some at infinity.
                    let step = <$group>::generator();
                    let mut points = vec![step];
                    for i in 1..length {
                        points.push(points[i - 1] + step);
                    }
                    points[length / 2] = <$group>::zero();
                    <$group>::normalize_batch(&points)
                };
                for shape in 0..SHAPES {
                    let scalars = scalars(rng, length, shape);
                    let expected = <$group as VariableBaseMSM>::msm(&bases, &scalars)
                        .expect("as many bases as scalars");
                    for set in back_ends() {
                        assert_eq!(
                            msm_on::<$group>(set, &bases, &scalars),
                            expected,
                            "{set}, shape {shape}"
                        );
                        let limit = PreparedBases::<$group>::bytes_for(set, length, 4);
                        let prepared = PreparedBases::<$group>::new_on(set, &bases, limit);
                        assert_eq!(prepared.msm(&scalars), expected, "{set}, shape {shape}");
                    }
                }
            }

            /// Every addition is an exception: all bases are the same point, or two opposite ones.
            #[test]
            fn equal_and_opposite_bases_are_added_right() {
                let point = <$group>::generator().into_affine();
                for bases in [vec![point; 500], [point, -point].repeat(250)] {
                    for shape in 0..SHAPES {
                        let rng = &mut StdRng::seed_from_u64(u64::from(shape));
                        let scalars = scalars(rng, bases.len(), shape);
                        let expected = <$group as VariableBaseMSM>::msm(&bases, &scalars)
                            .expect("as many bases as scalars");
                        for set in back_ends() {
                            assert_eq!(
                                msm_on::<$group>(set, &bases, &scalars),
                                expected,
                                "{set}, shape {shape}"
                            );
                        }
                    }
                }
            }
        }
    };
}

group!(bls12_381_g1, ark_bls12_381::G1Projective, 400);
group!(bls12_381_g2, ark_bls12_381::G2Projective, 100);
group!(bls12_377_g1, ark_bls12_377::G1Projective, 400);
group!(bls12_377_g2, ark_bls12_377::G2Projective, 100);
group!(bn254_g1, ark_bn254::G1Projective, 400);
group!(bn254_g2, ark_bn254::G2Projective, 100);
group!(grumpkin, ark_grumpkin::Projective, 400);
group!(pallas, ark_pallas::Projective, 400);
group!(vesta, ark_vesta::Projective, 400);

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn batched_additions_are_complete(seed: u64, length in 0usize..80) {
        let rng = &mut StdRng::seed_from_u64(seed);
        let mut left = few_bases::<G1Projective>(rng, length);
        let right = few_bases::<G1Projective>(rng, length);
        let expected: Vec<_> =
            left.iter().zip(&right).map(|(p, q)| (*p + *q).into_affine()).collect();
        G1Projective::batch_add_assign(&mut left, &right);
        prop_assert_eq!(left, expected);
    }

    #[test]
    fn fixed_base_agrees_with_the_definition(seed: u64, length in 0usize..300, shape in 0..SHAPES) {
        let rng = &mut StdRng::seed_from_u64(seed);
        let base = <G1Projective as ark_ff::UniformRand>::rand(rng);
        let scalars: Vec<Fr> = scalars(rng, length, shape);
        let products: Vec<_> = scalars.iter().map(|scalar| base * scalar).collect();
        prop_assert_eq!(fixed_base(base, &scalars), G1Projective::normalize_batch(&products));
    }
}

/// Small scalars are integers to any point of the curve, in the subgroup or not.
#[test]
fn small_scalars_multiply_points_outside_the_subgroup() {
    // By the definition, as arkworks' products may use the endomorphism.
    fn times<P: SWCurveConfig>(point: &Affine<P>, scalar: u64) -> Projective<P> {
        let bits = (0..64).rev().map(|bit| scalar >> bit & 1);
        bits.fold(Projective::zero(), |sum, bit| {
            let sum = sum.double();
            if bit == 1 { sum + point } else { sum }
        })
    }
    fn check<P: SWCurveConfig>()
    where
        Projective<P>: MsmGroup<Affine = Affine<P>, ScalarField = P::ScalarField>,
    {
        let rng = &mut StdRng::seed_from_u64(9);
        let points: Vec<Affine<P>> = (1u64..)
            .filter_map(|x| Affine::get_point_from_x_unchecked(x.into(), x % 2 == 0))
            .take(300)
            .collect();
        assert!(
            points
                .iter()
                .any(|p| !p.is_in_correct_subgroup_assuming_on_curve())
        );
        for bits in [1, 13, 32] {
            let small: Vec<u64> = points
                .iter()
                .map(|_| rng.r#gen::<u64>() >> (64 - bits))
                .collect();
            let naive: Projective<P> = points.iter().zip(&small).map(|(p, k)| times(p, *k)).sum();
            let bigints: Vec<_> = small
                .iter()
                .map(|k| P::ScalarField::from(*k).into_bigint())
                .collect();
            assert_eq!(
                msm_bigint::<Projective<P>>(&points, &bigints),
                naive,
                "{bits} bits"
            );
        }
    }
    check::<ark_bls12_381::g1::Config>();
    check::<ark_bls12_381::g2::Config>();
    check::<ark_bls12_377::g1::Config>();
    check::<ark_bn254::g2::Config>();
}

#[test]
fn products_are_the_same_on_any_number_of_threads() {
    let rng = &mut StdRng::seed_from_u64(3);
    let bases = few_bases::<G1Projective>(rng, 3000);
    let scalars = scalars::<Fr>(rng, 3000, 1);
    let expected = naive::<G1Projective>(&bases, &scalars);
    for threads in [1, 2, 3, 16] {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .expect("a thread pool");
        for set in back_ends() {
            let product = pool.install(|| msm_on::<G1Projective>(set, &bases, &scalars));
            assert_eq!(product, expected, "{set}, {threads} threads");
        }
    }
}

/// Few bases and scalars of one bit make the narrowest windows, and one scalar of full size fills them.
#[test]
fn narrow_windows_hold_full_scalars() {
    for length in 12..20 {
        let rng = &mut StdRng::seed_from_u64(length as u64);
        let bases = few_bases::<G1Projective>(rng, length);
        for copies in 1..24 {
            let mut scalars = vec![Fr::ONE; length];
            scalars[length / 2] = Fr::rand(rng);
            let expected = naive::<G1Projective>(&bases, &scalars);
            for set in back_ends() {
                let limit = PreparedBases::<G1Projective>::bytes_for(set, length, copies);
                let prepared = PreparedBases::<G1Projective>::new_on(set, &bases, limit);
                let product = prepared.msm(&scalars);
                assert_eq!(product, expected, "{set}, {length} bases, {copies} copies");
            }
        }
    }
}

#[test]
fn an_index_names_a_scalar() {
    let rng = &mut StdRng::seed_from_u64(4);
    let bases = few_bases::<G1Projective>(rng, 100);
    let values = scalars::<Fr>(rng, 40, 8);
    let indices: Vec<u32> = (0..100).map(|_| rng.gen_range(0..40)).collect();
    let gathered: Vec<Fr> = indices.iter().map(|i| values[*i as usize]).collect();
    let prepared = PreparedBases::<G1Projective>::new(&bases, 0);
    assert_eq!(prepared.copies(), 1);
    assert_eq!(
        prepared.msm_indexed(&indices, &values),
        naive::<G1Projective>(&bases, &gathered)
    );
}

#[test]
#[should_panic(expected = "one scalar for each base")]
fn lengths_must_match() {
    let generator = <G1Projective as CurveGroup>::Affine::generator();
    let _ = msm::<G1Projective>(&[generator], &[Fr::zero(), Fr::zero()]);
}

fn multiples_of_each<G: MsmGroup>() {
    let rng = &mut StdRng::seed_from_u64(23);
    for length in [0, 1, 7, 8, 9, 16, 65, 200] {
        let points = few_bases::<G>(rng, length);
        let numbers: Vec<u128> = (0..length)
            .map(|_| match rng.gen_range(0..8) {
                0 => 0,
                1 => u128::MAX,
                2 => u128::MAX >> rng.gen_range(0..128),
                3 => 1 << rng.gen_range(0..128),
                4 => rng.gen_range(0..20),
                _ => rng.r#gen(),
            })
            .collect();
        let expected: Vec<G> = points
            .iter()
            .zip(&numbers)
            .map(|(point, number)| *point * G::ScalarField::from(*number))
            .collect();
        let expected = G::normalize_batch(&expected);
        for set in back_ends() {
            let multiples = multiply_each_on::<G>(set, &points, &numbers);
            assert_eq!(multiples, expected, "{length} points, {set}");
        }
        assert_eq!(multiply_each::<G>(&points, &numbers), expected);

        let scalars: Vec<G::ScalarField> = numbers
            .iter()
            .map(|number| match number % 4 {
                0 => G::ScalarField::from(*number),
                1 => -G::ScalarField::from(*number),
                _ => G::ScalarField::rand(rng),
            })
            .collect();
        let expected: Vec<G> = points.iter().zip(&scalars).map(|(p, s)| *p * s).collect();
        let expected = G::normalize_batch(&expected);
        for set in back_ends() {
            let multiples = scale_each_on::<G>(set, &points, &scalars);
            assert_eq!(multiples, expected, "{length} points by scalars, {set}");
        }
        assert_eq!(scale_each::<G>(&points, &scalars), expected);
    }
}

#[test]
fn each_is_multiplied_by_its_number() {
    multiples_of_each::<ark_bls12_381::G1Projective>();
    multiples_of_each::<ark_bls12_381::G2Projective>();
    multiples_of_each::<ark_bls12_377::G1Projective>();
    multiples_of_each::<ark_bls12_377::G2Projective>();
    multiples_of_each::<ark_bn254::G1Projective>();
    multiples_of_each::<ark_bn254::G2Projective>();
    multiples_of_each::<ark_grumpkin::Projective>();
    multiples_of_each::<ark_pallas::Projective>();
    multiples_of_each::<ark_vesta::Projective>();
}

/// The two lists have few distinct points, and so equal and opposite ones in common.
#[test]
fn other_terms_join_a_prepared_product() {
    type G = ark_grumpkin::Projective;
    let rng = &mut StdRng::seed_from_u64(23);
    for set in back_ends() {
        for (count, others) in [
            (0, 0),
            (0, 5),
            (1, 0),
            (1, 1),
            (5, 60),
            (300, 1),
            (300, 700),
        ] {
            for shape in [1, 8] {
                let points = few_bases::<G>(rng, count + others);
                let scalars = scalars::<ark_grumpkin::Fr>(rng, count + others, shape);
                let (bases, points) = points.split_at(count);
                let (scalars, own) = scalars.split_at(count);
                let expected = naive::<G>(bases, scalars) + naive::<G>(points, own);
                for copies in [1, 2, 6] {
                    let limit = PreparedBases::<G>::bytes_for(set, count, copies);
                    let prepared = PreparedBases::<G>::new_on(set, bases, limit);
                    for threads in [1, 3] {
                        let pool = rayon::ThreadPoolBuilder::new()
                            .num_threads(threads)
                            .build()
                            .unwrap();
                        let sum = pool.install(|| prepared.msm_with(scalars, points, own));
                        assert_eq!(sum, expected, "{count}, {others}, {copies} copies, {set}");
                    }
                }
            }
        }
    }
}
