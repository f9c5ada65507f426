//! Points and other items in a key's sections.

use ark_ff::{Field, Zero};
use proofmill_files::MappedFile;
use proofmill_r1cs::iden3::{Cursor, FormatError, MontgomeryField, Reason, width};
use rayon::prelude::*;

use crate::keys::encoding::window_bytes;
use crate::keys::subgroup::first_outside;
use crate::{PointCheck, PointGroup};

/// Number of points or other items that one task decodes.
const CHUNK_ITEMS: usize = 1 << 12;

type Base<P> = <<P as ark_ec::AffineRepr>::BaseField as Field>::BasePrimeField;

/// Bytes of a point.
pub(in crate::snarkjs) fn point_bytes<P: PointGroup>() -> usize {
    2 * P::BaseField::extension_degree() as usize * width::<Base<P>>()
}

/// Decodes a point; only its coordinates are checked, to be canonical.
fn decode<P: PointGroup>(bytes: &[u8]) -> Option<P> {
    let (x, y) = bytes.split_at(bytes.len() / 2);
    let (x, y) = (coordinate::<P>(x)?, coordinate::<P>(y)?);
    // No curve here has a point (0, 0).
    Some(if x.is_zero() && y.is_zero() {
        P::zero()
    } else {
        P::from_coordinates(x, y)
    })
}

fn coordinate<P: PointGroup>(bytes: &[u8]) -> Option<P::BaseField> {
    let mut canonical = true;
    let elements = bytes.chunks_exact(width::<Base<P>>()).map(|bytes| {
        Base::<P>::from_montgomery_le(bytes).unwrap_or_else(|| {
            canonical = false;
            Base::<P>::zero()
        })
    });
    let value = P::BaseField::from_base_prime_field_elems(elements);
    value.filter(|_| canonical)
}

/// Reads the next `count` points, in parallel. If the bytes lie in the file `mapped`, the pages that were read
/// are released.
///
/// Coordinates are always checked to be canonical; with [`PointCheck::Full`] also that each point is
/// on its curve and in the subgroup.
pub(in crate::snarkjs) fn read_points<P: PointGroup>(
    cursor: &mut Cursor<'_>,
    count: u64,
    check: PointCheck,
    mapped: Option<&MappedFile>,
) -> Result<Vec<P>, FormatError> {
    let size = point_bytes::<P>();
    let start = cursor.offset();
    let bytes = cursor.items(count, size)?;
    let mut points = vec![P::zero(); bytes.len() / size];
    let at = |(i, reason): (usize, Reason)| cursor.error_at(start + (i * size) as u64, reason);
    read_items(&mut points, bytes, size, mapped, |points, bytes| {
        read_chunk(points, bytes, check)
    })
    .map_err(at)?;
    if check == PointCheck::Full
        && let Some(i) = first_outside(&points)
    {
        return Err(at((i, Reason::NotInSubgroup)));
    }
    Ok(points)
}

/// Fills `items` from their encodings of `size` bytes each: calls `read` for one chunk after the other, in parallel.
/// The error has the index of the first item that is refused. Pages of `mapped` that were read are released.
pub(super) fn read_items<T: Send>(
    items: &mut [T],
    bytes: &[u8],
    size: usize,
    mapped: Option<&MappedFile>,
    read: impl Fn(&mut [T], &[u8]) -> Result<(), (usize, Reason)> + Sync,
) -> Result<(), (usize, Reason)> {
    let window = window_bytes(size, CHUNK_ITEMS);
    let windows = items.chunks_mut(window / size).zip(bytes.chunks(window));
    for (number, (items, bytes)) in windows.enumerate() {
        let bad = items
            .par_chunks_mut(CHUNK_ITEMS)
            .zip(bytes.par_chunks(CHUNK_ITEMS * size))
            .enumerate()
            .filter_map(|(chunk, (items, bytes))| {
                let (i, reason) = read(items, bytes).err()?;
                Some((chunk * CHUNK_ITEMS + i, reason))
            })
            .min_by_key(|(i, _)| *i);
        if let Some((i, reason)) = bad {
            return Err((number * (window / size) + i, reason));
        }
        if let Some(file) = mapped {
            file.release(bytes);
        }
    }
    Ok(())
}

/// The number of points encoded in `bytes` that are not at infinity. If `bytes` lie in the file `mapped`, the
/// pages that were read are released.
pub(super) fn count_finite<P: PointGroup>(bytes: &[u8], mapped: Option<&MappedFile>) -> u64 {
    let size = point_bytes::<P>();
    let is_finite = |point: &&[u8]| point.iter().any(|byte| *byte != 0);
    let mut count = 0;
    for window in bytes.chunks(window_bytes(size, CHUNK_ITEMS)) {
        let chunks = window.par_chunks(CHUNK_ITEMS * size);
        count += chunks
            .map(|chunk| chunk.chunks_exact(size).filter(is_finite).count() as u64)
            .sum::<u64>();
        if let Some(file) = mapped {
            file.release(window);
        }
    }
    count
}

/// Fills `points`; the error has the index of the first that is refused.
fn read_chunk<P: PointGroup>(
    points: &mut [P],
    bytes: &[u8],
    check: PointCheck,
) -> Result<(), (usize, Reason)> {
    let encoded = bytes.chunks_exact(point_bytes::<P>());
    for (i, (point, bytes)) in points.iter_mut().zip(encoded).enumerate() {
        *point = decode(bytes).ok_or((i, Reason::NotCanonical))?;
        if check == PointCheck::Full && !point.on_curve() {
            return Err((i, Reason::NotOnCurve));
        }
    }
    Ok(())
}

/// Appends the encodings of points in a section.
pub(super) fn write_points<P: PointGroup>(points: &[P], out: &mut Vec<u8>) {
    for point in points {
        match point.xy() {
            None => out.resize(out.len() + point_bytes::<P>(), 0),
            Some((x, y)) => {
                for coordinate in [x, y] {
                    for element in coordinate.to_base_prime_field_elements() {
                        element.write_montgomery_le(out);
                    }
                }
            }
        }
    }
}
