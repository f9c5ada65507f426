//! Fuzz target: a log's stream is read without a panic, whatever its messages contain.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proofmill_bus_fuzz::targets;

fuzz_target!(|bytes: &[u8]| targets::frames(bytes));
