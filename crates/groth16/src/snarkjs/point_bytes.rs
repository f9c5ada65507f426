//! The encoding of points in the transcripts that snarkjs hashes: x, then y, as big-endian numbers. A coordinate of the
//! second group has its imaginary part first. Infinity is all zeros.

use ark_ff::{BigInteger, Field, PrimeField};
use rayon::prelude::*;

use super::zkey::point_bytes;
use crate::PointGroup;

/// Number of points that one task converts.
const CHUNK_POINTS: usize = 1 << 10;

/// The encodings of `points`, one after the other, computed in parallel.
pub(crate) fn uncompressed_bytes<P: PointGroup>(points: &[P]) -> Vec<u8> {
    let chunks: Vec<Vec<u8>> = points
        .par_chunks(CHUNK_POINTS)
        .map(|points| {
            let mut bytes = Vec::with_capacity(points.len() * point_bytes::<P>());
            points.iter().for_each(|point| write(point, &mut bytes));
            bytes
        })
        .collect();
    chunks.concat()
}

fn write<P: PointGroup>(point: &P, out: &mut Vec<u8>) {
    let Some((x, y)) = point.xy() else {
        out.resize(out.len() + point_bytes::<P>(), 0);
        return;
    };
    for coordinate in [x, y] {
        let start = out.len();
        for element in coordinate.to_base_prime_field_elements() {
            out.extend(element.into_bigint().to_bytes_le());
        }
        // Reversing both parts at once also puts the imaginary one first.
        out[start..].reverse();
    }
}
