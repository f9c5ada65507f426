//! A batch names the proofs that are false by themselves, whatever is changed in them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proofmill_verifier_fuzz::targets;

fuzz_target!(|bytes: &[u8]| targets::batch(bytes));
