//! A claim about a polynomial, and the argument for it.

use ark_ec::AffineRepr;

use crate::elements::{ELEMENT_BYTES, Elements, expect_length, write_element, write_point};
use crate::srs::MAX_LOG_SIZE;
use crate::{Base, Point, Scalar};

/// The claim that a committed polynomial has a value at a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpeningClaim {
    /// C: the coefficients' combination of the SRS.
    pub commitment: Point,
    /// x: where the polynomial is evaluated.
    pub point: Scalar,
    /// v: its value there.
    pub value: Scalar,
}

/// The prover's message in a round that halves the coefficients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Round {
    /// L: the lower coefficients with the upper points.
    pub left: Point,
    /// R: the upper coefficients with the lower points.
    pub right: Point,
}

/// An opening claim with its argument: an inner product (Bowe, Grigg and Hopwood,
/// eprint.iacr.org/2019/1021, section 3) in barretenberg's variant (`commitment_schemes/ipa`).
///
/// Points must lie on the curve. Decoding checks this; code that fills the fields directly must ensure it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opening {
    /// The claim that the argument proves.
    pub claim: OpeningClaim,
    /// The rounds, of which the first halves all coefficients.
    pub rounds: Vec<Round>,
    /// G₀: the SRS folded by the rounds, as claimed by the prover.
    pub folded_base: Point,
    /// a₀: the coefficients folded by the rounds.
    pub folded_coefficient: Scalar,
}

/// The reason why bytes do not decode to an opening. Elements of 32 bytes are counted from 0, from the
/// beginning of the proof or, in a compact opening, from the end of its head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The wrong number of bytes.
    #[error("{found} bytes: expected {expected}")]
    Length {
        /// Expected bytes.
        expected: usize,
        /// Bytes given.
        found: usize,
    },
    /// The bytes do not begin with the magic of a compact opening.
    #[error("no compact opening: it begins with other bytes")]
    Magic,
    /// A compact opening of another version.
    #[error("a compact opening of version {0}: this release reads version {COMPACT_VERSION}")]
    Version(u8),
    /// A compact opening of more coefficients than any SRS has points.
    #[error("{0} rounds: at most {MAX_LOG_SIZE}")]
    Rounds(u8),
    /// A number that is not reduced by the field's modulus.
    #[error("element {0} is not canonical: it is not below the field's modulus")]
    NotCanonical(usize),
    /// A half of a scalar that is too large.
    #[error("element {index} has more than {bits} bits: it is a half of a scalar")]
    Limb {
        /// The element.
        index: usize,
        /// The most bits of this half.
        bits: u32,
    },
    /// Two halves of a number that is not reduced.
    #[error("elements {0} and the next are no canonical scalar: they are not below its modulus")]
    Scalar(usize),
    /// Coordinates of no point.
    #[error("elements {0} and the next are no point of Grumpkin")]
    NotOnCurve(usize),
}

const COMPACT_MAGIC: [u8; 4] = *b"PMIO";
pub(crate) const COMPACT_VERSION: u8 = 1;
const COMPACT_HEAD_BYTES: usize = 6;

// === impl Opening ===

impl Opening {
    /// Binary logarithm of the number of coefficients: the number of rounds.
    pub fn log_size(&self) -> u32 {
        self.rounds.len() as u32
    }

    /// Bytes of a compact opening with `rounds` rounds: 2150 for the 15 rounds of rollup proofs.
    pub fn compact_size(rounds: usize) -> usize {
        COMPACT_HEAD_BYTES + ELEMENT_BYTES * (2 + 2 + 4 * rounds + 2 + 1)
    }

    /// The opening without the rest of the proof that it came in.
    ///
    /// Magic, version (1 byte), rounds (1 byte); C, x, v, each L and R, G₀, a₀: field elements and
    /// coordinates in 32 big-endian bytes, the point at infinity as zeros. Points are not compressed:
    /// a square root for each would take longer than the rest of the check in a batch. There is no
    /// checksum, because the opening is one.
    ///
    /// # Panics
    ///
    /// If it has more than [`MAX_LOG_SIZE`] rounds.
    pub fn to_compact(&self) -> Vec<u8> {
        assert!(
            self.log_size() <= MAX_LOG_SIZE,
            "{} rounds",
            self.log_size()
        );
        let mut bytes = Vec::with_capacity(Self::compact_size(self.rounds.len()));
        bytes.extend(COMPACT_MAGIC);
        bytes.push(COMPACT_VERSION);
        bytes.push(self.rounds.len() as u8);
        write_point(&mut bytes, &self.claim.commitment);
        write_element(&mut bytes, self.claim.point);
        write_element(&mut bytes, self.claim.value);
        for round in &self.rounds {
            write_point(&mut bytes, &round.left);
            write_point(&mut bytes, &round.right);
        }
        write_point(&mut bytes, &self.folded_base);
        write_element(&mut bytes, self.folded_coefficient);
        bytes
    }

    /// Decodes an untrusted compact opening; each opening has one encoding.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] for any other bytes.
    pub fn from_compact(bytes: &[u8]) -> Result<Self, DecodeError> {
        let Some((head, body)) = bytes.split_first_chunk::<COMPACT_HEAD_BYTES>() else {
            return Err(DecodeError::Length {
                expected: Self::compact_size(0),
                found: bytes.len(),
            });
        };
        let [magic @ .., version, rounds] = *head;
        if magic != COMPACT_MAGIC {
            return Err(DecodeError::Magic);
        }
        if version != COMPACT_VERSION {
            return Err(DecodeError::Version(version));
        }
        if u32::from(rounds) > MAX_LOG_SIZE {
            return Err(DecodeError::Rounds(rounds));
        }
        let rounds = usize::from(rounds);
        expect_length(bytes, Self::compact_size(rounds))?;
        let mut elements = Elements::new(body, 0);
        Ok(Self {
            claim: OpeningClaim {
                commitment: elements.point()?,
                point: elements.scalar()?,
                value: elements.scalar()?,
            },
            rounds: elements.rounds(rounds)?,
            folded_base: elements.point()?,
            folded_coefficient: elements.scalar()?,
        })
    }
}

/// Coordinates in the form that is hashed and encoded: zeros at infinity, which no point of the curve has.
pub(crate) fn coordinates(point: &Point) -> [Base; 2] {
    point.xy().map_or_else(Default::default, |(x, y)| [x, y])
}
