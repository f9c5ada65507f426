//! What a blob's piece says of itself is read without a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proofmill_bus_fuzz::targets;

fuzz_target!(|bytes: &[u8]| targets::blob_pieces(bytes));
