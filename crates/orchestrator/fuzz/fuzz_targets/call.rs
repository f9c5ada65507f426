//! A peer's call is decoded, admitted or refused, and heard, without a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proofmill_orchestrator_fuzz::targets;

fuzz_target!(|bytes: &[u8]| targets::call(bytes));
