//! Openings are read without a panic, whatever the bytes, and have one encoding.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proofmill_ipa_fuzz::targets;

fuzz_target!(|bytes: &[u8]| targets::decode(bytes));
