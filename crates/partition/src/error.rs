//! Errors of circuits that cannot be partitioned as described, and of inputs that do not fit.

use std::fmt;

use ark_relations::gr1cs::SynthesisError;
use proofmill_r1cs::R1csError;

use crate::{Check, Name, Transfer};

/// The reason why a circuit in parts was refused.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PartitionError {
    /// The circuit's code failed.
    #[error("the circuit could not be synthesised: {0}")]
    Synthesis(#[from] SynthesisError),
    /// The constraints of a part form no rank-1 constraint system, or one that is too large.
    #[error("part {part}: {source}")]
    System {
        /// The part, from 0.
        part: usize,
        /// The reason.
        source: R1csError,
    },
    /// The private values that were sent for a part are not those of any witness.
    #[error("part {part}: its witness: {why}")]
    Witness {
        /// The part, from 0.
        part: usize,
        /// The fault.
        why: String,
    },
    /// A wire was read before any part set it.
    #[error("part {part} reads {name}, which no part before sets: wires flow to later parts only")]
    NotSet {
        /// The wire.
        name: Name,
        /// The part that reads, from 0.
        part: usize,
    },
    /// A portal was set twice.
    #[error(
        "part {part} sets {name}, which part {first} has set: a portal has one value; \
         use store and load for a cell that changes"
    )]
    SetTwice {
        /// The portal.
        name: Name,
        /// The part that sets it for the second time, from 0.
        part: usize,
        /// The part that set it first.
        first: usize,
    },
    /// A public input that the circuit does not have.
    #[error("part {part} reads public input {index} of {count}")]
    NoPublicInput {
        /// The part, from 0.
        part: usize,
        /// The input, from 0.
        index: usize,
        /// The number found.
        count: usize,
    },
    /// A part allocated public inputs by itself.
    #[error(
        "part {part} allocates {count} instance variables of its own: \
         public inputs come from Part::public_input, fixed values from Part::constant"
    )]
    InstanceVariables {
        /// The part, from 0.
        part: usize,
        /// The number found.
        count: usize,
    },
    /// The circuit has no parts, or more parts or accesses than are supported.
    #[error("{found} {what}: there must be {least} to {most}")]
    Size {
        /// The counted things, as a plural noun.
        what: &'static str,
        /// The number found.
        found: usize,
        /// The fewest.
        least: usize,
        /// The most.
        most: usize,
    },
    /// Two parts of a class have different constraints.
    #[error("parts {first} and {part} are both of class {class:?}, but {difference}")]
    ClassDiffers {
        /// The class.
        class: &'static str,
        /// The first part of the class, from 0.
        first: usize,
        /// The part that differs from it.
        part: usize,
        /// The first difference.
        difference: Difference,
    },
    /// A circuit with values does not access the wires that the circuit for the keys did.
    #[error(
        "part {part} does not make the accesses and transfers that it made when the partition was set up: \
         names, constants, puts, takes and their order must not depend on values"
    )]
    AccessesChanged {
        /// The part, from 0.
        part: usize,
    },
    /// A value of the multiset is not put as often as it is taken. The value is secret, so it is not shown.
    #[error(
        "part {part}: the value of transfer {transfer}, a {kind}, is not put into the multiset as often as it is taken"
    )]
    Unmatched {
        /// The part, from 0.
        part: usize,
        /// The transfer among those of the part, from 0.
        transfer: usize,
        /// The kind of the transfer.
        kind: Transfer,
    },
    /// A number of values that does not fit the partition.
    #[error("{found} {what} where there are {expected}")]
    Length {
        /// The values' meaning.
        what: &'static str,
        /// The number there must be.
        expected: usize,
        /// The number found.
        found: usize,
    },
    /// A part that the partition does not have.
    #[error("part {part} of {parts}")]
    NoPart {
        /// The part, from 0.
        part: usize,
        /// The number found.
        parts: usize,
    },
}

/// The first difference between the constraints of two parts of a class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// A number differs.
    Count {
        /// The noun: the thing that is counted.
        what: &'static str,
        /// The first part's number.
        first: usize,
        /// The other part's number.
        other: usize,
    },
    /// A transfer differs.
    Transfer {
        /// The transfer among those of a part, from 0.
        transfer: usize,
        /// The first part's kind.
        first: Transfer,
        /// The other's.
        other: Transfer,
    },
    /// A row of a matrix differs.
    Row {
        /// The constraint's index, from 0.
        constraint: usize,
        /// The check of the first part that the constraint belongs to.
        check: Check,
        /// The matrix: A, B or C.
        matrix: char,
        /// The first part's row, as a sum of variables.
        first: String,
        /// The other's.
        other: String,
    },
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count { what, first, other } => write!(f, "have {first} and {other} {what}"),
            Self::Transfer {
                transfer,
                first,
                other,
            } => write!(f, "differ in transfer {transfer}: a {first} and a {other}"),
            Self::Row {
                constraint,
                check,
                matrix,
                first,
                other,
            } => write!(
                f,
                "differ in constraint {constraint} ({check}), matrix {matrix}: {first} and {other}"
            ),
        }
    }
}
