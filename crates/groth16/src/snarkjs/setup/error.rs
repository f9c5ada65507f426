//! Errors of making a key.

use std::io;

use proofmill_r1cs::iden3::{FormatError, ScalarField};

use crate::Curve;

/// A `.zkey` that could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ZkeySetupError {
    /// The circuit's or the ceremony's file is malformed.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// The key could not be written.
    #[error("the key could not be written: {0}")]
    Io(#[from] io::Error),
    /// The circuit is for another curve.
    #[error("the circuit is for {circuit}, the key for {curve}")]
    Curve {
        /// The circuit's field.
        circuit: ScalarField,
        /// The key's curve.
        curve: Curve,
    },
    /// The circuit needs more powers of tau than the file has.
    #[error(
        "the circuit needs a powers-of-tau file of power {needed}, this one is of power {found}: \
         take a larger one"
    )]
    Power {
        /// The power of the circuit's domain.
        needed: u32,
        /// The file's power.
        found: u32,
    },
    /// The circuit is larger than the curve allows.
    #[error("{constraints} constraints: more than the curve's field has room for")]
    TooLarge {
        /// The circuit's constraints.
        constraints: u32,
    },
}
