//! Proofs over BLS12-377 whose products in the first group a ZKPU computes, over NVMe/TCP.

mod common;

use std::io::Cursor;
use std::sync::Arc;

use ark_bls12_377::Fr;
use ark_ec::AffineRepr;
use ark_ff::One;
use ark_snark::SNARK;
use ark_std::rand::{SeedableRng, rngs::StdRng};
use common::{Server, model, options};
use proofmill_groth16::snarkjs::{ZkeyFile, setup_zkey};
use proofmill_groth16::{
    Bls12_377, Curve, DeviceKey, Offload, Placement, PointCheck, PreparedVerifyingKey, Proof,
    ResidentForm, ResidentKey, VerifyingKey, verify,
};
use proofmill_r1cs::R1cs;
use proofmill_r1cs::iden3::{LabelledR1cs, R1csFile, write_r1cs};
use proofmill_zkpu::device::{ZkpuOptions, zkpu};

const LENGTH: usize = 200;

/// A key from a `.zkey` made of a `.r1cs`, and an assignment of its circuit.
fn key(rng: &mut StdRng) -> (Arc<ResidentKey<Bls12_377>>, Vec<Fr>) {
    let one = Fr::one();
    let rows = [0, 1, 2].map(|shift| (0..LENGTH).map(|i| vec![(one, 1 + i + shift)]).collect());
    let system = R1cs::from_rows(3, LENGTH, rows).unwrap();
    let plain = LabelledR1cs::plain(system).unwrap();
    let circuit = write_r1cs(Cursor::new(Vec::new()), &plain).unwrap();
    let circuit = circuit.into_inner();
    let file = R1csFile::parse(&circuit).unwrap();
    let bytes = setup_zkey::<Bls12_377, _>(&file, rng, Cursor::new(Vec::new()), &|_| {});
    let bytes = bytes.unwrap().into_inner();
    let zkey = ZkeyFile::parse(&bytes).unwrap();
    assert_eq!(zkey.curve(), Curve::Bls12_377);
    let zkey = zkey.read::<Bls12_377>(PointCheck::Full).unwrap();
    zkey.verifying_key().require_secure().unwrap();
    let mut z = vec![one, Fr::from(3u64), Fr::from(5u64)];
    for i in 0..LENGTH {
        z.push(z[i + 1] * z[i + 2]);
    }
    let key = ResidentKey::from_zkey(zkey, ResidentForm::Plain).unwrap();
    (Arc::new(key), z)
}

/// Whether arkworks' verifier accepts a proof.
fn ark_accepts(vk: &VerifyingKey<Bls12_377>, inputs: &[Fr], proof: &Proof<Bls12_377>) -> bool {
    let vk = ark_groth16::VerifyingKey::<Bls12_377> {
        alpha_g1: vk.alpha_g1,
        beta_g2: vk.beta_g2,
        gamma_g2: vk.gamma_g2,
        delta_g2: vk.delta_g2,
        gamma_abc_g1: vk.instance.clone(),
    };
    let proof = ark_groth16::Proof {
        a: proof.a,
        b: proof.b,
        c: proof.c,
    };
    ark_groth16::Groth16::<Bls12_377>::verify(&vk, inputs, &proof).unwrap()
}

#[test]
fn a_zkpu_computes_the_products_of_proofs() {
    let rng = &mut StdRng::seed_from_u64(12);
    let (key, z) = key(rng);
    let server = Server::start(model(1 << 24, 1), 0);
    let device = Arc::new(zkpu(ZkpuOptions::new(options(server.address))).unwrap());
    let on = DeviceKey::load(Arc::clone(&key), device, Offload::Always, 1 << 20).unwrap();
    let expected = Placement {
        transforms: false,
        b_g2: false,
        a: true,
        b_g1: true,
        l: true,
        h: true,
    };
    assert_eq!(on.placement(), expected);
    let verifier = PreparedVerifyingKey::from(key.vk().clone());
    let inputs = &z[1..key.vk().instance.len()];
    for proof in [
        on.prove(&z, rng).unwrap().0,
        on.prove(&z, rng).unwrap().0,
        key.prover().prove(&z, rng).unwrap().0,
    ] {
        let verdict = |inputs: &[Fr], proof: &Proof<Bls12_377>| {
            let verdict = verify(&verifier, inputs, proof).is_ok();
            assert_eq!(verdict, ark_accepts(key.vk(), inputs, proof));
            verdict
        };
        assert!(verdict(inputs, &proof));
        let bytes = proof.to_bytes();
        assert_eq!(Proof::<Bls12_377>::from_bytes(&bytes), Ok(proof));
        let mut wrong = inputs.to_vec();
        wrong[1] += Fr::one();
        assert!(!verdict(&wrong, &proof));
        let generator = ark_bls12_377::G1Affine::generator();
        let wrong = Proof {
            c: (proof.c + generator).into(),
            ..proof
        };
        assert!(!verdict(inputs, &wrong));
        let swapped = Proof {
            a: proof.c,
            b: proof.b,
            c: proof.a,
        };
        assert!(!verdict(inputs, &swapped));
    }
    // A is off its place in the witness: a false proof.
    let mut z = z.clone();
    *z.last_mut().unwrap() += Fr::one();
    let (false_proof, _) = on.prove(&z, rng).unwrap();
    assert!(verify(&verifier, inputs, &false_proof).is_err());
}
