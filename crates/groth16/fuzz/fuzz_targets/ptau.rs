//! Untrusted `.ptau` files: `cargo +nightly fuzz run ptau`.
//!
//! The input is tried unchanged, and as a list of edits (two bytes of offset, one of value) to a file
//! that snarkjs made: otherwise the fuzzer would hardly ever get past the sections' sizes. Testing points
//! takes most of the time, so most edited files have only points at infinity: a hundred times as many
//! files are tried.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proofmill_groth16::snarkjs::{Powers, Ptau, PtauHeader};
use proofmill_groth16::{SnarkCurve, with_curve};
use proofmill_r1cs_fuzz::{Counting, reading};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Powers of tau for 2³ points.
const TEMPLATES: [&[u8]; 2] = [
    include_bytes!("../../tests/fixtures/setup/bn128_3.ptau"),
    include_bytes!("../../tests/fixtures/setup/bls12381_3.ptau"),
];

fn read<E: SnarkCurve>(bytes: &[u8]) {
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

/// The same with every point at infinity.
fn without_points(template: &[u8]) -> Vec<u8> {
    let mut file = template.to_vec();
    // The magic, the version and the number of sections; then for each its kind and length.
    let mut start = 12;
    while let Some(head) = file.get(start..start + 12) {
        let kind = u32::from_le_bytes(head[..4].try_into().unwrap());
        let length = u64::from_le_bytes(head[4..].try_into().unwrap());
        let content = start + 12..start + 12 + length as usize;
        start = content.end;
        const HEADER: u32 = 1;
        if kind != HEADER {
            file[content].fill(0);
        }
    }
    file
}

fuzz_target!(|bytes: &[u8]| {
    read_any(bytes);
    let template = TEMPLATES[usize::from(bytes.len() % 2 == 1)];
    let mut file = if bytes.len() % 64 < 2 {
        template.to_vec()
    } else {
        without_points(template)
    };
    for edit in bytes.chunks_exact(3) {
        let offset = usize::from(u16::from_le_bytes([edit[0], edit[1]])) % file.len();
        file[offset] = edit[2];
    }
    read_any(&file);
});
