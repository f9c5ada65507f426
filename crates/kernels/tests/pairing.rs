//! Products of pairings against arkworks: every curve, every back end.

use ark_bls12_377::Bls12_377;
use ark_bls12_381::Bls12_381;
use ark_bn254::Bn254;
use ark_ec::pairing::{MillerLoopOutput, Pairing, PairingOutput};
use ark_ec::short_weierstrass::{Affine, SWCurveConfig};
use ark_ec::{AffineRepr, CurveGroup};
use ark_ff::{AdditiveGroup, One, PrimeField, UniformRand, Zero};
use ark_std::rand::{Rng, SeedableRng, rngs::StdRng};
use num_bigint::BigUint;
use proofmill_kernels::InstructionSet;
use proofmill_kernels::pairing::{self, PairingCurve, PreparedG2, Product};

/// The back ends this machine has; those it has not are reported.
fn back_ends() -> impl Iterator<Item = InstructionSet> {
    InstructionSet::ALL.into_iter().filter(|set| {
        if !set.is_available() {
            eprintln!("skipped: this machine has no {set}");
        }
        set.is_available()
    })
}

/// Few distinct points, infinity among them, so that equal and opposite ones are common.
fn few_points<A: AffineRepr>(rng: &mut StdRng, count: usize) -> Vec<A> {
    let random = A::Group::rand(rng);
    let pool = [
        A::zero(),
        A::generator(),
        (-A::generator().into_group()).into_affine(),
        random.into_affine(),
        (-random).into_affine(),
        random.double().into_affine(),
    ];
    (0..count)
        .map(|_| pool[rng.gen_range(0..pool.len())])
        .collect()
}

fn random_points<A: AffineRepr>(rng: &mut StdRng, count: usize) -> Vec<A> {
    (0..count)
        .map(|_| A::Group::rand(rng).into_affine())
        .collect()
}

fn expected<E: Pairing>(left: &[E::G1Affine], right: &[E::G2Affine]) -> PairingOutput<E> {
    E::multi_pairing(left.iter().copied(), right.iter().copied())
}

/// The product on a back end, of which the pairs that `prepared` names have prepared points.
fn evaluate<E: PairingCurve>(
    set: InstructionSet,
    left: &[E::G1Affine],
    right: &[PreparedG2<E>],
    prepared: impl Fn(usize) -> bool,
) -> PairingOutput<E> {
    let mut product = Product::on(set);
    for (i, (left, right)) in left.iter().zip(right).enumerate() {
        if prepared(i) {
            product.multiply_prepared(*left, right);
        } else {
            product.multiply(*left, right.point());
        }
    }
    product.value()
}

fn products_are_arkworks<E: PairingCurve>() {
    let rng = &mut StdRng::seed_from_u64(16);
    for count in (0..=20).chain([64]) {
        for degenerate in [false, true] {
            let (left, right): (Vec<E::G1Affine>, Vec<E::G2Affine>) = if degenerate {
                (few_points(rng, count), few_points(rng, count))
            } else {
                (random_points(rng, count), random_points(rng, count))
            };
            let expected = expected::<E>(&left, &right);
            for set in back_ends() {
                let prepared: Vec<PreparedG2<E>> = right
                    .iter()
                    .map(|point| PreparedG2::on(set, *point))
                    .collect();
                let value =
                    |which: &dyn Fn(usize) -> bool| evaluate::<E>(set, &left, &prepared, which);
                let told = format!("{count} pairs, {set}, degenerate: {degenerate}");
                assert_eq!(value(&|_| false), expected, "{told}");
                assert_eq!(value(&|_| true), expected, "{told}, prepared");
                assert_eq!(value(&|i| i % 3 == 0), expected, "{told}, some prepared");
                assert_eq!(value(&|i| i > 1), expected, "{told}, most prepared");
            }
            assert_eq!(pairing::product::<E>(&left, &right), expected);
            let loops = pairing::multi_miller_loop::<E>(&left, &right);
            assert_eq!(E::final_exponentiation(loops), Some(expected));
            assert_eq!(
                pairing::product_is_one::<E>(&left, &right),
                expected.is_zero()
            );
        }
    }
}

/// A product of one, spoilt in each of its places.
fn one_is_told_from_the_rest<E: PairingCurve>() {
    let rng = &mut StdRng::seed_from_u64(17);
    for count in [2, 8, 9, 17] {
        let scalars: Vec<[E::ScalarField; 2]> = (1..count)
            .map(|_| [E::ScalarField::rand(rng), E::ScalarField::rand(rng)])
            .collect();
        let sum: E::ScalarField = scalars.iter().map(|[a, b]| *a * b).sum();
        let (p, q) = (E::G1Affine::generator(), E::G2Affine::generator());
        let mut left: Vec<E::G1Affine> =
            scalars.iter().map(|[a, _]| (p * a).into_affine()).collect();
        let mut right: Vec<E::G2Affine> =
            scalars.iter().map(|[_, b]| (q * b).into_affine()).collect();
        left.push((p * -sum).into_affine());
        right.push(q);
        assert!(pairing::product_is_one::<E>(&left, &right));
        for i in 0..count {
            let (mut spoilt_left, mut spoilt_right) = (left.clone(), right.clone());
            spoilt_left[i] = (left[i] + p).into_affine();
            assert!(!pairing::product_is_one::<E>(&spoilt_left, &right));
            spoilt_right[i] = (-right[i].into_group()).into_affine();
            assert!(!pairing::product_is_one::<E>(&left, &spoilt_right));
        }
    }
}

fn final_exponentiation_is_arkworks<E: PairingCurve>() {
    let rng = &mut StdRng::seed_from_u64(18);
    for _ in 0..10 {
        let value = MillerLoopOutput(E::TargetField::rand(rng));
        assert_eq!(
            pairing::final_exponentiation::<E>(value),
            E::final_exponentiation(value)
        );
    }
    let zero = MillerLoopOutput(E::TargetField::ZERO);
    assert_eq!(pairing::final_exponentiation::<E>(zero), None);
}

/// A point of the curve, most probably not in the subgroup.
fn any_point<P: SWCurveConfig>(rng: &mut StdRng) -> Affine<P> {
    loop {
        let x = P::BaseField::rand(rng);
        if let Some(point) = Affine::get_point_from_x_unchecked(x, rng.r#gen()) {
            return point;
        }
    }
}

/// Points outside of the subgroups give what arkworks' formulas give of them.
fn other_points_of_the_curves<E, P1, P2>()
where
    P1: SWCurveConfig,
    P2: SWCurveConfig,
    E: PairingCurve<G1Affine = Affine<P1>, G2Affine = Affine<P2>>,
{
    let rng = &mut StdRng::seed_from_u64(19);
    for count in [1, 5, 11] {
        let left: Vec<Affine<P1>> = (0..count).map(|_| any_point(rng)).collect();
        let right: Vec<Affine<P2>> = (0..count).map(|_| any_point(rng)).collect();
        let expected = expected::<E>(&left, &right);
        for set in back_ends() {
            let prepared: Vec<PreparedG2<E>> = right
                .iter()
                .map(|point| PreparedG2::on(set, *point))
                .collect();
            assert_eq!(evaluate(set, &left, &prepared, |_| false), expected);
            assert_eq!(evaluate(set, &left, &prepared, |_| true), expected);
        }
    }
}

/// Multiples by doubling and adding: arkworks' own of some curves are right in the subgroup only.
fn multiple<P: SWCurveConfig>(point: &Affine<P>, factor: &BigUint) -> Affine<P> {
    let mut multiple = Affine::<P>::zero().into_group();
    for i in (0..factor.bits()).rev() {
        multiple.double_in_place();
        if factor.bit(i) {
            multiple += point;
        }
    }
    multiple.into_affine()
}

/// A point of a prime order that divides the curve's cofactor.
fn point_of_order<P: SWCurveConfig>(rng: &mut StdRng, order: u32) -> Affine<P> {
    let number = |words: &[u64]| {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        BigUint::from_bytes_le(&bytes)
    };
    let mut rest = number(P::COFACTOR) * number(P::ScalarField::MODULUS.as_ref());
    while (&rest % order).is_zero() {
        rest /= order;
    }
    loop {
        let mut point = multiple::<P>(&any_point(rng), &rest);
        while !point.is_zero() {
            let next = multiple(&point, &order.into());
            if next.is_zero() {
                return point;
            }
            point = next;
        }
    }
}

/// Products with one point of `special` among others are arkworks', whether they exist or not.
fn special_points<E: PairingCurve>(special: &[(E::G1Affine, E::G2Affine)], seed: u64) {
    let rng = &mut StdRng::seed_from_u64(seed);
    for (count, (p, q)) in [0, 1, 8, 40].into_iter().flat_map(|count| {
        let special = special.iter();
        special.map(move |pair| (count, pair))
    }) {
        let mut left: Vec<E::G1Affine> = random_points(rng, count);
        let mut right: Vec<E::G2Affine> = random_points(rng, count);
        left.insert(count / 2, *p);
        right.insert(count / 2, *q);
        let expected = E::final_exponentiation(E::multi_miller_loop(
            left.iter().copied(),
            right.iter().copied(),
        ));
        for set in back_ends() {
            let prepared: Vec<PreparedG2<E>> = right
                .iter()
                .map(|point| PreparedG2::on(set, *point))
                .collect();
            let (mut product, mut of_prepared) = (Product::on(set), Product::on(set));
            for (left, right) in left.iter().zip(&prepared) {
                product.multiply(*left, right.point());
                of_prepared.multiply_prepared(*left, right);
            }
            let told = format!("{count} others, {set}");
            assert_eq!(product.checked_value(), expected, "{told}");
            assert_eq!(of_prepared.checked_value(), expected, "{told}, prepared");
        }
    }
}

/// Products with a point of `special` each, beside others, are arkworks', whether they exist or not.
fn special_points_side_by_side<E: PairingCurve>(special: &[(E::G1Affine, E::G2Affine)], seed: u64) {
    let rng = &mut StdRng::seed_from_u64(seed);
    for set in back_ends() {
        let pairs: Vec<_> = (0..9)
            .map(|number| {
                let mut left: Vec<E::G1Affine> = random_points(rng, 2);
                let mut right: Vec<E::G2Affine> = random_points(rng, 2);
                if let Some((p, q)) = special.get(number % (special.len() + 1)) {
                    left[number % 2] = *p;
                    right[number % 2] = *q;
                }
                prepared::<E>(set, left, right)
            })
            .collect();
        let told = format!("{set}");
        require_values(cases(set, &pairs, |_, _| false), &told);
        require_values(cases(set, &pairs, |_, _| true), &told);
    }
}

/// The loop meets a vertical line, or adds a point to itself: 12·Q is −Q for a point of order 13.
#[test]
fn points_of_small_order() {
    let rng = &mut StdRng::seed_from_u64(22);
    let p = ark_bls12_381::G1Affine::rand(rng);
    let special = [13, 23].map(|order| (p, point_of_order(rng, order)));
    special_points::<Bls12_381>(&special, 23);
    special_points_side_by_side::<Bls12_381>(&special, 23);
    let special = [3, 11].map(|order| {
        let q = ark_bls12_381::G2Affine::rand(rng);
        (point_of_order(rng, order), q)
    });
    special_points::<Bls12_381>(&special, 24);
    special_points_side_by_side::<Bls12_381>(&special, 24);
    let q = point_of_order(rng, 10069);
    special_points::<Bn254>(&[(ark_bn254::G1Affine::rand(rng), q)], 25);
    special_points_side_by_side::<Bn254>(&[(ark_bn254::G1Affine::rand(rng), q)], 25);
}

/// No line can be divided by the y of a point of order two.
#[test]
fn points_of_order_two() {
    let rng = &mut StdRng::seed_from_u64(26);
    let minus_one = -ark_bls12_377::Fq::one();
    let p = ark_bls12_377::G1Affine::new_unchecked(minus_one, ark_bls12_377::Fq::ZERO);
    assert!(p.is_on_curve());
    let q = ark_bls12_377::G2Affine::rand(rng);
    special_points::<Bls12_377>(&[(p, q)], 27);
    special_points_side_by_side::<Bls12_377>(&[(p, q)], 27);
}

/// Lines of one back end are of no use to the other: the product is the same.
fn lines_of_another_back_end<E: PairingCurve>() {
    let rng = &mut StdRng::seed_from_u64(20);
    let left: Vec<E::G1Affine> = random_points(rng, 9);
    let right: Vec<E::G2Affine> = random_points(rng, 9);
    let expected = expected::<E>(&left, &right);
    for prepared_for in back_ends() {
        let prepared: Vec<PreparedG2<E>> = right
            .iter()
            .map(|point| PreparedG2::on(prepared_for, *point))
            .collect();
        for set in back_ends() {
            assert_eq!(evaluate(set, &left, &prepared, |_| true), expected);
        }
    }
}

/// Checks products on several threads, which divide the groups among them.
fn threads_share_the_pairs<E: PairingCurve>() {
    let rng = &mut StdRng::seed_from_u64(21);
    let left: Vec<E::G1Affine> = random_points(rng, 43);
    let right: Vec<E::G2Affine> = random_points(rng, 43);
    let expected = expected::<E>(&left, &right);
    for threads in [1, 2, 5] {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .expect("threads");
        for set in back_ends() {
            let prepared: Vec<PreparedG2<E>> = right
                .iter()
                .map(|point| PreparedG2::on(set, *point))
                .collect();
            let value = pool.install(|| evaluate(set, &left, &prepared, |i| i < 20));
            assert_eq!(value, expected, "{threads} threads");
        }
    }
}

/// Pairs, whose points of the second group are prepared.
type Pairs<E> = Vec<(<E as Pairing>::G1Affine, PreparedG2<E>)>;

/// A product on a back end with the value that it must have.
type Case<'a, E> = (Product<'a, E>, Option<PairingOutput<E>>);

/// Products of pairs; points of the second group are prepared if `is_prepared` returns true for them.
fn cases<'a, E: PairingCurve>(
    set: InstructionSet,
    pairs: &'a [Pairs<E>],
    is_prepared: impl Fn(usize, usize) -> bool,
) -> Vec<Case<'a, E>> {
    let case = |(number, pairs): (usize, &'a Pairs<E>)| {
        let mut product = Product::on(set);
        for (place, (left, right)) in pairs.iter().enumerate() {
            if is_prepared(number, place) {
                product.multiply_prepared(*left, right);
            } else {
                product.multiply(*left, right.point());
            }
        }
        let left = pairs.iter().map(|(left, _)| *left);
        let right = pairs.iter().map(|(_, right)| right.point());
        (
            product,
            E::final_exponentiation(E::multi_miller_loop(left, right)),
        )
    };
    pairs.iter().enumerate().map(case).collect()
}

/// Asserts that each product has its expected value, and that `is_one_each` finds those that are one.
fn require_values<E: PairingCurve>(cases: Vec<Case<'_, E>>, told: &str) {
    let (products, expected): (Vec<_>, Vec<_>) = cases.into_iter().unzip();
    assert_eq!(Product::checked_value_each(&products), expected, "{told}");
    let is_one = expected
        .iter()
        .map(|value| value.is_some_and(|it| it.is_zero()));
    let is_one: Vec<bool> = is_one.collect();
    assert_eq!(Product::is_one_each(&products), is_one, "{told}");
}

/// Prepares the points of the second group for a back end.
fn prepared<E: PairingCurve>(
    set: InstructionSet,
    left: Vec<E::G1Affine>,
    right: Vec<E::G2Affine>,
) -> Vec<(E::G1Affine, PreparedG2<E>)> {
    let right = right.into_iter().map(|point| PreparedG2::on(set, point));
    left.into_iter().zip(right).collect()
}

/// 0 to 20 products, of equal lengths and of others, each of them with points prepared or not.
fn products_each_are_arkworks<E: PairingCurve>() {
    let rng = &mut StdRng::seed_from_u64(30);
    for count in (0..=20).chain([65]) {
        for (is_degenerate, most) in [(false, 3), (true, 3), (true, 6)] {
            // One in three is of another length than the first.
            let lengths: Vec<usize> = (0..count)
                .map(|i| {
                    if i % 3 == 2 {
                        rng.gen_range(0..=most)
                    } else {
                        most
                    }
                })
                .collect();
            for set in back_ends() {
                let pairs: Vec<_> = lengths
                    .iter()
                    .map(|length| {
                        if is_degenerate {
                            prepared::<E>(set, few_points(rng, *length), few_points(rng, *length))
                        } else {
                            let left = random_points(rng, *length);
                            prepared::<E>(set, left, random_points(rng, *length))
                        }
                    })
                    .collect();
                let told = format!("{count} products, {set}, degenerate: {is_degenerate}");
                require_values(cases(set, &pairs, |_, _| false), &told);
                require_values(cases(set, &pairs, |_, _| true), &told);
                require_values(cases(set, &pairs, |_, place| place > 0), &told);
                require_values(
                    cases(set, &pairs, |number, place| (number + place) % 2 == 0),
                    &told,
                );
            }
        }
    }
}

/// Products of one beside others of the same points.
fn ones_are_told_from_their_neighbours<E: PairingCurve>() {
    let rng = &mut StdRng::seed_from_u64(31);
    let (p, q) = (E::G1Affine::generator(), E::G2Affine::generator());
    for set in back_ends() {
        let fixed = PreparedG2::<E>::on(set, q);
        for wrong in 0..8 {
            let products: Vec<_> = (0..8)
                .map(|lane| {
                    let [a, b] = [E::ScalarField::rand(rng), E::ScalarField::rand(rng)];
                    let spoilt = E::ScalarField::from(u64::from(lane == wrong));
                    let mut product = Product::on(set);
                    product.multiply((p * a).into_affine(), (q * b).into_affine());
                    product.multiply_prepared((p * (spoilt - a * b)).into_affine(), &fixed);
                    product
                })
                .collect();
            let expected: Vec<bool> = (0..8).map(|lane| lane != wrong).collect();
            assert_eq!(Product::is_one_each(&products), expected, "{set}");
        }
    }
}

/// Points outside of the subgroups beside others.
fn other_points_side_by_side<E, P1, P2>()
where
    P1: SWCurveConfig,
    P2: SWCurveConfig,
    E: PairingCurve<G1Affine = Affine<P1>, G2Affine = Affine<P2>>,
{
    let rng = &mut StdRng::seed_from_u64(32);
    for set in back_ends() {
        let pairs: Vec<_> = (0..11)
            .map(|number| {
                let (left, right) = if number % 2 == 0 {
                    let left = (0..3).map(|_| any_point(rng)).collect();
                    (left, (0..3).map(|_| any_point(rng)).collect())
                } else {
                    (random_points(rng, 3), random_points(rng, 3))
                };
                prepared::<E>(set, left, right)
            })
            .collect();
        let told = format!("{set}");
        require_values(cases(set, &pairs, |_, _| false), &told);
        require_values(cases(set, &pairs, |_, place| place > 0), &told);
    }
}

/// Values with zeros and ones among them.
fn final_exponentiations_each_are_arkworks<E: PairingCurve>() {
    let rng = &mut StdRng::seed_from_u64(33);
    for count in (0..=20).chain([33]) {
        let values: Vec<_> = (0..count)
            .map(|i| match i % 5 {
                3 => MillerLoopOutput(E::TargetField::ZERO),
                4 if i % 2 == 0 => MillerLoopOutput(E::TargetField::one()),
                _ => MillerLoopOutput(E::TargetField::rand(rng)),
            })
            .collect();
        let expected: Vec<_> = values
            .iter()
            .map(|it| E::final_exponentiation(*it))
            .collect();
        for set in back_ends() {
            let powers = pairing::final_exponentiation_each_on::<E>(set, &values);
            assert_eq!(powers, expected, "{count} on {set}");
            let zeros = vec![MillerLoopOutput(E::TargetField::ZERO); count];
            let powers = pairing::final_exponentiation_each_on::<E>(set, &zeros);
            assert_eq!(powers, vec![None; count], "{count} zeros on {set}");
        }
    }
}

macro_rules! suite {
    ($($name:ident, $curve:ty;)*) => {$(
        mod $name {
            #[test]
            fn products_are_arkworks() {
                super::products_are_arkworks::<$curve>();
            }

            #[test]
            fn one_is_told_from_the_rest() {
                super::one_is_told_from_the_rest::<$curve>();
            }

            #[test]
            fn final_exponentiation_is_arkworks() {
                super::final_exponentiation_is_arkworks::<$curve>();
            }

            #[test]
            fn other_points_of_the_curves() {
                super::other_points_of_the_curves::<$curve, _, _>();
            }

            #[test]
            fn lines_of_another_back_end() {
                super::lines_of_another_back_end::<$curve>();
            }

            #[test]
            fn products_each_are_arkworks() {
                super::products_each_are_arkworks::<$curve>();
            }

            #[test]
            fn ones_are_told_from_their_neighbours() {
                super::ones_are_told_from_their_neighbours::<$curve>();
            }

            #[test]
            fn other_points_side_by_side() {
                super::other_points_side_by_side::<$curve, _, _>();
            }

            #[test]
            fn final_exponentiations_each_are_arkworks() {
                super::final_exponentiations_each_are_arkworks::<$curve>();
            }

            #[test]
            fn threads_share_the_pairs() {
                super::threads_share_the_pairs::<$curve>();
            }
        }
    )*};
}

suite! {
    bls12_381, super::Bls12_381;
    bls12_377, super::Bls12_377;
    bn254, super::Bn254;
}

fn powers<E: PairingCurve>() {
    let rng = &mut StdRng::seed_from_u64(77);
    let generator = E::pairing(E::G1Affine::generator(), E::G2Affine::generator());
    let edges = [
        E::ScalarField::ZERO,
        E::ScalarField::from(1u64),
        -E::ScalarField::from(1u64),
        E::ScalarField::from(8u64),
        E::ScalarField::from(9u64),
        -E::ScalarField::from(8u64),
    ];
    for count in [0, 1, 2, 7, 8, 9, 20, 64, 65, 130] {
        let mut bases: Vec<PairingOutput<E>> = (0..count)
            .map(|_| generator * E::ScalarField::rand(rng))
            .collect();
        let mut exponents: Vec<_> = (0..count).map(|_| E::ScalarField::rand(rng)).collect();
        for i in (0..count).step_by(3) {
            exponents[i] = edges[rng.gen_range(0..edges.len())];
        }
        // One, and elements that cancel.
        if count >= 8 {
            bases[1] = PairingOutput::zero();
            bases[4] = -bases[3];
            exponents[4] = exponents[3];
        }
        let pairs = bases.iter().zip(&exponents);
        let powers: Vec<_> = pairs.map(|(base, exponent)| *base * exponent).collect();
        let expected: PairingOutput<E> = powers.iter().sum();
        for set in back_ends() {
            let product = pairing::multi_power_on(set, &bases, &exponents);
            assert_eq!(product, expected, "{count} on {set}");
            let each = pairing::power_each_on(set, &bases, &exponents);
            assert_eq!(each, powers, "{count} on {set}, each");
        }
    }
}

#[test]
fn products_of_powers_are_arkworks() {
    powers::<Bls12_381>();
    powers::<Bls12_377>();
    powers::<Bn254>();
}
