//! Folding of points by one scalar against arkworks, in every group and on every back end.

use ark_ec::short_weierstrass::{Affine, Projective, SWCurveConfig};
use ark_ec::{AffineRepr, CurveGroup, PrimeGroup};
use ark_ff::UniformRand;
use ark_std::rand::{Rng, SeedableRng, rngs::StdRng};
use proofmill_kernels::{InstructionSet, MsmGroup, fold_on};

/// Numbers at the ends of digits and halves, a cube root of unity among them.
fn scalars<F: ark_ff::PrimeField>(rng: &mut StdRng) -> Vec<F> {
    let third = (F::ZERO - F::ONE) / F::from(3u64);
    let mut scalars: Vec<F> = (0..20u64).map(F::from).collect();
    scalars.extend((1..10u64).map(|number| -F::from(number)));
    scalars.push(F::GENERATOR.pow(third.into_bigint()));
    scalars.push(-F::GENERATOR.pow(third.into_bigint()));
    scalars.extend([127, 128, 250].map(|power: u64| F::from(2u64).pow([power])));
    scalars.extend((0..4).map(|_| F::rand(rng)));
    scalars
}

fn check<P: SWCurveConfig>()
where
    Projective<P>: MsmGroup<Affine = Affine<P>> + PrimeGroup<ScalarField = P::ScalarField>,
{
    let rng = &mut StdRng::seed_from_u64(31);
    for scalar in scalars::<P::ScalarField>(rng) {
        let point = Projective::<P>::rand(rng);
        let product = (point * scalar).into_affine();
        let point = point.into_affine();
        // Infinite points, and sums that are infinite or doublings.
        let mut pairs = vec![
            (Affine::zero(), Affine::zero()),
            (Affine::zero(), point),
            (point, Affine::zero()),
            (point, point),
            (-point, point),
            (product, point),
            (-product, point),
        ];
        for _ in 0..rng.gen_range(0..80) {
            let [left, right] = [(); 2].map(|()| Projective::<P>::rand(rng).into_affine());
            pairs.push((left, right));
        }
        let (left, right): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
        let expected: Vec<Affine<P>> = left
            .iter()
            .zip(&right)
            .map(|(left, right)| (*right * scalar + left).into_affine())
            .collect();
        for set in InstructionSet::ALL {
            if !set.is_available() {
                eprintln!("skipped: this machine has no {set}");
                continue;
            }
            for count in [0, 1, 7, left.len()] {
                let folded = fold_on::<Projective<P>>(set, &left[..count], &right[..count], scalar);
                assert_eq!(folded, expected[..count], "{scalar} on {set}");
            }
        }
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
