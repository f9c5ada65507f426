//! Valid inputs to start from.

use proofmill_kzg::{BLOB_BYTES, CELL_BYTES, Request};

/// Commitment to the polynomial 2, from the consensus specification's vectors
/// (`verify_blob_kzg_proof_case_correct_proof_1`).
const TWO: [u8; 48] = [
    0xa5, 0x72, 0xcb, 0xea, 0x90, 0x4d, 0x67, 0x46, 0x88, 0x08, 0xc8, 0xeb, 0x50, 0xa9, 0x45, 0x0c,
    0x97, 0x21, 0xdb, 0x30, 0x91, 0x28, 0x01, 0x25, 0x43, 0x90, 0x2d, 0x0a, 0xc3, 0x58, 0xa6, 0x2a,
    0xe2, 0x8f, 0x75, 0xbb, 0x8f, 0x1c, 0x7c, 0x42, 0xc3, 0x9a, 0x8c, 0x55, 0x29, 0xbf, 0x0f, 0x4e,
];

/// The blob whose elements are all two, and two of its cells. Its proof is the point at infinity.
pub fn decode() -> Vec<Vec<u8>> {
    let mut infinity = [0; 48];
    infinity[0] = 0xc0;
    let data: Vec<u8> = (0..BLOB_BYTES)
        .map(|at| if at % 32 == 31 { 2 } else { 0 })
        .collect();
    let (blob, _) = data.split_first_chunk().expect("a blob");
    let (cell, _) = data.split_first_chunk::<CELL_BYTES>().expect("a cell");
    let cells = [0, 127].map(|index| {
        let request = Request::Cell {
            index,
            commitment: &TWO,
            proof: &infinity,
            cell,
        };
        request.encode()
    });
    let blob = Request::Blob {
        commitment: &TWO,
        proof: &infinity,
        blob,
    };
    [blob.encode()].into_iter().chain(cells).collect()
}
