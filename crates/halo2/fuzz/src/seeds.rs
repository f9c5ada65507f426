//! Valid inputs to start from.

/// A proof of a small circuit, its key, and an Orchard bundle.
pub fn decode() -> Vec<Vec<u8>> {
    vec![
        include_bytes!("../../tests/data/small.proof").to_vec(),
        include_bytes!("../../tests/data/small.key").to_vec(),
        include_bytes!("../../tests/data/orchard-1.bundle").to_vec(),
    ]
}
