//! Untrusted encoded statements: `cargo +nightly fuzz run statement`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proofmill_bitcoin::ChunkStatement;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(statement) = ChunkStatement::from_bytes(bytes) {
        assert_eq!(statement.to_bytes(), bytes);
        let _ = statement.total_work();
    }
});
