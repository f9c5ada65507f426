//! Fuzz target: a raw transaction is decoded without a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proofmill_ethereum_fuzz::targets;

fuzz_target!(|bytes: &[u8]| targets::transaction(bytes));
