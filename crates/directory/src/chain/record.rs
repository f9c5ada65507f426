//! The record of an epoch that a directory publishes.
//!
//! The file, little-endian: magic `PMILLVKR` and version; the epoch's number (8 bytes); the root before it (32); the
//! number of batches (4); for each batch the root after it (32), the number of its updates (4), the length of its proof
//! (4) and the proof; the SHA-256 of all that. As JSON:
//!
//! ```json
//! {"number": 1, "root_before": "…", "batches": [{"root_after": "…", "updates": 7, "proof": "…"}]}
//! ```

use std::io::Write;
use std::path::Path;

use proofmill_files::{FileError, Visibility, write_whole};
use proofmill_partition::proof::{PartitionCurve, PartitionProof};
use serde::{Deserialize, Serialize};

use crate::Digest;
use crate::frame::{Format, FormatError};
use crate::store::read_limited;

/// The most bytes of a record's file.
pub const RECORD_BYTES_MAX: u64 = 1 << 28;

/// The fewest bytes of a batch in a file.
const BATCH_BYTES_MIN: usize = 32 + 4 + 4;

const FORMAT: Format = Format {
    magic: b"PMILLVKR",
    what: "record of an epoch",
};

/// The published record of an epoch: the roots before and after it, and proofs that its updates keep the rules.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EpochRecord {
    /// The epoch's number, from 1.
    pub number: u64,
    /// The root before the epoch.
    pub root_before: Digest,
    /// The epoch's batches in order. Their number depends on how many updates a batch of the circuit has.
    pub batches: Vec<BatchRecord>,
}

/// One batch of an epoch's updates.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BatchRecord {
    /// The root after the batch.
    pub root_after: Digest,
    /// The number of updates. It is not proved: the proof shows that there are at most as many as the keys are for.
    pub updates: u32,
    /// The encoded [`PartitionProof`].
    #[serde(with = "hex::serde")]
    pub proof: Vec<u8>,
}

/// A record that cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// The file system refused.
    #[error(transparent)]
    File(#[from] FileError),
    /// The bytes are no record.
    #[error(transparent)]
    Format(#[from] FormatError),
}

// === impl EpochRecord ===

impl EpochRecord {
    /// The record of an epoch, to which batches are to be added.
    pub const fn new(number: u64, root_before: Digest) -> Self {
        Self {
            number,
            root_before,
            batches: Vec::new(),
        }
    }

    /// Adds the next batch.
    pub fn push<E: PartitionCurve>(
        &mut self,
        root_after: Digest,
        updates: usize,
        proof: &PartitionProof<E>,
    ) {
        self.batches.push(BatchRecord {
            root_after,
            updates: updates.try_into().unwrap_or(u32::MAX),
            proof: proof.to_bytes(),
        });
    }

    /// The root after the epoch.
    pub fn root_after(&self) -> Digest {
        let last = self.batches.last();
        last.map_or(self.root_before, |batch| batch.root_after)
    }

    /// The number of updates that the record says there are.
    pub fn updates(&self) -> u64 {
        self.batches
            .iter()
            .map(|batch| u64::from(batch.updates))
            .sum()
    }

    /// The content of the record's file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = FORMAT.begin();
        bytes.extend(self.number.to_le_bytes());
        bytes.extend(self.root_before.0);
        bytes.extend((self.batches.len() as u32).to_le_bytes());
        for batch in &self.batches {
            bytes.extend(batch.root_after.0);
            bytes.extend(batch.updates.to_le_bytes());
            bytes.extend((batch.proof.len() as u32).to_le_bytes());
            bytes.extend(&batch.proof);
        }
        FORMAT.end(bytes)
    }

    /// Decodes an untrusted record. Its proofs are decoded when they are verified.
    ///
    /// # Errors
    ///
    /// [`FormatError`] for any bytes that [`to_bytes`](Self::to_bytes) does not make.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, FormatError> {
        let mut fields = FORMAT.open(bytes)?;
        let number = fields.u64("number")?;
        let root_before = fields.digest("root before")?;
        let count = fields.count("number of batches", BATCH_BYTES_MIN)?;
        let mut batches = Vec::with_capacity(count);
        for _ in 0..count {
            let root_after = fields.digest("root after")?;
            let updates = fields.u32("number of updates")?;
            let length = fields.u32("proof's length")? as usize;
            batches.push(BatchRecord {
                root_after,
                updates,
                proof: fields.take("proof", length)?.to_vec(),
            });
        }
        fields.end()?;
        Ok(Self {
            number,
            root_before,
            batches,
        })
    }

    /// Writes the record to a file, whole or not at all.
    ///
    /// # Errors
    ///
    /// [`RecordError::File`] if the file system refuses.
    pub fn save(&self, path: &Path) -> Result<(), RecordError> {
        let bytes = self.to_bytes();
        write_whole(path, Visibility::Public, |file| file.write_all(&bytes))?;
        Ok(())
    }

    /// Reads an untrusted record.
    ///
    /// # Errors
    ///
    /// As for [`from_bytes`](Self::from_bytes), and if there is no such file of at most [`RECORD_BYTES_MAX`].
    pub fn load(path: &Path) -> Result<Self, RecordError> {
        Ok(Self::from_bytes(&read_limited(path, RECORD_BYTES_MAX)?)?)
    }
}
