//! The verification of consecutive epochs.

use ark_ff::PrimeField;
use proofmill_partition::proof::{
    PartitionCurve, PartitionProof, PartitionProofError, VerifyError, VerifyingKey,
};
use serde::{Deserialize, Serialize};

use super::EpochRecord;
use crate::{DEPTH, Digest, empty_digest};

/// The public inputs of a batch's circuit: two halves of the root before, two of the root after.
pub const ROOT_INPUTS: usize = 4;

/// An epoch whose root a client trusts or has verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Checkpoint {
    /// The epoch's number; 0 before the first.
    pub number: u64,
    /// The root after the epoch.
    pub root: Digest,
}

/// The refusal of a chain of epochs.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChainError {
    /// An epoch is missing, or there twice.
    #[error("epoch {found} where epoch {expected} must follow")]
    Number {
        /// The number that must follow.
        expected: u64,
        /// The number there is.
        found: u64,
    },
    /// An epoch that does not begin where the one before it ended.
    #[error(
        "epoch {number} begins with the root {found}, but the one before ended with {expected}"
    )]
    Root {
        /// The epoch.
        number: u64,
        /// The root after the epoch before.
        expected: Digest,
        /// The root that the epoch begins with.
        found: Digest,
    },
    /// An epoch without a proof.
    #[error("epoch {0} has no batch")]
    Empty(u64),
    /// Bytes that are no proof of the key's curve.
    #[error("epoch {number}, batch {batch}: {source}")]
    Proof {
        /// The epoch.
        number: u64,
        /// The batch, from 0.
        batch: usize,
        /// The reason.
        source: PartitionProofError,
    },
    /// A proof that is not valid.
    #[error("epoch {number}, batch {batch}: {source}")]
    Invalid {
        /// The epoch.
        number: u64,
        /// The batch, from 0.
        batch: usize,
        /// The reason.
        source: VerifyError,
    },
}

// === impl Checkpoint ===

impl Checkpoint {
    /// The empty directory, before epoch 1.
    pub fn genesis() -> Self {
        Self {
            number: 0,
            root: empty_digest(DEPTH),
        }
    }
}

/// The public inputs of a batch that leads from one root to another.
pub fn public_inputs<F: PrimeField>(before: &Digest, after: &Digest) -> Vec<F> {
    let halves = [before.halves(), after.halves()];
    halves.as_flattened().iter().copied().map(F::from).collect()
}

/// Checks that untrusted records are the epochs after a checkpoint, one after the other, and that every batch is
/// proved. Returns the last epoch's checkpoint; the first one if there are no records.
///
/// The key must be that of the circuit: compare its
/// [partition](proofmill_partition::proof::VerifyingKey::partition) with the digest of a partition made of
/// `UpdateBatch::blank`, or trust the key's maker.
///
/// # Errors
///
/// [`ChainError`], of the first record that is refused.
pub fn verify_chain<E: PartitionCurve>(
    key: &VerifyingKey<E>,
    checkpoint: Checkpoint,
    records: &[EpochRecord],
) -> Result<Checkpoint, ChainError> {
    let mut last = checkpoint;
    for record in records {
        let number = record.number;
        // After the last number there is no epoch: 0 does not follow.
        let expected = last.number.saturating_add(1);
        if number != expected || number == last.number {
            let found = number;
            return Err(ChainError::Number { expected, found });
        }
        if record.root_before != last.root {
            return Err(ChainError::Root {
                number,
                expected: last.root,
                found: record.root_before,
            });
        }
        let root = verify_batches(key, record)?;
        last = Checkpoint { number, root };
    }
    Ok(last)
}

/// Checks the proofs of an epoch's batches. Returns the root after the last.
fn verify_batches<E: PartitionCurve>(
    key: &VerifyingKey<E>,
    record: &EpochRecord,
) -> Result<Digest, ChainError> {
    let number = record.number;
    if record.batches.is_empty() {
        return Err(ChainError::Empty(number));
    }
    let mut root = record.root_before;
    for (batch, proved) in record.batches.iter().enumerate() {
        let proof = PartitionProof::<E>::from_bytes(&proved.proof);
        let proof = proof.map_err(|source| ChainError::Proof {
            number,
            batch,
            source,
        })?;
        key.verify(&public_inputs(&root, &proved.root_after), &proof)
            .map_err(|source| ChainError::Invalid {
                number,
                batch,
                source,
            })?;
        root = proved.root_after;
    }
    Ok(root)
}
