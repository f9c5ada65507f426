//! Circuits of random shapes: verdicts are halo2's, on valid proofs and on changed ones.

use std::sync::Arc;

use ark_ff::PrimeField as _;
use ark_std::rand::{Rng, SeedableRng, rngs::StdRng};
use halo2_proofs::pasta::group::ff::PrimeField as _;
use halo2_proofs::pasta::{EqAffine, Fp};
use halo2_proofs::plonk::{create_proof, keygen_pk, keygen_vk};
use halo2_proofs::poly::commitment::Params as Halo2Params;
use halo2_proofs::transcript::{Blake2bWrite, Challenge255};
use proofmill_halo2::{Scalar, VerifyingKey};
use rand_next::rand_core::UnwrapErr;
use rand_next::rngs::SysRng;

use super::shapes::{K, Shaped};
use super::{VERIFIER, halo2_accepts};

/// Changed proofs of each proof.
const CHANGES: usize = 30;

/// The element in our field.
fn ours(element: &Fp) -> Scalar {
    Scalar::from_le_bytes_mod_order(&element.to_repr())
}

/// Proofs of one and of two circuits of a shape, and changes of them.
fn agree<const SEED: u64>() {
    let rng = &mut StdRng::seed_from_u64(SEED);
    let params = Halo2Params::<EqAffine>::new(K);
    let empty = Shaped::<SEED>::default();
    let key = keygen_vk(&params, &empty).unwrap();
    let proving_key = keygen_pk(&params, key.clone(), &empty).unwrap();
    let own_key = VerifyingKey::from_pinned(&format!("{:?}", key.pinned())).unwrap();
    let own_key = Arc::new(own_key);
    let verify = |inputs: &[Vec<Vec<Fp>>], proof: &[u8]| {
        let instances: Vec<Vec<Vec<Scalar>>> = inputs
            .iter()
            .map(|columns| {
                columns
                    .iter()
                    .map(|c| c.iter().map(ours).collect())
                    .collect()
            })
            .collect();
        VERIFIER.verify(&own_key, &instances, proof)
    };
    for count in [1, 2] {
        let circuits: Vec<_> = (1..=count).map(Shaped::<SEED>::new).collect();
        let inputs: Vec<_> = circuits.iter().map(Shaped::inputs).collect();
        let columns: Vec<Vec<&[Fp]>> = inputs
            .iter()
            .map(|columns| columns.iter().map(|column| &column[..]).collect())
            .collect();
        let instances: Vec<_> = columns.iter().map(|columns| &columns[..]).collect();
        let mut transcript = Blake2bWrite::<_, EqAffine, Challenge255<_>>::init(Vec::new());
        let random = UnwrapErr(SysRng);
        create_proof(
            &params,
            &proving_key,
            &circuits,
            &instances,
            random,
            &mut transcript,
        )
        .unwrap();
        let proof = transcript.finalize();
        assert!(halo2_accepts(&params, &key, &inputs, &proof));
        assert_eq!(verify(&inputs, &proof), Ok(()), "shape {SEED}");
        for _ in 0..CHANGES {
            let (mut inputs, mut proof) = (inputs.clone(), proof.clone());
            let columns: Vec<_> = inputs.iter_mut().flatten().collect();
            if !columns.is_empty() && rng.gen_ratio(1, 4) {
                let number = rng.gen_range(0..columns.len());
                columns.into_iter().nth(number).unwrap()[rng.gen_range(0..2)] += Fp::from(1);
            } else {
                let at = rng.gen_range(0..proof.len());
                proof[at] ^= 1 << rng.gen_range(0..8);
            }
            assert!(!halo2_accepts(&params, &key, &inputs, &proof));
            assert!(verify(&inputs, &proof).is_err(), "shape {SEED}");
        }
    }
}

#[test]
fn circuits_of_random_shapes_have_halo2s_verdicts() {
    agree::<1>();
    agree::<2>();
    agree::<3>();
    agree::<4>();
    agree::<5>();
    agree::<6>();
    agree::<7>();
    agree::<8>();
}
