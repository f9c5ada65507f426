//! Messages between the leader and the shards of an aggregation are taken without a panic, whatever the bytes, and have
//! one encoding.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proofmill_aggregation_fuzz::targets;

fuzz_target!(|bytes: &[u8]| targets::sharded(bytes));
