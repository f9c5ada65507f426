//! Untrusted proofs, commitments and all kinds of key: `cargo +nightly fuzz run decode`.
//!
//! The input is tried unchanged, and as a list of edits (two bytes of offset, one of value) to valid proving
//! and verifying keys, plain ones and Mirage's, resealed with the right checksums: otherwise the fuzzer
//! would hardly ever get past the checksums.
#![no_main]

use std::sync::LazyLock;

use ark_bls12_381::{Bls12_381, Fr};
use ark_std::rand::{SeedableRng, rngs::StdRng};
use libfuzzer_sys::fuzz_target;
use proofmill_groth16::{
    PointCheck, PreparedVerifyingKey, Proof, ProvingKey, VerifyingKey, mirage, setup, verify,
};
use proofmill_r1cs::R1cs;
use sha2::{Digest, Sha256};

/// Plain keys for x² = y with y public, and Mirage's keys with x committed to. Each with the offset of the plain key in
/// its bytes.
static TEMPLATES: LazyLock<[(Vec<u8>, usize); 4]> = LazyLock::new(|| {
    let row = |column| vec![vec![(Fr::from(1), column)]];
    let system = R1cs::from_rows(2, 1, [row(2), row(2), row(1)]).unwrap();
    let rng = &mut StdRng::seed_from_u64(1);
    let key = setup::<Bls12_381>(&system, rng).unwrap();
    let circuit = mirage::CommittedR1cs::new(&system, 1).unwrap();
    let mirage = mirage::setup::<Bls12_381>(&[circuit], rng)
        .unwrap()
        .remove(0);
    // Before the plain key: prefix and count, eta; in the proving key also eta in the first group and one point.
    [
        (key.to_bytes(), 0),
        (key.vk.to_bytes(), 0),
        (mirage.to_bytes(), 40 + 192 + 96 + 96),
        (mirage.vk().to_bytes(), 40 + 192),
    ]
});

fn decode(bytes: &[u8]) {
    if let Ok(proof) = Proof::<Bls12_381>::from_bytes(bytes) {
        assert_eq!(proof.to_bytes(), bytes);
    }
    if let Ok(key) = ProvingKey::<Bls12_381>::from_bytes(bytes, PointCheck::Full) {
        assert_eq!(key.to_bytes(), bytes);
    }
    if let Ok(key) = VerifyingKey::<Bls12_381>::from_bytes(bytes) {
        assert_eq!(key.to_bytes(), bytes);
        let proof = Proof {
            a: key.alpha_g1,
            b: key.beta_g2,
            c: key.alpha_g1,
        };
        let _ = verify(&PreparedVerifyingKey::from(key), &[], &proof);
    }
    if let Ok(commitment) = mirage::Commitment::<Bls12_381>::from_bytes(bytes) {
        assert_eq!(commitment.to_bytes(), bytes);
    }
    if let Ok(opening) = mirage::Opening::<Bls12_381>::from_bytes(bytes) {
        assert_eq!(opening.to_bytes()[..], *bytes);
    }
    if let Ok(key) = mirage::ProvingKey::<Bls12_381>::from_bytes(bytes, PointCheck::Full) {
        assert_eq!(key.to_bytes(), bytes);
    }
    if let Ok(key) = mirage::VerifyingKey::<Bls12_381>::from_bytes(bytes) {
        assert_eq!(key.to_bytes(), bytes);
        let (a, b) = (key.plain.alpha_g1, key.plain.beta_g2);
        let commitment = mirage::Commitment { point: a };
        let key = mirage::PreparedVerifyingKey::from(key);
        let _ = mirage::verify(&key, (&[][..]).into(), &commitment, &Proof { a, b, c: a });
    }
}

/// Puts the right checksum in place of the last 32 bytes.
fn seal(bytes: &mut [u8], hashed: impl Fn(&[u8]) -> Vec<u8>) {
    let end = bytes.len() - 32;
    let checksum = Sha256::digest(hashed(&bytes[..end]));
    bytes[end..].copy_from_slice(&checksum);
}

fuzz_target!(|bytes: &[u8]| {
    decode(bytes);
    for (template, plain) in TEMPLATES.iter() {
        let mut key = template.clone();
        for edit in bytes.chunks_exact(3) {
            let offset = usize::from(u16::from_le_bytes([edit[0], edit[1]])) % key.len();
            key[offset] = edit[2];
        }
        if *plain > 0 {
            let end = key.len() - 32;
            seal(&mut key[*plain..end], <[u8]>::to_vec);
            // The outer checksum covers the plain key's own checksum.
            seal(&mut key, |before| {
                [&before[..*plain], &before[end - 32..]].concat()
            });
        } else {
            seal(&mut key, <[u8]>::to_vec);
        }
        decode(&key);
    }
});
