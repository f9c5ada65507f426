//! Parts that are proved, as the makers of the aggregate's shards are sent them.

use proofmill_groth16::Proof;
use proofmill_groth16::ProofError;
use proofmill_groth16::mirage::{Commitment, CommitmentError};

use crate::proof::PartitionCurve;

/// Commitments to parts and the proofs of these parts, in the order of parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProvedParts<E: PartitionCurve> {
    d: Vec<E::G1Affine>,
    proofs: Vec<Proof<E>>,
}

/// Bytes that are no proved parts.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProvedPartsError {
    /// The number of bytes is not a multiple of those of one part.
    #[error("{found} bytes: each part has {each}")]
    Length {
        /// Bytes of each part.
        each: usize,
        /// Bytes found.
        found: usize,
    },
    /// A commitment that does not decode.
    #[error("part {part} of those sent: {source}")]
    Commitment {
        /// The part, from 0, of those in the bytes.
        part: usize,
        /// The reason.
        source: CommitmentError,
    },
    /// A proof that does not decode.
    #[error("part {part} of those sent: {source}")]
    Proof {
        /// The part, from 0, of those in the bytes.
        part: usize,
        /// The reason.
        source: ProofError,
    },
}

// === impl ProvedParts ===

impl<E: PartitionCurve> ProvedParts<E> {
    /// The number of bytes for each part: its commitment and its proof, as they are encoded by themselves.
    pub fn encoded_size() -> usize {
        Commitment::<E>::encoded_size() + Proof::<E>::encoded_size()
    }

    /// Decodes untrusted bytes: the commitment and the proof of each part, one part after the other. Points are checked to
    /// be canonical, on their curves and in their subgroups. The caller must limit the bytes.
    ///
    /// # Errors
    ///
    /// [`ProvedPartsError`] for any other bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ProvedPartsError> {
        let each = Self::encoded_size();
        let parts = bytes.chunks_exact(each);
        if !parts.remainder().is_empty() {
            let found = bytes.len();
            return Err(ProvedPartsError::Length { each, found });
        }
        let parts = parts.map(|part| part.split_at(Commitment::<E>::encoded_size()));
        let (commitments, proofs): (Vec<_>, Vec<_>) = parts.unzip();
        let d = Commitment::<E>::from_bytes_each(&commitments);
        let d = d.into_iter().enumerate().map(|(part, read)| match read {
            Ok(commitment) => Ok(commitment.point),
            Err(source) => Err(ProvedPartsError::Commitment { part, source }),
        });
        let proofs = Proof::<E>::from_bytes_each(&proofs).into_iter().enumerate();
        let proofs = proofs
            .map(|(part, read)| read.map_err(|source| ProvedPartsError::Proof { part, source }));
        Ok(Self {
            d: d.collect::<Result<_, _>>()?,
            proofs: proofs.collect::<Result<_, _>>()?,
        })
    }

    /// The points of the commitments.
    pub fn d(&self) -> &[E::G1Affine] {
        &self.d
    }

    /// The proofs.
    pub fn proofs(&self) -> &[Proof<E>] {
        &self.proofs
    }
}
