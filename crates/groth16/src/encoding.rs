//! Points from bytes.

use ark_ec::AffineRepr;
use ark_serialize::{Compress, Validate};
use rayon::prelude::*;

/// Points one task decodes.
const CHUNK: usize = 1 << 10;

pub(crate) fn compressed_size<A: AffineRepr>() -> usize {
    A::zero().compressed_size()
}

pub(crate) fn uncompressed_size<A: AffineRepr>() -> usize {
    A::zero().uncompressed_size()
}

/// A compressed point, fully checked; nothing unless `bytes` is its one encoding.
pub(crate) fn read_compressed<A: AffineRepr>(bytes: &[u8]) -> Option<A> {
    let point = A::deserialize_with_mode(bytes, Compress::Yes, Validate::Yes).ok()?;
    point.check().ok()?;
    let mut again = Vec::with_capacity(bytes.len());
    point.serialize_compressed(&mut again).ok()?;
    (again == bytes).then_some(point)
}

/// Uncompressed points, one after the other; nothing if one is malformed or, with `validate`, off
/// its curve or outside the subgroup.
///
/// The check is made apart from decoding: for uncompressed points of BLS12-381 arkworks' own
/// validation tests the subgroup on the assumption that the point is on the curve.
pub(crate) fn read_points<A: AffineRepr>(bytes: &[u8], validate: bool) -> Option<Vec<A>> {
    let size = uncompressed_size::<A>();
    let chunks: Option<Vec<Vec<A>>> = bytes
        .par_chunks(size * CHUNK)
        .map(|bytes| {
            bytes
                .chunks(size)
                .map(|bytes| {
                    let point = A::deserialize_with_mode(bytes, Compress::No, Validate::No).ok()?;
                    if validate {
                        point.check().ok()?;
                    }
                    Some(point)
                })
                .collect()
        })
        .collect();
    Some(chunks?.concat())
}

pub(crate) fn write_points<A: AffineRepr>(points: &[A], out: &mut Vec<u8>) {
    let chunks: Vec<Vec<u8>> = points
        .par_chunks(CHUNK)
        .map(|points| {
            let mut bytes = Vec::with_capacity(points.len() * uncompressed_size::<A>());
            for point in points {
                point
                    .serialize_uncompressed(&mut bytes)
                    .expect("writing to a vector");
            }
            bytes
        })
        .collect();
    chunks.iter().for_each(|chunk| out.extend_from_slice(chunk));
}
