//! The vector kernels against arkworks, on every curve.

use ark_ec::pairing::{MillerLoopOutput, Pairing};
use ark_ec::short_weierstrass::Affine;
use ark_ff::UniformRand;
use ark_std::test_rng;

use super::super::field::Fp;
use super::super::vector_field::Layout;
use super::cyclotomic::Cyclotomic;
use super::lanes::{Element, Lanes};
use super::miller::Pair;
use super::tower::Tower;
use super::{final_exponentiation, miller_loop};
use crate::InstructionSet;

fn check<C, E, const L: usize, const N: usize>()
where
    E: Tower<L, N>,
    C: Pairing<G1Affine = Affine<E::G1>, G2Affine = Affine<E::G2>, TargetField = Element<E, L, N>>,
    Fp<E::Base, L, N>: Layout<E::Base, N>,
{
    if !InstructionSet::Avx512Ifma.is_available() {
        eprintln!("skipped: this machine has no AVX-512 IFMA");
        return;
    }
    let rng = &mut test_rng();
    for _ in 0..20 {
        let (a, b) = (C::TargetField::rand(rng), C::TargetField::rand(rng));
        // SAFETY: availability was checked.
        unsafe {
            let product = Lanes::<E, L, N>::new(&a).times(&Lanes::new(&b));
            assert_eq!(product.element(), a * b);
            assert_eq!(
                final_exponentiation::<E, L, N>(&a),
                C::final_exponentiation(MillerLoopOutput(a)).map(|power| power.0)
            );
        }
    }
    for count in (0..=20).chain([64]) {
        let left: Vec<C::G1Affine> = (0..count).map(|_| C::G1Affine::rand(rng)).collect();
        let right: Vec<C::G2Affine> = (0..count).map(|_| C::G2Affine::rand(rng)).collect();
        let pairs: Vec<Pair<E, L, N>> = left.iter().copied().zip(right.iter().copied()).collect();
        let product = miller_loop::<E, L, N>(&pairs, &[]);
        assert_eq!(
            C::final_exponentiation(MillerLoopOutput(product)),
            Some(C::multi_pairing(
                left.iter().copied(),
                right.iter().copied()
            )),
            "{count} pairs"
        );
    }
}

#[test]
fn bls12_381() {
    check::<ark_bls12_381::Bls12_381, ark_bls12_381::Fq2Config, 8, 6>();
}

#[test]
fn bls12_377() {
    check::<ark_bls12_377::Bls12_377, ark_bls12_377::Fq2Config, 8, 6>();
}

#[test]
fn bn254() {
    check::<ark_bn254::Bn254, ark_bn254::Fq2Config, 5, 4>();
}
