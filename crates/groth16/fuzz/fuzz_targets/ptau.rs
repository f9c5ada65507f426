//! `.ptau` files from anyone: `cargo +nightly fuzz run ptau`.
//!
//! The input is tried as it is, and as a list of edits (two bytes of offset, one of value) to a file
//! that snarkjs made: otherwise the fuzzer would hardly ever get past the sections' sizes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proofmill_groth16::snarkjs::{Powers, Ptau, PtauHeader};
use proofmill_groth16::{Engine, with_curve};
use proofmill_r1cs_fuzz::{Counting, reading};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Powers of tau for 2³ points.
const TEMPLATES: [&[u8]; 2] = [
    include_bytes!("../../tests/fixtures/setup/bn128_3.ptau"),
    include_bytes!("../../tests/fixtures/setup/bls12381_3.ptau"),
];

fn read<E: Engine>(bytes: &[u8]) {
    let Ok(ptau) = Ptau::<E>::parse(bytes) else {
        return;
    };
    let n = 1usize << ptau.header().power;
    let _ = ptau.g1(Powers::Tau, 2 * n - 1);
    let _ = ptau.g1(Powers::BetaTau, n);
    let _ = ptau.tau_g2(n);
    let _ = ptau.beta_g2();
    let _ = ptau.lagrange_g1(Powers::AlphaTau, ptau.header().power);
    // A level that need not be there.
    let _ = ptau.lagrange_tau_g2(u32::from(bytes[bytes.len() - 1]));
}

fn read_any(bytes: &[u8]) {
    reading(bytes.len(), || {
        if let Ok(header) = PtauHeader::read(bytes) {
            with_curve!(header.curve, E => read::<E>(bytes));
        }
    });
}

fuzz_target!(|bytes: &[u8]| {
    read_any(bytes);
    let mut file = TEMPLATES[usize::from(bytes.len() % 2 == 1)].to_vec();
    for edit in bytes.chunks_exact(3) {
        let offset = usize::from(u16::from_le_bytes([edit[0], edit[1]])) % file.len();
        file[offset] = edit[2];
    }
    read_any(&file);
});
