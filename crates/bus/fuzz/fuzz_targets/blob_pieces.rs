//! Fuzz target: the subject and the size header of a blob's piece are read without a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proofmill_bus_fuzz::targets;

fuzz_target!(|bytes: &[u8]| targets::blob_pieces(bytes));
