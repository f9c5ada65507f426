//! Untrusted `public.json` of snarkjs: `cargo +nightly fuzz run public_json`, after `cargo +nightly
//! run --example seeds`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proofmill_groth16::snarkjs::{inputs_from_json, inputs_to_json};
use proofmill_r1cs_fuzz::{Counting, reading};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(inputs) = reading(bytes.len(), || inputs_from_json::<ark_bn254::Fr>(bytes)) {
        let again = inputs_to_json(&inputs);
        assert_eq!(
            inputs_from_json::<ark_bn254::Fr>(again.as_bytes()).unwrap(),
            inputs
        );
    }
    let _ = reading(bytes.len(), || inputs_from_json::<ark_bls12_381::Fr>(bytes));
});
