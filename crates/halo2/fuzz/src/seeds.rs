//! Valid inputs to start from.

use proofmill_halo2::{Scalar, encode_instances};

/// A proof of a small circuit, its key and public inputs, and an Orchard bundle.
pub fn decode() -> Vec<Vec<u8>> {
    vec![
        encode_instances(&[vec![[3, 360].map(Scalar::from).to_vec()]]),
        include_bytes!("../../tests/data/small.proof").to_vec(),
        include_bytes!("../../tests/data/small.key").to_vec(),
        include_bytes!("../../tests/data/orchard-1.bundle").to_vec(),
    ]
}
