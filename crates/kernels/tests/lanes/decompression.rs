//! Points by their x-coordinates against arkworks', on every curve and back end.

use ark_ec::short_weierstrass::{Affine, Projective, SWCurveConfig};
use ark_ff::{Field, UniformRand, Zero};
use ark_std::rand::{SeedableRng, rngs::StdRng};
use num_bigint::BigUint;
use proofmill_kernels::{InstructionSet, MsmGroup, point_of_x_each_on};

/// x-coordinates with and without points; over an extension field, also some for which y² lies in the base
/// field, both as a square and as a non-square of it.
fn coordinates<P: SWCurveConfig>(rng: &mut StdRng) -> Vec<P::BaseField> {
    let mut xs = vec![
        P::BaseField::zero(),
        P::BaseField::ONE,
        -P::BaseField::ONE,
        P::GENERATOR.x,
    ];
    xs.extend((0..40).map(|_| P::BaseField::rand(rng)));
    let cubes = (0..400u64).map(|square| P::BaseField::from(square) - P::COEFF_B);
    let before = xs.len();
    xs.extend(cubes.filter_map(cube_root).take(12));
    assert!(xs.len() > before + 4, "some of them have roots");
    xs
}

/// A cube root, if the value's order is not divisible by three; of others none is found.
fn cube_root<F: Field>(value: F) -> Option<F> {
    let words = F::characteristic().iter().rev();
    let characteristic = words.fold(BigUint::ZERO, |sum, word| (sum << 64) + *word);
    let mut order = characteristic.pow(F::extension_degree() as u32) - 1u8;
    while (&order % 3u8) == BigUint::ZERO {
        order /= 3u8;
    }
    let multiple = [1u8, 2].map(|k| &order * k + 1u8);
    let exponent = multiple
        .into_iter()
        .find(|sum| sum % 3u8 == BigUint::ZERO)?
        / 3u8;
    let root = value.pow(exponent.to_u64_digits());
    (root.square() * root == value).then_some(root)
}

fn check<P: SWCurveConfig>()
where
    Projective<P>: MsmGroup<Affine = Affine<P>, BaseField = P::BaseField>,
{
    let rng = &mut StdRng::seed_from_u64(11);
    let xs = coordinates::<P>(rng);
    let expected: Vec<_> = xs
        .iter()
        .map(|x| Affine::<P>::get_point_from_x_unchecked(*x, false))
        .collect();
    assert!(expected.iter().any(Option::is_some) && expected.iter().any(Option::is_none));
    let compare = |set: InstructionSet, xs: &[P::BaseField], expected: &[Option<Affine<P>>]| {
        let found = point_of_x_each_on::<Projective<P>>(set, xs);
        assert_eq!(found.len(), xs.len());
        for ((found, expected), x) in found.iter().zip(expected).zip(xs) {
            match (found, expected) {
                (None, None) => {}
                (Some(found), Some(expected)) => {
                    assert!(found.is_on_curve() && found.x == *x, "{x} on {set}");
                    assert!(found == expected || *found == -*expected);
                }
                _ => panic!("{x} on {set}: {found:?} and not {expected:?}"),
            }
        }
    };
    for back_end in InstructionSet::ALL {
        if !back_end.is_available() {
            eprintln!("skipped: this machine has no {back_end}");
            continue;
        }
        for start in 0..xs.len() {
            for count in [1, 3, 8] {
                let range = start..xs.len().min(start + count);
                compare(back_end, &xs[range.clone()], &expected[range]);
            }
        }
        compare(back_end, &xs, &expected);
        compare(back_end, &[], &[]);
    }
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

#[test]
fn pallas_and_vesta() {
    check::<ark_pallas::PallasConfig>();
    check::<ark_vesta::VestaConfig>();
}
