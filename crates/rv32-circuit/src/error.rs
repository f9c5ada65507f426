//! Errors of executions that have no circuit.

use proofmill_rv32::Trap;
use proofmill_rv32::machine::InputTooLong;
use thiserror::Error;

/// A size beyond its limits.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ShapeError {
    /// A number is zero or too large.
    #[error("{found} {what}: there must be 1 to {most}")]
    Number {
        /// The counted things, as a plural noun.
        what: &'static str,
        /// The number found.
        found: usize,
        /// The most.
        most: usize,
    },
    /// A number is not a multiple of 7.
    #[error("{found} {what}: a public input packs 7 words, so it must be a multiple of 7")]
    NotPacked {
        /// The counted things, as a plural noun.
        what: &'static str,
        /// The number found.
        found: usize,
    },
    /// A product is too large.
    #[error("{found} {what} in all parts: there may be {most}")]
    Total {
        /// The counted things, as a plural noun.
        what: &'static str,
        /// The number found.
        found: u64,
        /// The most.
        most: u64,
    },
}

/// The reason why an execution has no circuit of a shape.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Rv32Error {
    /// The shape itself.
    #[error(transparent)]
    Shape(#[from] ShapeError),
    /// The input is too long for the machine.
    #[error(transparent)]
    InputTooLong(#[from] InputTooLong),
    /// The program does something that the machine refuses.
    #[error("the program does not halt: {0}")]
    Trapped(#[from] Trap),
    /// The program runs for longer than the shape has steps.
    #[error("the program does not halt within {steps} steps; take a shape with more")]
    TooManySteps {
        /// The shape's steps.
        steps: u64,
    },
    /// Something that the shape has too few places for.
    #[error("{found} {what}, and the shape has room for {most}; take a shape with more")]
    TooMany {
        /// The counted things, as a plural noun.
        what: &'static str,
        /// The number found.
        found: u64,
        /// The shape's number.
        most: u64,
    },
}

/// The reason why public inputs are no statement, or a statement has no public inputs.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum StatementError {
    /// A number of public inputs that is not the shape's.
    #[error("{found} public inputs where the shape has {expected}")]
    Count {
        /// The number there must be.
        expected: usize,
        /// The number found.
        found: usize,
    },
    /// A public input that is beyond its range.
    #[error("public input {index} is no {what}")]
    Range {
        /// The input, from 0.
        index: usize,
        /// What it should be.
        what: &'static str,
    },
    /// Bytes beyond the end of the output or the input that are not zero.
    #[error("the {what} has bytes beyond its end")]
    Padding {
        /// The stream.
        what: &'static str,
    },
    /// A stream that is longer than the shape's.
    #[error("{found} bytes of {what}, and the shape has room for {most}")]
    Length {
        /// The stream.
        what: &'static str,
        /// The number found.
        found: u64,
        /// The most.
        most: u64,
    },
    /// An input is given where it is private, or absent where it is public.
    #[error("the shape's input is {}", if *.is_public { "public, and the statement has none" } else { "private, and the statement has one" })]
    Input {
        /// Whether the shape's input is public.
        is_public: bool,
    },
}
