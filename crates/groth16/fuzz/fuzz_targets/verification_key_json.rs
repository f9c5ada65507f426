//! Untrusted `verification_key.json` of snarkjs: `cargo +nightly fuzz run verification_key_json`, after
//! `cargo +nightly run --example seeds`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proofmill_groth16::snarkjs::{curve_of_json, verifying_key_from_json, verifying_key_to_json};
use proofmill_groth16::{Curve, with_curve};
use proofmill_r1cs_fuzz::{Counting, reading};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fuzz_target!(|bytes: &[u8]| {
    let named = reading(bytes.len(), || curve_of_json(bytes));
    for curve in Curve::ALL {
        with_curve!(curve, E => {
            let Ok(read) = reading(bytes.len(), || verifying_key_from_json::<E>(bytes)) else {
                continue;
            };
            assert!(matches!(named, Ok(None)) || matches!(named, Ok(Some(name)) if name == curve));
            let again = verifying_key_to_json(&read);
            assert_eq!(verifying_key_from_json::<E>(again.as_bytes()).unwrap(), read);
        });
    }
});
