//! Fuzz target: PDUs are read without a panic, whatever the bytes and however they are cut, and a session answers or
//! closes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proofmill_zkpu_fuzz::targets;

fuzz_target!(|bytes: &[u8]| targets::pdus(bytes));
