//! One proof for a circuit in parts: sections 4 to 6 of Hekaton (eprint.iacr.org/2024/1208) put together.
//!
//! 1. Each class of parts has a Mirage key ([`proofmill_groth16::mirage`]); all keys share α and β of their setup.
//! 2. [`Index::new`] turns a partition, these keys and a reference string into the key to prove with and the
//!    [`VerifyingKey`], whose size depends on neither the number of parts nor their size.
//! 3. [`Prover::prove`] traces the circuit; commits to each part's share of both traces and its transfers; draws α and
//!    β of the memory check and the multiset from all of them; proves each part; aggregates. One part is held at a time, and a
//!    [`Journal`] records finished steps.
//! 4. [`VerifyingKey::verify`] needs the key, the public inputs and the proof.
//!
//! `docs/partition.md` has the transcript and the assumptions.
//!
//! # Zero knowledge
//!
//! A proof reveals nothing beyond the partition, the keys and the public inputs: a part's commitment and proof are
//! blinded, so both can be simulated from the trapdoor alone, and the aggregate is a function of them; of the
//! states between parts the proof has only hashes, each with a random salt of the field's size. The prover's
//! time and memory are not hidden from an observer of the machine.

#[cfg(feature = "prover")]
mod assembly;
#[cfg(feature = "prover")]
pub mod distributed;
#[cfg(feature = "prover")]
mod index;
#[cfg(feature = "prover")]
mod journal;
#[cfg(feature = "prover")]
mod memory;
#[cfg(feature = "prover")]
mod prover;
#[cfg(feature = "prover")]
mod secrets;
mod statement;
#[cfg(all(test, feature = "prover"))]
mod tests;
#[cfg(feature = "prover")]
mod time;
mod verifier;

#[cfg(feature = "prover")]
pub use index::{ClassKeys, Index, IndexError, PartVerifiers};
#[cfg(feature = "prover")]
pub use journal::{Journal, JournalError};
#[cfg(feature = "prover")]
pub use memory::{KeyForm, MemoryLimit, MemoryNeeds, SLACK};
#[cfg(feature = "prover")]
pub use prover::{ProveError, Prover, Step};
#[cfg(feature = "prover")]
pub use time::{MeasureError, PartTimes, Rates, StepTimes, TimeNeeds};
pub use verifier::{
    PartitionProof, PartitionProofError, StatementError, VerifyError, VerifyingKey,
};

use proofmill_aggregation::AggregationCurve;
#[cfg(feature = "prover")]
use proofmill_groth16::Curve;
use proofmill_kernels::Poseidon2Field;

/// A curve that circuits in parts are proved over: BN254 and BLS12-381.
pub trait PartitionCurve: AggregationCurve<ScalarField: Poseidon2Field> {}

impl<E: AggregationCurve<ScalarField: Poseidon2Field>> PartitionCurve for E {}

/// A curve that circuits in parts are not proved over: there is no published instance of Poseidon2 with the S-box x⁵
/// over its scalars.
#[cfg(feature = "prover")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("circuits in parts are not proved over {0}: use bn254 or bls12-381")]
pub struct NotInParts(pub Curve);

/// Runs an expression for the curve that a value of [`Curve`] names, as
/// [`with_curve!`](proofmill_groth16::with_curve) does; [`NotInParts`] if it is no [`PartitionCurve`].
///
/// ```
/// use proofmill_groth16::{Curve, SnarkCurve};
/// use proofmill_partition::proof::NotInParts;
/// use proofmill_partition::with_partition_curve;
///
/// let found = with_partition_curve!(Curve::Bn254, E => E::CURVE);
/// assert_eq!(found, Ok(Curve::Bn254));
/// let other = with_partition_curve!(Curve::Bls12_377, E => E::CURVE);
/// assert_eq!(other, Err(NotInParts(Curve::Bls12_377)));
/// ```
#[cfg(feature = "prover")]
#[macro_export]
macro_rules! with_partition_curve {
    ($curve:expr, $engine:ident => $body:expr) => {
        match $curve {
            $crate::groth16::Curve::Bn254 => {
                type $engine = $crate::groth16::Bn254;
                Ok($body)
            }
            $crate::groth16::Curve::Bls12_381 => {
                type $engine = $crate::groth16::Bls12_381;
                Ok($body)
            }
            $crate::groth16::Curve::Bls12_377 => {
                Err($crate::proof::NotInParts($crate::groth16::Curve::Bls12_377))
            }
        }
    };
}

/// Public inputs that all parts share: the root of the tree of states, α and β, in this order. β is the last: other
/// inputs are multiples of it that the partition fixes.
const SHARED: usize = 3;
