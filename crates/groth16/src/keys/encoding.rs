//! Encodings of points: decoding with checks, and writing.

use ark_ec::AffineRepr;
use ark_ff::{Field, PrimeField};
use ark_serialize::{CanonicalDeserialize, Compress, Validate};
use proofmill_files::MappedFile;
use proofmill_kernels::{in_subgroup_each, point_of_x_each};
use rayon::prelude::*;

use crate::keys::subgroup::first_outside;
use crate::{Curve, PointGroup, SnarkCurve};

/// Number of points that one task decodes.
const CHUNK_POINTS: usize = 1 << 10;

/// The most bytes of a mapped file that reading points keeps in memory at once.
pub const READING_WINDOW_BYTES: usize = 32 << 20;

/// Size of a reading window in bytes: as many whole chunks of `chunk_items` items of `item_bytes` bytes as fit into
/// [`READING_WINDOW_BYTES`], at least one.
pub(crate) const fn window_bytes(item_bytes: usize, chunk_items: usize) -> usize {
    let chunk_bytes = item_bytes * chunk_items;
    let chunks = READING_WINDOW_BYTES / chunk_bytes;
    chunk_bytes * if chunks == 0 { 1 } else { chunks }
}

pub(crate) fn compressed_size<A: AffineRepr>() -> usize {
    A::zero().compressed_size()
}

pub(crate) fn uncompressed_size<A: AffineRepr>() -> usize {
    A::zero().uncompressed_size()
}

/// The format of a compressed point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CompressedForm {
    /// The format of arkworks: little-endian. In the last byte, bit 7 marks the larger of the two values
    /// of y, and bit 6 the point at infinity.
    Arkworks,
    /// The format of Zcash: big-endian, the second coordinate of an extension first. In the first byte,
    /// bit 7 is set, bit 6 marks the point at infinity, and bit 5 the larger of the two values of y.
    Zcash,
}

/// A parsed compressed point, before y is computed.
struct Compressed<F> {
    x: F,
    is_larger: bool,
    is_infinity: bool,
}

/// Reads compressed points with full checks; `None` for bytes that are not the canonical encoding of a point
/// in the subgroup of prime order.
///
/// The costly steps, square roots and subgroup tests, run on eight points side by side.
pub(crate) fn read_compressed_each<A: PointGroup>(
    form: CompressedForm,
    encoded: &[&[u8]],
) -> Vec<Option<A>> {
    let compressed: Vec<Option<Compressed<A::BaseField>>> =
        encoded.iter().map(|bytes| form.read::<A>(bytes)).collect();
    let xs: Vec<_> = compressed.iter().flatten().map(|read| read.x).collect();
    let mut of_x = point_of_x_each::<A::Group>(&xs).into_iter();
    let mut points: Vec<Option<A>> = compressed
        .iter()
        .map(|read| {
            let read = read.as_ref()?;
            let point = of_x.next()?;
            match read.is_infinity {
                true => Some(A::zero()),
                false => point.map(|point| with_sign(point, read.is_larger)),
            }
        })
        .collect();
    keep_subgroup(&mut points);
    for (point, bytes) in points.iter_mut().zip(encoded) {
        point.take_if(|point| !is_encoding(point, bytes, Compress::Yes));
    }
    points
}

/// Reads untrusted compressed points in the format of the curve's proofs: `None` unless the encoding is canonical
/// and the point is on the curve and in the subgroup. The costly steps run on eight points side by side.
pub fn read_compressed_points<E: SnarkCurve, A: PointGroup>(encoded: &[&[u8]]) -> Vec<Option<A>> {
    read_compressed_each(CompressedForm::of(E::CURVE), encoded)
}

/// The point or its negative: the one with the larger y if `is_larger`, otherwise the other.
fn with_sign<A: PointGroup>(point: A, is_larger: bool) -> A {
    match point.y() {
        Some(y) if (y > -y) != is_larger => (-point.into_group()).into(),
        _ => point,
    }
}

/// Drops points that are not in the subgroup.
fn keep_subgroup<A: PointGroup>(points: &mut [Option<A>]) {
    if A::IS_WHOLE_CURVE {
        return;
    }
    let decoded: Vec<A> = points.iter().copied().flatten().collect();
    let mut inside = in_subgroup_each::<A::Group>(&decoded).into_iter();
    for point in points {
        point.take_if(|_| inside.next() == Some(false));
    }
}

/// Whether these bytes are the canonical encoding of the point.
fn is_encoding<A: AffineRepr>(point: &A, bytes: &[u8], compress: Compress) -> bool {
    let mut canonical = Vec::with_capacity(bytes.len());
    point.serialize_with_mode(&mut canonical, compress).is_ok() && canonical == bytes
}

/// Reads uncompressed points, one after the other; `None` if one is malformed or, with `validate`, off its curve,
/// outside the subgroup or not encoded as [`write_points`] does. If the bytes lie in the file `mapped`, the pages
/// that were read are released.
///
/// Validation is separate from decoding: for uncompressed points of BLS12-381, arkworks tests the subgroup on the
/// assumption that the point is on the curve. Nor does arkworks compare the flags of an uncompressed point, for the
/// larger y and for infinity, with its coordinates.
pub(crate) fn read_points<A: PointGroup>(
    bytes: &[u8],
    validate: bool,
    mapped: Option<&MappedFile>,
) -> Option<Vec<A>> {
    let size = uncompressed_size::<A>();
    let window = window_bytes(size, CHUNK_POINTS);
    let mut points = vec![A::zero(); bytes.len() / size];
    for (points, bytes) in points.chunks_mut(window / size).zip(bytes.chunks(window)) {
        let chunks = points.par_chunks_mut(CHUNK_POINTS);
        let sound = chunks
            .zip(bytes.par_chunks(CHUNK_POINTS * size))
            .all(|(points, bytes)| {
                let encoded = bytes.chunks_exact(size);
                points.iter_mut().zip(encoded).all(|(point, bytes)| {
                    let decoded = A::deserialize_with_mode(bytes, Compress::No, Validate::No);
                    let sound = decoded.is_ok_and(|decoded| {
                        *point = decoded;
                        true
                    });
                    sound
                        && (!validate
                            || point.on_curve() && is_encoding(point, bytes, Compress::No))
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
        .par_chunks(CHUNK_POINTS)
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

// === impl CompressedForm ===

impl CompressedForm {
    pub(crate) const fn of(curve: Curve) -> Self {
        match curve {
            Curve::Bn254 | Curve::Bls12_377 => Self::Arkworks,
            Curve::Bls12_381 => Self::Zcash,
        }
    }

    /// Parses a point; `None` if a coordinate is not below the modulus, or the length is not that of a point.
    fn read<A: PointGroup>(self, bytes: &[u8]) -> Option<Compressed<A::BaseField>> {
        if bytes.len() != compressed_size::<A>() {
            return None;
        }
        let mut bytes = bytes.to_vec();
        if self == Self::Zcash {
            // The reversed bytes are little-endian with the first coordinate first, and have the flags in the last
            // byte.
            bytes.reverse();
        }
        let last = bytes.last_mut()?;
        let (flags, larger) = match self {
            Self::Arkworks => (0xc0, 0x80),
            Self::Zcash => (0xe0, 0x20),
        };
        let set = *last & flags;
        *last &= !flags;
        let degree = A::BaseField::extension_degree() as usize;
        let mut coordinates = bytes.chunks_exact(bytes.len() / degree);
        let coordinates: Option<Vec<_>> = coordinates.by_ref().map(field_element).collect();
        Some(Compressed {
            x: A::BaseField::from_base_prime_field_elems(coordinates?)?,
            is_larger: set & larger != 0,
            is_infinity: set & 0x40 != 0,
        })
    }
}

/// The field element that bytes encode; `None` if the number is not below the modulus.
fn field_element<F: PrimeField>(little_endian: &[u8]) -> Option<F> {
    F::from_bigint(F::BigInt::deserialize_uncompressed(little_endian).ok()?)
}
