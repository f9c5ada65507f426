//! Witnesses of batches are read without a panic, whatever the bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proofmill_directory_fuzz::targets;

fuzz_target!(|bytes: &[u8]| targets::witness(bytes));
