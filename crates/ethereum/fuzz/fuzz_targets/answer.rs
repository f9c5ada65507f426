//! Fuzz target: the body of a node's response is read without a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proofmill_ethereum_fuzz::targets;

fuzz_target!(|bytes: &[u8]| targets::answer(bytes));
