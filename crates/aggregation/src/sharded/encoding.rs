//! Messages as bytes.
//!
//! Little-endian. Magic `PMILLAGM`, version (4 bytes), curve (16 bytes, zero-padded), the number of the message below
//! (4 bytes), and its fields, all numbers in 4 bytes: scalars in 32 bytes, elements of the target group compressed as
//! `torus` does, points compressed as arkworks does. The length follows from the first 36 bytes, or from the number of
//! scalars.
//!
//! | number | message | fields |
//! |---|---|---|
//! | 1 | `Start` | kind (1 Groth16, 2 Mirage), n, k |
//! | 2 | `Proofs` | number of public inputs, r, public inputs |
//! | 3 | `Combine` | s |
//! | 4 | `Fold` | x |
//! | 5 | `Open` | number of last rounds, z, their x |
//! | 17 | `Commitments` | CM_D(A, B), CM₁(C): 4 elements |
//! | 18 | `CrossProducts` | number of elements, elements |
//! | 19 | `Round` | 6 elements |
//! | 20 | `Folded` | left, right, v, w: 6 points |
//! | 21 | `Openings` | of v, of w: 4 points |

use ark_ec::AffineRepr;
use ark_ec::pairing::PairingOutput;
use ark_ff::AdditiveGroup;
use ark_serialize::{CanonicalDeserialize, CanonicalSerialize};

use crate::aggregate::{AggregateKind, Points, number, write_point};
use crate::commitment::Commitment;
use crate::files::{AggregationFileError, BEGINNING_BYTES, FileKind, wrong_point};
use crate::mirage::MAX_INPUTS;
use crate::torus::{AggregationCurve, element_bytes, read_elements, write_elements};

use super::message::{LeaderMessage, ShardMessage};
use super::sharding::{MAX_SHARDS, Sharding};

/// The most bytes of a message, for whoever reads frames.
pub const MAX_MESSAGE_BYTES: usize = 1 << 16;

const KIND: FileKind = FileKind {
    magic: b"PMILLAGM",
    what: "message of a sharded aggregation",
};
const NUMBER_BYTES: usize = 4;
const SCALAR_BYTES: usize = 32;

const START: u32 = 1;
const PROOFS: u32 = 2;
const COMBINE: u32 = 3;
const FOLD: u32 = 4;
const OPEN: u32 = 5;
const COMMITMENTS: u32 = 17;
const CROSS_PRODUCTS: u32 = 18;
const ROUND: u32 = 19;
const FOLDED: u32 = 20;
const OPENINGS: u32 = 21;

// Public inputs make the longest message: a round, over BLS12-381, has some 1,800 bytes.
const _: () =
    assert!(BEGINNING_BYTES + 2 * NUMBER_BYTES + MAX_INPUTS * SCALAR_BYTES <= MAX_MESSAGE_BYTES);

type Scalar<E> = <E as ark_ec::pairing::Pairing>::ScalarField;

// === impl LeaderMessage ===

impl<E: AggregationCurve> LeaderMessage<E> {
    /// The canonical encoding of the message.
    pub fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::Start { kind, sharding } => {
                let mut bytes = begin::<E>(START);
                write_number(*kind as usize, &mut bytes);
                write_number(sharding.count(), &mut bytes);
                write_number(sharding.shards(), &mut bytes);
                bytes
            }
            Self::Proofs { r, inputs } => {
                let mut bytes = begin::<E>(PROOFS);
                write_number(inputs.len(), &mut bytes);
                write_scalars::<E>(r, inputs, &mut bytes);
                bytes
            }
            Self::Combine { s } => {
                let mut bytes = begin::<E>(COMBINE);
                write_scalars::<E>(s, &[], &mut bytes);
                bytes
            }
            Self::Fold { x } => {
                let mut bytes = begin::<E>(FOLD);
                write_scalars::<E>(x, &[], &mut bytes);
                bytes
            }
            Self::Open { z, last } => {
                let mut bytes = begin::<E>(OPEN);
                write_number(last.len(), &mut bytes);
                write_scalars::<E>(z, last, &mut bytes);
                bytes
            }
        }
    }

    /// Decodes an untrusted message.
    ///
    /// # Errors
    ///
    /// [`AggregationFileError`] for any bytes that [`to_bytes`](Self::to_bytes) does not make, and for challenges that
    /// are zero.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, AggregationFileError> {
        let (tag, body) = Body::begin::<E>(bytes)?;
        let message = match tag {
            START => body.start()?,
            PROOFS => {
                let (r, inputs) = body.counted_scalars::<E>(MAX_INPUTS - 1)?;
                Self::Proofs { r, inputs }
            }
            COMBINE => {
                let (s, _) = body.scalars::<E>(0)?;
                Self::Combine { s }
            }
            FOLD => {
                let (x, _) = body.scalars::<E>(0)?;
                Self::Fold { x }
            }
            OPEN => {
                let rounds_max = MAX_SHARDS.trailing_zeros() as usize;
                let (z, last) = body.counted_scalars::<E>(rounds_max)?;
                Self::Open { z, last }
            }
            _ => return Err(AggregationFileError::Head(KIND.what)),
        };
        if message.has_inverses() {
            Ok(message)
        } else {
            Err(KIND.point("challenges"))
        }
    }
}

// === impl ShardMessage ===

impl<E: AggregationCurve> ShardMessage<E> {
    /// The canonical encoding of the message.
    pub fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::Commitments { both, c } => {
                let mut bytes = begin::<E>(COMMITMENTS);
                write_elements(&[both.0, c.0].concat(), &mut bytes);
                bytes
            }
            Self::CrossProducts(elements) => {
                let mut bytes = begin::<E>(CROSS_PRODUCTS);
                write_number(elements.len(), &mut bytes);
                write_elements(elements, &mut bytes);
                bytes
            }
            Self::Round {
                with_challenge,
                with_inverse,
            } => {
                let mut bytes = begin::<E>(ROUND);
                write_elements(&[*with_challenge, *with_inverse].concat(), &mut bytes);
                bytes
            }
            Self::Folded { left, right, v, w } => {
                let mut bytes = begin::<E>(FOLDED);
                write_point(left, &mut bytes);
                write_point(right, &mut bytes);
                write_keys::<E>(v, w, &mut bytes);
                bytes
            }
            Self::Openings { v, w } => {
                let mut bytes = begin::<E>(OPENINGS);
                write_keys::<E>(v, w, &mut bytes);
                bytes
            }
        }
    }

    /// Decodes an untrusted message, and checks that points are in their groups and elements of the target group in the
    /// cyclotomic subgroup (see [`torus`](crate::torus)).
    ///
    /// # Errors
    ///
    /// [`AggregationFileError`] for any bytes that [`to_bytes`](Self::to_bytes) does not make.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, AggregationFileError> {
        let (tag, body) = Body::begin::<E>(bytes)?;
        match tag {
            COMMITMENTS => {
                let [a, b, c, d] = body.elements::<E, 4>()?;
                Ok(Self::Commitments {
                    both: Commitment([a, b]),
                    c: Commitment([c, d]),
                })
            }
            CROSS_PRODUCTS => {
                let (count, body) = body.number()?;
                let kinds = [AggregateKind::Groth16, AggregateKind::Mirage];
                if !kinds.iter().any(|kind| 2 * kind.terms() == count) {
                    return Err(AggregationFileError::Head(KIND.what));
                }
                Ok(Self::CrossProducts(body.list::<E>(count)?))
            }
            ROUND => {
                let [a, b, c, d, e, f] = body.elements::<E, 6>()?;
                Ok(Self::Round {
                    with_challenge: [a, b, c],
                    with_inverse: [d, e, f],
                })
            }
            FOLDED => {
                body.check_length(point_bytes::<E>(3, 3))?;
                let mut points = body.points();
                let wrong = wrong_point(KIND, "folded points");
                let left = points.next().map_err(&wrong)?;
                let right = points.next().map_err(&wrong)?;
                let (v, w) = read_keys::<E>(&mut points)?;
                Ok(Self::Folded { left, right, v, w })
            }
            OPENINGS => {
                body.check_length(point_bytes::<E>(2, 2))?;
                let (v, w) = read_keys::<E>(&mut body.points())?;
                Ok(Self::Openings { v, w })
            }
            _ => Err(AggregationFileError::Head(KIND.what)),
        }
    }
}

fn begin<E: AggregationCurve>(tag: u32) -> Vec<u8> {
    let mut bytes = KIND.begin::<E>();
    bytes.extend(tag.to_le_bytes());
    bytes
}

fn write_number(number: usize, bytes: &mut Vec<u8>) {
    bytes.extend((number as u32).to_le_bytes());
}

fn write_scalars<E: AggregationCurve>(
    challenge: &Scalar<E>,
    scalars: &[Scalar<E>],
    bytes: &mut Vec<u8>,
) {
    for scalar in std::iter::once(challenge).chain(scalars) {
        let written = scalar.serialize_compressed(&mut *bytes);
        written.expect("writing to a vector does not fail");
    }
}

fn write_keys<E: AggregationCurve>(v: &[E::G2Affine; 2], w: &[E::G1Affine; 2], out: &mut Vec<u8>) {
    v.iter().for_each(|point| write_point(point, out));
    w.iter().for_each(|point| write_point(point, out));
}

/// Points of v and of w.
type KeyPoints<E> = (
    [<E as ark_ec::pairing::Pairing>::G2Affine; 2],
    [<E as ark_ec::pairing::Pairing>::G1Affine; 2],
);

fn read_keys<E: AggregationCurve>(
    points: &mut Points<'_>,
) -> Result<KeyPoints<E>, AggregationFileError> {
    let wrong = wrong_point(KIND, "points of the key");
    let mut second = || points.next().map_err(&wrong);
    let v = [second()?, second()?];
    let mut first = || points.next().map_err(&wrong);
    let w = [first()?, first()?];
    Ok((v, w))
}

fn point_bytes<E: AggregationCurve>(first: usize, second: usize) -> usize {
    let (g1, g2) = (E::G1Affine::zero(), E::G2Affine::zero());
    first * g1.compressed_size() + second * g2.compressed_size()
}

/// The fields of a message that are not read yet.
struct Body<'a> {
    rest: &'a [u8],
    /// Bytes of the message before them.
    before: usize,
}

// === impl Body ===

impl<'a> Body<'a> {
    /// The number of a message, and its fields.
    fn begin<E: AggregationCurve>(bytes: &'a [u8]) -> Result<(u32, Self), AggregationFileError> {
        let rest = KIND.after_beginning::<E>(bytes, NUMBER_BYTES)?;
        let (tag, rest) = rest.split_at(NUMBER_BYTES);
        let before = bytes.len() - rest.len();
        Ok((number(tag), Self { rest, before }))
    }

    /// Checks that the rest is as long as the fields that follow.
    fn check_length(&self, expected: usize) -> Result<(), AggregationFileError> {
        if self.rest.len() == expected {
            Ok(())
        } else {
            Err(self.wrong_length(expected))
        }
    }

    const fn wrong_length(&self, expected: usize) -> AggregationFileError {
        let [expected, found] = [self.before + expected, self.before + self.rest.len()];
        KIND.length(expected as u64, found as u64)
    }

    fn number(self) -> Result<(usize, Self), AggregationFileError> {
        let split = self.rest.split_at_checked(NUMBER_BYTES);
        let (bytes, rest) = split.ok_or_else(|| self.wrong_length(NUMBER_BYTES))?;
        let before = self.before + NUMBER_BYTES;
        Ok((number(bytes) as usize, Self { rest, before }))
    }

    fn start<E: AggregationCurve>(self) -> Result<LeaderMessage<E>, AggregationFileError> {
        self.check_length(3 * NUMBER_BYTES)?;
        let (kind, rest) = self.number()?;
        let (count, rest) = rest.number()?;
        let (shards, _) = rest.number()?;
        let wrong = AggregationFileError::Head(KIND.what);
        let kinds = [AggregateKind::Groth16, AggregateKind::Mirage];
        let kind = kinds.into_iter().find(|known| *known as usize == kind);
        match (kind, Sharding::new(count, shards)) {
            (Some(kind), Ok(sharding)) => Ok(LeaderMessage::Start { kind, sharding }),
            _ => Err(wrong),
        }
    }

    /// A scalar and a list of up to `count_max` scalars, after the number of those in the list.
    fn counted_scalars<E: AggregationCurve>(
        self,
        count_max: usize,
    ) -> Result<(Scalar<E>, Vec<Scalar<E>>), AggregationFileError> {
        let (count, rest) = self.number()?;
        if count > count_max {
            return Err(AggregationFileError::Head(KIND.what));
        }
        rest.scalars::<E>(count)
    }

    /// A scalar and a list of `count` scalars.
    fn scalars<E: AggregationCurve>(
        self,
        count: usize,
    ) -> Result<(Scalar<E>, Vec<Scalar<E>>), AggregationFileError> {
        self.check_length((1 + count) * SCALAR_BYTES)?;
        let mut scalars = self.rest.chunks_exact(SCALAR_BYTES).map(|bytes| {
            Scalar::<E>::deserialize_compressed(bytes).map_err(|_| KIND.point("scalars"))
        });
        let first = scalars.next().unwrap_or(Ok(Scalar::<E>::ZERO))?;
        Ok((first, scalars.collect::<Result<_, _>>()?))
    }

    /// `count` elements of the target group.
    fn list<E: AggregationCurve>(
        self,
        count: usize,
    ) -> Result<Vec<PairingOutput<E>>, AggregationFileError> {
        self.check_length(count * element_bytes::<E>())?;
        read_elements(self.rest).map_err(|source| AggregationFileError::Element {
            what: KIND.what,
            source,
        })
    }

    fn elements<E: AggregationCurve, const COUNT: usize>(
        self,
    ) -> Result<[PairingOutput<E>; COUNT], AggregationFileError> {
        let elements = self.list::<E>(COUNT)?.try_into().ok();
        Ok(elements.expect("as many as the length was checked for"))
    }

    const fn points(&self) -> Points<'a> {
        Points {
            rest: self.rest,
            index: 0,
        }
    }
}
