//! Proofs, chunk proofs and both kinds of key from anyone: `cargo +nightly fuzz run decode`.
//!
//! The input is tried as it is, and as a list of edits (two bytes of offset, one of value) to a
//! valid proving and a valid verifying key, resealed with the right checksum: otherwise the fuzzer
//! would hardly ever get past it.
#![no_main]

use std::sync::LazyLock;

use ark_bls12_381::{Bls12_381, Fr};
use ark_std::rand::{SeedableRng, rngs::StdRng};
use libfuzzer_sys::fuzz_target;
use proofmill_groth16::header_chain::ChunkProof;
use proofmill_groth16::{
    Check, PreparedVerifyingKey, Proof, ProvingKey, VerifyingKey, setup, verify,
};
use proofmill_r1cs::R1cs;
use sha2::{Digest, Sha256};

/// Keys for x² = y with y public.
static TEMPLATES: LazyLock<[Vec<u8>; 2]> = LazyLock::new(|| {
    let row = |column| vec![vec![(Fr::from(1), column)]];
    let system = R1cs::from_rows(2, 1, [row(2), row(2), row(1)]).unwrap();
    let key = setup::<Bls12_381>(&system, &mut StdRng::seed_from_u64(1)).unwrap();
    [key.to_bytes(), key.vk.to_bytes()]
});

fn decode(bytes: &[u8]) {
    if let Ok(proof) = Proof::<Bls12_381>::from_bytes(bytes) {
        assert_eq!(proof.to_bytes(), bytes);
    }
    if let Ok(chunk) = ChunkProof::from_bytes(bytes) {
        assert_eq!(chunk.to_bytes(), bytes);
    }
    if let Ok(key) = ProvingKey::<Bls12_381>::from_bytes(bytes, Check::Full) {
        assert_eq!(key.to_bytes(), bytes);
    }
    if let Ok(key) = VerifyingKey::<Bls12_381>::from_bytes(bytes) {
        assert_eq!(key.to_bytes(), bytes);
        let proof = Proof { a: key.alpha_g1, b: key.beta_g2, c: key.alpha_g1 };
        let _ = verify(&PreparedVerifyingKey::from(key), &[], &proof);
    }
}

fuzz_target!(|bytes: &[u8]| {
    decode(bytes);
    for template in TEMPLATES.iter() {
        let mut key = template[..template.len() - 32].to_vec();
        for edit in bytes.chunks_exact(3) {
            let offset = usize::from(u16::from_le_bytes([edit[0], edit[1]])) % key.len();
            key[offset] = edit[2];
        }
        let checksum = Sha256::digest(&key);
        key.extend(checksum);
        decode(&key);
    }
});
