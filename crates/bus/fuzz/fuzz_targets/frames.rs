//! A log's stream is read without a panic, whatever its messages hold.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proofmill_bus_fuzz::targets;

fuzz_target!(|bytes: &[u8]| targets::frames(bytes));
