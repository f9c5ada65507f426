//! Untrusted encoded proofs of chunks: `cargo +nightly fuzz run chunk_proof`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proofmill_bitcoin::ChunkProof;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(chunk) = ChunkProof::from_bytes(bytes) {
        assert_eq!(chunk.to_bytes(), bytes);
    }
});
