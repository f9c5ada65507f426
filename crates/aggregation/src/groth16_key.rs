//! The file of the key that verifies aggregates of Groth16 proofs.
//!
//! Little-endian: magic `PMILLAGK`, version (4 bytes), curve (16 bytes, zero-padded), number of verifying keys (4
//! bytes), number of proofs (4 bytes). Then each verifying key in the format of its own file, after its length (4
//! bytes); the index of each proof's key (4 bytes); a·G, b·G, a·H and b·H of the reference string, compressed; the
//! commitment to δ, two elements of the target group, compressed as `torus` does. Last the SHA-256 of all that.

use std::path::Path;

use proofmill_groth16::VerifyingKey;

use crate::aggregate::{Points, number};
use crate::commitment::Commitment;
use crate::files::{AggregationFileError, BEGINNING_BYTES, CHECKSUM_BYTES, FileKind, write};
use crate::groth16::{Groth16Index, MAX_KEYS, check_keys};
use crate::srs::{MAX_CAPACITY, VerifierSrs};
use crate::torus::{AggregationCurve, has_prime_order};

const KIND: FileKind = FileKind {
    magic: b"PMILLAGK",
    what: "key for aggregates of Groth16 proofs",
};
const HEAD_BYTES: usize = 8;

/// The largest file that is read: 256 MiB.
const MAX_BYTES: u64 = 1 << 28;

// === impl Groth16Index ===

impl<E: AggregationCurve> Groth16Index<E> {
    /// The content of the key's file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = KIND.begin::<E>();
        bytes.extend((self.keys.len() as u32).to_le_bytes());
        bytes.extend((self.key_of.len() as u32).to_le_bytes());
        for key in &self.keys {
            let key = key.to_bytes();
            bytes.extend((key.len() as u32).to_le_bytes());
            bytes.extend(key);
        }
        bytes.extend(self.key_of.iter().flat_map(|key| key.to_le_bytes()));
        self.srs.write(&mut bytes);
        bytes.extend(self.delta.to_bytes());
        KIND.end(bytes)
    }

    /// Decodes an untrusted key, and checks that its points and elements are in their groups and that no verifying
    /// key is known to be insecure. Whether they are the right keys, with the right commitment to δ, must be
    /// ensured by trust in the key's maker, or by its [digest](Self::digest).
    ///
    /// # Errors
    ///
    /// [`AggregationFileError`] for any other bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, AggregationFileError> {
        let head = KIND.after_beginning::<E>(bytes, HEAD_BYTES + CHECKSUM_BYTES)?;
        let (keys, count) = (number(&head[..4]) as usize, number(&head[4..8]) as usize);
        if !(1..=MAX_CAPACITY).contains(&count) || !(1..=MAX_KEYS).contains(&keys) {
            return Err(AggregationFileError::Head(KIND.what));
        }
        let content = KIND.checked(bytes, bytes.len() as u64)?;
        let mut rest = &content[BEGINNING_BYTES + HEAD_BYTES..];
        let short = || KIND.length(bytes.len() as u64 + 1, bytes.len() as u64);
        let mut take = |length: usize| -> Result<&[u8], AggregationFileError> {
            let (taken, left) = rest.split_at_checked(length).ok_or_else(short)?;
            rest = left;
            Ok(taken)
        };
        let mut of_keys = Vec::new();
        for _ in 0..keys {
            let length = number(take(4)?) as usize;
            of_keys.push(VerifyingKey::<E>::from_bytes(take(length)?)?);
        }
        let key_of: Vec<u32> = take(4 * count)?.chunks_exact(4).map(number).collect();
        check_keys(&of_keys, &key_of)?;
        let mut points = Points { rest, index: 0 };
        let srs = VerifierSrs::read(&mut points, KIND)?;
        let delta = Commitment::<E>::from_bytes(points.rest).map_err(|source| {
            AggregationFileError::Element {
                what: KIND.what,
                source,
            }
        })?;
        if !delta.0.iter().all(has_prime_order) {
            return Err(AggregationFileError::Order(KIND.what));
        }
        Ok(Self::assemble(srs, of_keys, key_of, delta))
    }

    /// Writes the key to a file, whole or not at all.
    ///
    /// # Errors
    ///
    /// [`AggregationFileError::Write`] if the file system refuses.
    pub fn save(&self, path: &Path) -> Result<(), AggregationFileError> {
        write(path, &self.to_bytes())
    }

    /// Reads an untrusted key.
    ///
    /// # Errors
    ///
    /// As for [`from_bytes`](Self::from_bytes), and if there is no such file.
    pub fn load(path: &Path) -> Result<Self, AggregationFileError> {
        Self::from_bytes(&KIND.read(path, MAX_BYTES)?)
    }
}
