//! Points from bytes.

use ark_ec::AffineRepr;
use ark_serialize::{Compress, Validate};
use proofmill_r1cs::iden3::MappedFile;
use rayon::prelude::*;

use crate::PointGroup;
use crate::subgroup::first_outside;

/// Points one task decodes.
const CHUNK: usize = 1 << 10;

/// The most bytes of a mapped file that reading points keeps in memory at once.
pub const READING_WINDOW: usize = 32 << 20;

/// The bytes of so many whole chunks of items of `size` bytes as are in memory at once.
pub(crate) const fn window(size: usize, chunk: usize) -> usize {
    let items = size * chunk;
    let chunks = READING_WINDOW / items;
    items * if chunks == 0 { 1 } else { chunks }
}

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
/// its curve or outside the subgroup. Of `mapped`, whose bytes they may be, what was read is released.
///
/// The check is made apart from decoding: for uncompressed points of BLS12-381 arkworks' own
/// validation tests the subgroup on the assumption that the point is on the curve.
pub(crate) fn read_points<A: PointGroup>(
    bytes: &[u8],
    validate: bool,
    mapped: Option<&MappedFile>,
) -> Option<Vec<A>> {
    let size = uncompressed_size::<A>();
    let window = window(size, CHUNK);
    let mut points = vec![A::zero(); bytes.len() / size];
    for (points, bytes) in points.chunks_mut(window / size).zip(bytes.chunks(window)) {
        let chunks = points.par_chunks_mut(CHUNK);
        let sound = chunks
            .zip(bytes.par_chunks(CHUNK * size))
            .all(|(points, bytes)| {
                let encoded = bytes.chunks_exact(size);
                points.iter_mut().zip(encoded).all(|(point, bytes)| {
                    let decoded = A::deserialize_with_mode(bytes, Compress::No, Validate::No);
                    let sound = decoded.is_ok_and(|decoded| {
                        *point = decoded;
                        true
                    });
                    sound && (!validate || point.on_curve())
                })
            });
        if !sound {
            return None;
        }
        if let Some(file) = mapped {
            file.release(bytes);
        }
    }
    (!validate || first_outside(&points).is_none()).then_some(points)
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
