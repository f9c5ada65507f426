//! Proofs of circuits in parts and their verifying keys are read without a panic, whatever the bytes; only the
//! proof that was made verifies.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proofmill_partition_fuzz::targets;

fuzz_target!(|bytes: &[u8]| targets::proof(bytes));
