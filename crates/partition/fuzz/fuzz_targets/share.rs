//! Shares of traces and paths of leaves are read without a panic, whatever the bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proofmill_partition_fuzz::targets;

fuzz_target!(|bytes: &[u8]| targets::share(bytes));
