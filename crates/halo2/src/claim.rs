//! What is left of a proof after all the work that is its own.

use std::sync::Arc;

use crate::{Point, Scalar, VerifyingKey};

/// That a combination of points is zero: of the fixed points, the key's commitments and the proof's
/// own points.
#[derive(Clone, Debug)]
pub struct Claim {
    pub(crate) key: Arc<VerifyingKey>,
    /// The coefficient of g₀, without that in the folded vector.
    pub(crate) constant: Scalar,
    /// Of W and of U.
    pub(crate) hiding: Scalar,
    pub(crate) value: Scalar,
    /// −c, and the rounds' challenges u: g has −c times the products of those challenges whose bit of
    /// the point's number is set, the highest bit being the first round's.
    pub(crate) folded: Scalar,
    pub(crate) challenges: Vec<Scalar>,
    /// Of the key's commitments: to the fixed columns, then to the permutation's.
    pub(crate) key_scalars: Vec<Scalar>,
    /// The proof's points and their coefficients.
    pub(crate) points: Vec<Point>,
    pub(crate) scalars: Vec<Scalar>,
}

/// Why a proof is not valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Invalid {
    /// A key for other points.
    #[error("the circuit has 2^{key} rows: the verifier has points for at most 2^{verifier}")]
    Rows {
        /// The key's.
        key: u32,
        /// The verifier's most.
        verifier: u32,
    },
    /// No circuit, or too many.
    #[error("{0} circuits in one proof: from 1 to {MAX_CIRCUITS}")]
    Circuits(usize),
    /// More work than its bytes are worth.
    #[error("{circuits} circuits in {bytes} bytes of proof: more than this verifier evaluates")]
    Work {
        /// Circuits in one proof.
        circuits: usize,
        /// Bytes of the proof.
        bytes: usize,
    },
    /// Public inputs of another number of columns.
    #[error("{found} columns of public inputs: the circuit has {expected}")]
    Columns {
        /// What there are.
        found: usize,
        /// What the circuit has.
        expected: usize,
    },
    /// A column of too many public inputs.
    #[error("{found} public inputs in a column: at most {maximum}")]
    Inputs {
        /// What there are.
        found: usize,
        /// What the verifier takes of this circuit.
        maximum: usize,
    },
    /// Public inputs that nobody can find: their commitment has no coordinates to hash.
    #[error("a column of public inputs is committed to by the point at infinity")]
    InfiniteInstance,
    /// Too few bytes.
    #[error("the proof ends at byte {0} or before, where a point or a number should be")]
    Short(usize),
    /// Too many bytes.
    #[error("{0} bytes behind the proof")]
    Long(usize),
    /// Bytes of no point other than infinity.
    #[error("no point of Vesta at byte {0} of the proof")]
    NotAPoint(usize),
    /// A number that is not reduced by the field's modulus.
    #[error("a number that is not below the modulus at byte {0} of the proof")]
    NotCanonical(usize),
    /// A circuit that its own halo2 verifies nothing of.
    #[error("the key's circuit asks for a polynomial twice at the same point")]
    Twice,
    /// A hash that no honest prover meets.
    #[error("a challenge of the transcript is zero or a root of unity")]
    Challenge,
    /// The proof proves something else.
    #[error("the proof does not verify against these public inputs")]
    Proof,
}

impl Claim {
    /// The key that the proof is under.
    pub fn key(&self) -> &Arc<VerifyingKey> {
        &self.key
    }
}

/// Circuits that one proof is about; Orchard bundles have up to 2¹⁶ − 1 actions.
pub(crate) const MAX_CIRCUITS: usize = (1 << 16) - 1;
