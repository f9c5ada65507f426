//! Valid inputs to start from.

use proofmill_ipa::{Opening, Scalar, Srs};

/// A rollup proof as barretenberg made it, and compact openings of no rounds and of three.
pub fn decode() -> Vec<Vec<u8>> {
    let rollup = include_bytes!("../../tests/data/rollup-0.proof").to_vec();
    let compact = [0, 3].map(|log_size| {
        let coefficients: Vec<_> = (1..=1u64 << log_size).map(Scalar::from).collect();
        Opening::prove(&Srs::derive(log_size), &coefficients, Scalar::from(5))
            .expect("a challenge other than zero")
            .to_compact()
    });
    [rollup].into_iter().chain(compact).collect()
}
