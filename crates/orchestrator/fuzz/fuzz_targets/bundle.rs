//! A bundle of dead letters is read without a panic, whatever it holds.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proofmill_orchestrator_fuzz::targets;

fuzz_target!(|bytes: &[u8]| targets::bundle(bytes));
