//! Valid inputs to start from: what [`batch`](super::targets::batch) reads.

/// Batches of valid proofs, and with one or several false ones, over both curves.
pub fn batch() -> Vec<Vec<u8>> {
    let mut inputs = Vec::new();
    for curve in [0, 1] {
        for size in [1, 5, 12] {
            let valid = |number: u8| [number, number, 0, 0];
            let mut bytes = vec![curve, 1];
            bytes.extend((0..size).flat_map(valid));
            inputs.push(bytes.clone());
            // The third is given the statement of another.
            if let Some(statement) = bytes.get_mut(2 + 4 * 2 + 1) {
                *statement += 2;
            }
            inputs.push(bytes.clone());
            // The points of another are changed.
            bytes[4..6].copy_from_slice(&[40, 0x80]);
            inputs.push(bytes);
        }
    }
    inputs
}
