//! Untrusted keys of snarkjs: `cargo +nightly fuzz run zkey`, after `cargo +nightly run
//! --example seeds`.
//!
//! The input is tried unchanged, and as a list of edits (two bytes of offset, one of value) to a key
//! that snarkjs made. Points are checked in every fourth key only: that takes most of the time.
#![no_main]

use std::io::Cursor;

use libfuzzer_sys::fuzz_target;
use proofmill_groth16::snarkjs::ZkeyFile;
use proofmill_groth16::{PointCheck, ResidentForm, ResidentKey, with_curve};
use proofmill_r1cs_fuzz::{Counting, reading};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const TEMPLATE: &[u8] = include_bytes!("../../tests/fixtures/bn254/circuit.zkey");

fn read(bytes: &[u8], check: PointCheck) {
    let Ok(file) = reading(bytes.len(), || ZkeyFile::parse(bytes)) else {
        return;
    };
    let _ = reading(bytes.len(), || file.info());
    with_curve!(file.curve(), E => {
        let Ok(key) = reading(bytes.len(), || file.read::<E>(check)) else {
            return;
        };
        // Sections of unknown kinds are not kept; a key without them is written back to the same bytes.
        let known = file.container().sections().all(|(kind, _)| (1..=10).contains(&kind));
        let out = key.write(Cursor::new(Vec::new())).unwrap().into_inner();
        assert!(!known || out == bytes);
        // No key that was read may make the prover panic.
        let z = vec![1u64.into(); key.variables()];
        let resident = ResidentKey::from_zkey(key, ResidentForm::Plain).unwrap();
        if resident.prover().domain_size() <= 64 {
            let _ = resident.prover().evaluate(&z).map(|(e, _)| resident.prover().quotient(e));
        }
    });
}

fuzz_target!(|bytes: &[u8]| {
    let check = match bytes.first() {
        Some(byte) if byte % 4 == 0 => PointCheck::Full,
        _ => PointCheck::Skip,
    };
    read(bytes, check);
    let mut key = TEMPLATE.to_vec();
    for edit in bytes.chunks_exact(3).take(16) {
        let offset = usize::from(u16::from_le_bytes([edit[0], edit[1]])) % key.len();
        key[offset] = edit[2];
    }
    read(&key, check);
});
