//! One proof for many: pairing-product arguments over a structured reference string.
//!
//! * [`MirageIndex`] and [`MirageVerifyingKey`] aggregate Mirage proofs, Groth16 with a committed part of the
//!   witness, of many circuits (Hekaton, section 5; "Horizontally-Scalable zkSNARKs via Proof Aggregation").
//! * [`Groth16Index`] aggregates plain Groth16 proofs under one key or several, as SnarkPack does.
//! * [`sharded`] makes the same aggregates with several provers, in other processes or on other machines.
//! * [`Srs`] is the reference string: made once, extended by further contributors, checked, kept in a file.
//!
//! Any number of proofs is aggregated. An [`Aggregate`] and its verification take the logarithm of that number:
//! one product of powers in the target group, and one product of eight pairings.
//!
//! **Assumptions**: one contributor to the reference string forgot its secrets; commitments under structured
//! keys bind and openings of keys are extractable, for which SnarkPack's assumptions (ASSGP, ASDBP) hold in the
//! algebraic group model; SHA-256 is a random oracle; the proof system itself is sound. An aggregate hides no
//! more than the proofs in it do.
//!
//! The transcript is in `docs/aggregation-transcript.md`.

mod aggregate;
mod commitment;
#[cfg(debug_assertions)]
mod compiled_once;
mod contribution;
pub mod files;
mod groth16;
mod groth16_key;
mod index;
mod kzg;
mod mirage;
mod mirage_key;
mod mpp;
pub mod sharded;
mod srs;
mod srs_file;
mod statement;
mod tipp;
pub mod torus;
mod transcript;

pub use aggregate::{Aggregate, AggregateError, AggregateKind};
pub use commitment::Commitment;
#[cfg(debug_assertions)]
pub use compiled_once::compiled_once;
pub use contribution::Contribution;
pub use files::{AggregationFileError, curve_of};
pub use groth16::{Groth16Index, MAX_KEYS};
pub use index::{AggregateProveError, AggregateVerifyError, IndexError};
pub use mirage::{
    MAX_INPUTS, MirageClass, MirageIndex, MirageParts, MirageStatement, MirageVerifyingKey,
};
pub use srs::{CommitmentKey, MAX_CAPACITY, Srs, SrsError, VerifierSrs};
pub use srs_file::MAX_CONTRIBUTIONS;
pub use statement::StatementError;
pub use torus::AggregationCurve;
pub use transcript::Transcript;
