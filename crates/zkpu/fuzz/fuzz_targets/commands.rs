//! Fuzz target: Commands are executed without a panic, whatever their fields: one reply each, with the data that was planned.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proofmill_zkpu_fuzz::targets;

fuzz_target!(|bytes: &[u8]| targets::commands(bytes));
