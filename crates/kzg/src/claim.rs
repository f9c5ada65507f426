//! A claim: the remainder of a request after the work that it cannot share with others.

use std::fmt;

use crate::{CELLS, Point, Scalar};

/// The claim that a commitment opens to the blob or cell of a request.
///
/// With the commitment C, the proof W, the polynomial I that was sent and the number s it holds if
/// `e(C − [I(τ)] + s·W, G2) · e(−W, [Z]) = 1`. For a blob I is its value at the challenge z, s is z,
/// and `[Z]` is `τ·G2`; for a cell on the coset h·⟨ω⟩ of 64 points I has its 64 elements there, s is
/// h⁶⁴, and `[Z]` is `τ⁶⁴·G2`.
#[derive(Clone, Debug)]
pub struct Claim {
    pub(crate) commitment: Point,
    pub(crate) proof: Point,
    /// s.
    pub(crate) shift: Scalar,
    pub(crate) opened: Opened,
}

/// I.
#[derive(Clone, Debug)]
pub(crate) enum Opened {
    /// A blob's value at its challenge.
    Blob(Scalar),
    /// A cell's polynomial: 64 coefficients, the constant first.
    Cell(Vec<Scalar>),
}

/// A point of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// The commitment to the blob.
    Commitment,
    /// The proof.
    Proof,
}

/// The reason for which a request is not valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Invalid {
    /// Bytes of no point.
    #[error("the {0} is no compressed point of BLS12-381's first group")]
    NotAPoint(Field),
    /// A point of the curve that pairings have no meaning for.
    #[error("the {0} is a point outside of the subgroup of prime order")]
    NotInSubgroup(Field),
    /// A number that is not reduced by the field's modulus.
    #[error("element {0} is not canonical: it is not below the scalar field's modulus")]
    NotCanonical(usize),
    /// A cell that no blob has.
    #[error("cell {0}: an extended blob has {CELLS}, counted from 0")]
    CellIndex(u64),
    /// The commitment is to another blob.
    #[error("the proof does not show that the commitment opens to the data")]
    Proof,
}

// === impl Field ===

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Commitment => "commitment",
            Self::Proof => "proof",
        })
    }
}
