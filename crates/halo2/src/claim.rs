//! A claim: the remainder of a proof after the work that it cannot share with others.

use std::sync::Arc;

use crate::{Point, Scalar, VerifyingKey};

/// The claim that a combination of points is zero: of the fixed points, the key's commitments and the proof's
/// own points.
#[derive(Clone, Debug)]
pub struct Claim {
    pub(crate) key: Arc<VerifyingKey>,
    /// The coefficient of g₀, without that in the folded vector.
    pub(crate) constant: Scalar,
    /// The coefficients of W and of U.
    pub(crate) hiding: Scalar,
    pub(crate) value: Scalar,
    /// −c, and the rounds' challenges u: g has −c times the products of those challenges whose bit of
    /// the point's number is set, the highest bit being the first round's.
    pub(crate) folded: Scalar,
    pub(crate) challenges: Vec<Scalar>,
    /// The coefficients of the key's commitments: to the fixed columns, then to the permutation's.
    pub(crate) key_scalars: Vec<Scalar>,
    /// The proof's points and their coefficients.
    pub(crate) points: Vec<Point>,
    pub(crate) scalars: Vec<Scalar>,
}

/// The reason why a proof is not valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Invalid {
    /// The key's circuit has more rows than the verifier has points.
    #[error("the circuit has 2^{key} rows: the verifier has points for at most 2^{verifier}")]
    Rows {
        /// Binary logarithm of the circuit's rows.
        key: u32,
        /// Binary logarithm of the most rows that the verifier has points for.
        verifier: u32,
    },
    /// The proof is of no circuit, or of too many.
    #[error("{0} circuits in one proof: from 1 to {MAX_CIRCUITS}")]
    Circuits(usize),
    /// The proof would take more work than this verifier allows for one.
    #[error("{circuits} circuits in {bytes} bytes of proof: more than this verifier evaluates")]
    Work {
        /// Circuits in one proof.
        circuits: usize,
        /// Bytes of the proof.
        bytes: usize,
    },
    /// The number of columns of public inputs is not the circuit's.
    #[error("{found} columns of public inputs: the circuit has {expected}")]
    Columns {
        /// Columns given.
        found: usize,
        /// Columns of the circuit.
        expected: usize,
    },
    /// A column of too many public inputs.
    #[error("{found} public inputs in a column: at most {maximum}")]
    Inputs {
        /// Public inputs given.
        found: usize,
        /// The most that the verifier takes for this circuit.
        maximum: usize,
    },
    /// The commitment to the public inputs is the point at infinity, which has no coordinates to hash. Finding
    /// such inputs is infeasible.
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
    /// The circuit opens a polynomial twice at the same point, for which halo2 itself verifies no proof.
    #[error("the key's circuit asks for a polynomial twice at the same point")]
    DuplicateQuery,
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
