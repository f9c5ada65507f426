//! An aggregate, the proof of many proofs, and its encoding.
//!
//! Little-endian. A head of 44 bytes: magic `PMILLAGG`, version (4 bytes), kind (4 bytes: 1 Groth16, 2
//! Mirage), curve (16 bytes, zero-padded), number of rounds (4 bytes), number of cross products (4
//! bytes), and four zero bytes. Then elements of the target group, compressed as `torus` does: CM_D(A, B), CM₁(C),
//! the cross products, six for each round. Then points, compressed as arkworks does: folded left (first group),
//! right (second), v (twice the second), w (twice the first), and the openings of v and of w. The length
//! follows from the head.

use ark_ec::AffineRepr;
use ark_ec::pairing::{Pairing, PairingOutput};
use ark_serialize::CanonicalSerialize;
use proofmill_groth16::{Curve, read_compressed_points};

use crate::commitment::Commitment;
use crate::mpp::MppProof;
use crate::srs::MAX_CAPACITY;
use crate::tipp::{Round, TippProof};
use crate::torus::{AggregationCurve, TorusError, element_bytes, read_elements, write_elements};

const MAGIC: &[u8; 8] = b"PMILLAGG";
const VERSION: u32 = 1;
const HEAD_BYTES: usize = 44;

/// Whether each point of the encoding is in the first group. The points are: the folded vectors, v, w, the openings
/// of v, and those of w.
const IN_FIRST_GROUP: [bool; 10] = [
    true, false, false, false, true, true, false, false, true, true,
];

/// The proof system of the proofs that are aggregated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AggregateKind {
    /// Groth16 proofs with public inputs that the verifier knows.
    Groth16 = 1,
    /// Mirage proofs, Groth16 with a committed part of the witness.
    Mirage = 2,
}

/// One proof for many. Its statement consists of the key that it is verified with and the public inputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Aggregate<E: AggregationCurve> {
    pub(crate) kind: AggregateKind,
    /// CM_D(A, B).
    pub(crate) both: Commitment<E>,
    /// CM₁(C).
    pub(crate) c: Commitment<E>,
    pub(crate) products: MppProof<E>,
}

/// Bytes that are no aggregate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AggregateError {
    /// The bytes do not begin with the magic of an aggregate.
    #[error("not a Proofmill aggregate proof")]
    Magic,
    /// The aggregate is of another version.
    #[error("an aggregate proof of version {found}: this release reads version {VERSION}")]
    Version {
        /// The version.
        found: u32,
    },
    /// The aggregate is over another curve.
    #[error("an aggregate proof over another curve than {expected}")]
    Curve {
        /// The curve expected.
        expected: &'static str,
    },
    /// A head that no aggregate has.
    #[error("the head of the aggregate proof is of no proof: corrupt")]
    Head,
    /// The length does not follow from the head.
    #[error(
        "an aggregate proof of {found} bytes, whose head asks for {expected}: cut short or corrupt"
    )]
    Length {
        /// Bytes that follow from the head.
        expected: usize,
        /// The bytes there are.
        found: usize,
    },
    /// The bytes of an element are not one of the target group.
    #[error("the aggregate proof: {0}")]
    Element(#[from] TorusError),
    /// The bytes of a point are no canonical encoding of a point of its group.
    #[error("point {index} of the aggregate proof is not a canonical point of its group")]
    Point {
        /// The number of the point, from 0.
        index: usize,
    },
}

// === impl AggregateKind ===

impl AggregateKind {
    /// k: products beside A ∗ B.
    pub(crate) const fn terms(self) -> usize {
        match self {
            Self::Groth16 => 1,
            Self::Mirage => 3,
        }
    }

    fn from_number(number: u32) -> Option<Self> {
        [Self::Groth16, Self::Mirage]
            .into_iter()
            .find(|kind| *kind as u32 == number)
    }
}

// === impl Aggregate ===

impl<E: AggregationCurve> Aggregate<E> {
    /// The proof system of the proofs that are aggregated.
    pub const fn kind(&self) -> AggregateKind {
        self.kind
    }

    /// The kind and the curve that the head of an aggregate states; `None` if the bytes begin otherwise. This does
    /// not depend on the curve `E`, so that a reader can find the curve first.
    pub fn kind_and_curve(head: &[u8]) -> Option<(AggregateKind, Curve)> {
        let rest = head.strip_prefix(MAGIC)?;
        let kind = AggregateKind::from_number(number(rest.get(4..8)?))?;
        Some((kind, curve_named(rest.get(8..24)?)?))
    }

    /// The size in bytes of an aggregate of `count` proofs, at least 1.
    pub fn encoded_size(kind: AggregateKind, count: usize) -> usize {
        let rounds = count.next_power_of_two().trailing_zeros() as usize;
        HEAD_BYTES + body_bytes::<E>(kind, rounds)
    }

    /// The canonical encoding of the aggregate.
    pub fn to_bytes(&self) -> Vec<u8> {
        let tipp = &self.products.tipp;
        let mut bytes = Vec::new();
        bytes.extend(MAGIC);
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend((self.kind as u32).to_le_bytes());
        bytes.extend(curve_name::<E>());
        bytes.extend((tipp.rounds.len() as u32).to_le_bytes());
        bytes.extend((self.products.cross.len() as u32).to_le_bytes());
        bytes.extend([0; 4]);
        let mut elements = [self.both.0, self.c.0].concat();
        elements.extend(&self.products.cross);
        for round in &tipp.rounds {
            elements.extend(round.with_challenge);
            elements.extend(round.with_inverse);
        }
        write_elements(&elements, &mut bytes);
        write_point(&tipp.left, &mut bytes);
        write_point(&tipp.right, &mut bytes);
        tipp.v
            .iter()
            .for_each(|point| write_point(point, &mut bytes));
        tipp.w
            .iter()
            .for_each(|point| write_point(point, &mut bytes));
        let openings = tipp.v_openings.iter();
        openings.for_each(|point| write_point(point, &mut bytes));
        let openings = tipp.w_openings.iter();
        openings.for_each(|point| write_point(point, &mut bytes));
        bytes
    }

    /// Decodes an untrusted aggregate.
    ///
    /// # Errors
    ///
    /// [`AggregateError`] for any bytes that [`to_bytes`](Self::to_bytes) does not make.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, AggregateError> {
        let (kind, rounds) = read_head::<E>(bytes)?;
        let expected = HEAD_BYTES + body_bytes::<E>(kind, rounds);
        if bytes.len() != expected {
            let found = bytes.len();
            return Err(AggregateError::Length { expected, found });
        }
        let count = element_count(kind, rounds);
        let (elements, points) = bytes[HEAD_BYTES..].split_at(count * element_bytes::<E>());
        let elements = read_elements::<E>(elements)?;
        let mut elements = elements.into_iter();
        let mut next = || elements.next().expect("as many as were counted");
        let both = Commitment([next(), next()]);
        let c = Commitment([next(), next()]);
        let cross = (0..2 * kind.terms()).map(|_| next()).collect();
        let mut three = || -> [PairingOutput<E>; 3] { [next(), next(), next()] };
        let rounds = (0..rounds).map(|_| Round {
            with_challenge: three(),
            with_inverse: three(),
        });
        let rounds = rounds.collect();
        let ([left, w1, w2, w1_opening, w2_opening], [right, v1, v2, v1_opening, v2_opening]) =
            read_points::<E>(points)?;
        let tipp = TippProof {
            rounds,
            left,
            right,
            v: [v1, v2],
            w: [w1, w2],
            v_openings: [v1_opening, v2_opening],
            w_openings: [w1_opening, w2_opening],
        };
        Ok(Self {
            kind,
            both,
            c,
            products: MppProof { cross, tipp },
        })
    }
}

/// The kind and the number of rounds that a head states.
fn read_head<E: AggregationCurve>(bytes: &[u8]) -> Result<(AggregateKind, usize), AggregateError> {
    let Some((head, _)) = bytes.split_at_checked(HEAD_BYTES) else {
        return match bytes.starts_with(MAGIC) {
            true => Err(AggregateError::Length {
                expected: HEAD_BYTES,
                found: bytes.len(),
            }),
            false => Err(AggregateError::Magic),
        };
    };
    if !head.starts_with(MAGIC) {
        return Err(AggregateError::Magic);
    }
    let version = number(&head[8..12]);
    if version != VERSION {
        return Err(AggregateError::Version { found: version });
    }
    if head[16..32] != curve_name::<E>() {
        let expected = E::CURVE.name();
        return Err(AggregateError::Curve { expected });
    }
    let kind = AggregateKind::from_number(number(&head[12..16])).ok_or(AggregateError::Head)?;
    let (rounds, cross, rest) = (number(&head[32..36]), number(&head[36..40]), &head[40..]);
    let rounds_max = MAX_CAPACITY.trailing_zeros();
    if rounds > rounds_max || cross as usize != 2 * kind.terms() || rest != [0; 4] {
        return Err(AggregateError::Head);
    }
    Ok((kind, rounds as usize))
}

/// The points of an aggregate, by group.
type FivePoints<E> = ([<E as Pairing>::G1Affine; 5], [<E as Pairing>::G2Affine; 5]);

/// The points of either group, in their order, of bytes that are as many as they take.
fn read_points<E: AggregationCurve>(mut bytes: &[u8]) -> Result<FivePoints<E>, AggregateError> {
    let (mut first, mut second) = (Vec::with_capacity(5), Vec::with_capacity(5));
    for is_first in IN_FIRST_GROUP {
        let (points, size) = match is_first {
            true => (&mut first, E::G1Affine::zero().compressed_size()),
            false => (&mut second, E::G2Affine::zero().compressed_size()),
        };
        let (point, rest) = bytes.split_at(size);
        points.push(point);
        bytes = rest;
    }
    let mut first = read_compressed_points::<E, E::G1Affine>(&first).into_iter();
    let mut second = read_compressed_points::<E, E::G2Affine>(&second).into_iter();
    let (mut in_first, mut in_second) = (Vec::with_capacity(5), Vec::with_capacity(5));
    for (index, is_first) in IN_FIRST_GROUP.into_iter().enumerate() {
        let wrong = AggregateError::Point { index };
        match is_first {
            true => in_first.push(first.next().flatten().ok_or(wrong)?),
            false => in_second.push(second.next().flatten().ok_or(wrong)?),
        }
    }
    let arrays = in_first.try_into().ok().zip(in_second.try_into().ok());
    Ok(arrays.expect("five points of each group"))
}

const fn element_count(kind: AggregateKind, rounds: usize) -> usize {
    4 + 2 * kind.terms() + 6 * rounds
}

fn body_bytes<E: AggregationCurve>(kind: AggregateKind, rounds: usize) -> usize {
    let points =
        5 * E::G1Affine::zero().compressed_size() + 5 * E::G2Affine::zero().compressed_size();
    element_count(kind, rounds) * element_bytes::<E>() + points
}

pub(crate) fn curve_name<E: AggregationCurve>() -> [u8; 16] {
    padded_name(E::CURVE)
}

fn padded_name(curve: Curve) -> [u8; 16] {
    let mut padded = [0; 16];
    let name = curve.name().as_bytes();
    padded[..name.len()].copy_from_slice(name);
    padded
}

/// The curve of that name, zero-padded.
pub(crate) fn curve_named(padded: &[u8]) -> Option<Curve> {
    Curve::ALL
        .into_iter()
        .find(|curve| padded_name(*curve) == padded)
}

/// A number of four bytes.
pub(crate) fn number(bytes: &[u8]) -> u32 {
    bytes
        .iter()
        .rev()
        .fold(0, |value, byte| value << 8 | u32::from(*byte))
}

pub(crate) fn write_point<A: AffineRepr>(point: &A, bytes: &mut Vec<u8>) {
    point
        .serialize_compressed(bytes)
        .expect("writing to a vector does not fail");
}

/// A reader of untrusted compressed points.
pub(crate) struct Points<'a> {
    pub(crate) rest: &'a [u8],
    pub(crate) index: usize,
}

// === impl Points ===

impl Points<'_> {
    /// The next point, on its curve, in the subgroup and in its one encoding.
    pub(crate) fn next<A: AffineRepr>(&mut self) -> Result<A, AggregateError> {
        let wrong = AggregateError::Point { index: self.index };
        let size = A::zero().compressed_size();
        let (bytes, rest) = self.rest.split_at_checked(size).ok_or(wrong)?;
        let point = A::deserialize_compressed(bytes).map_err(|_| wrong)?;
        let mut again = Vec::with_capacity(size);
        write_point(&point, &mut again);
        if again != bytes {
            return Err(wrong);
        }
        self.rest = rest;
        self.index += 1;
        Ok(point)
    }
}
