//! Decoding of untrusted partitions: no bytes cause a panic, and a decoded partition encodes to the same bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proofmill_partition_fuzz::targets;

fuzz_target!(|bytes: &[u8]| targets::decode(bytes));
