//! Points as snarkjs's binary files hold them: coordinates in Montgomery form, little-endian, x then
//! y, for the second group the real part first; infinity is all zeros. In hashes they are
//! uncompressed: big-endian numbers, the imaginary part first, infinity again all zeros.

use ark_ff::{BigInteger, Field, PrimeField};
use proofmill_r1cs::iden3::{Cursor, FormatError, MontgomeryField, Reason, width};
use rayon::prelude::*;

use crate::PointGroup;

/// Points one task converts.
const CHUNK: usize = 1 << 10;

type Base<P> = <<P as ark_ec::AffineRepr>::BaseField as Field>::BasePrimeField;

/// Bytes of a point.
pub(crate) fn point_bytes<P: PointGroup>() -> usize {
    2 * P::BaseField::extension_degree() as usize * width::<Base<P>>()
}

/// A point of the curve's prime-order subgroup.
fn read_point<P: PointGroup>(bytes: &[u8]) -> Result<P, Reason> {
    if bytes.iter().all(|byte| *byte == 0) {
        return Ok(P::zero());
    }
    let mut coordinates = bytes.chunks(bytes.len() / 2).map(|coordinate| {
        let elements = coordinate
            .chunks(width::<Base<P>>())
            .map(Base::<P>::from_montgomery_le);
        P::BaseField::from_base_prime_field_elems(elements.collect::<Option<Vec<_>>>()?)
    });
    let mut next = || coordinates.next().flatten().ok_or(Reason::NotCanonical);
    let point = P::from_coordinates(next()?, next()?);
    if !point.on_curve() {
        return Err(Reason::NotOnCurve);
    }
    if !point.in_subgroup() {
        return Err(Reason::NotInSubgroup);
    }
    Ok(point)
}

/// The next `count` points, each checked, in parallel.
pub(crate) fn read_points<P: PointGroup>(
    cursor: &mut Cursor<'_>,
    count: u64,
) -> Result<Vec<P>, FormatError> {
    let size = point_bytes::<P>();
    let start = cursor.offset();
    let bytes = cursor.items(count, size)?;
    let mut points = vec![P::zero(); bytes.len() / size];
    let bad = points
        .par_chunks_mut(CHUNK)
        .zip(bytes.par_chunks(CHUNK * size))
        .enumerate()
        .filter_map(|(chunk, (points, bytes))| {
            for (i, (point, bytes)) in points.iter_mut().zip(bytes.chunks(size)).enumerate() {
                match read_point(bytes) {
                    Ok(read) => *point = read,
                    Err(reason) => return Some((chunk * CHUNK + i, reason)),
                }
            }
            None
        })
        .min_by_key(|(i, _)| *i);
    match bad {
        None => Ok(points),
        Some((i, reason)) => Err(cursor.error_at(start + (i * size) as u64, reason)),
    }
}

/// The bytes of many points, each appended by `write`, made in parallel.
fn convert<P: PointGroup>(points: &[P], write: impl Fn(&P, &mut Vec<u8>) + Sync) -> Vec<u8> {
    let chunks: Vec<Vec<u8>> = points
        .par_chunks(CHUNK)
        .map(|points| {
            let mut bytes = Vec::with_capacity(points.len() * point_bytes::<P>());
            points.iter().for_each(|point| write(point, &mut bytes));
            bytes
        })
        .collect();
    chunks.concat()
}

/// Points as files hold them.
pub(crate) fn montgomery_bytes<P: PointGroup>(points: &[P]) -> Vec<u8> {
    convert(points, |point, out| match point.xy() {
        None => out.resize(out.len() + point_bytes::<P>(), 0),
        Some((x, y)) => {
            for coordinate in [x, y] {
                for element in coordinate.to_base_prime_field_elements() {
                    element.write_montgomery_le(out);
                }
            }
        }
    })
}

/// Points as transcripts hash them.
pub(crate) fn uncompressed_bytes<P: PointGroup>(points: &[P]) -> Vec<u8> {
    convert(points, |point, out| match point.xy() {
        None => out.resize(out.len() + point_bytes::<P>(), 0),
        Some((x, y)) => {
            for coordinate in [x, y] {
                let start = out.len();
                for element in coordinate.to_base_prime_field_elements() {
                    out.extend(element.into_bigint().to_bytes_le());
                }
                // Reversing both parts at once also puts the imaginary one first.
                out[start..].reverse();
            }
        }
    })
}
