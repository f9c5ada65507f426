//! A proof and its encoding.

use ark_ec::AffineRepr;
use ark_serialize::{CanonicalSerialize, Compress};

use crate::Engine;
use crate::encoding::{compressed_size, read_compressed};

/// A proof: two elements of the first group and one of the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proof<E: Engine> {
    /// A, in the first group.
    pub a: E::G1Affine,
    /// B, in the second group.
    pub b: E::G2Affine,
    /// C, in the first group.
    pub c: E::G1Affine,
}

/// Bytes that are no proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProofError {
    /// The wrong number of bytes.
    #[error("a proof of {found} bytes: it has exactly {expected}")]
    Length {
        /// What a proof has.
        expected: usize,
        /// What there is.
        found: usize,
    },
    /// An element is not a canonically encoded point of the right group.
    #[error("element {element} of the proof is not a canonical point of its group")]
    Point {
        /// `A`, `B` or `C`.
        element: char,
    },
}

// === impl Proof ===

impl<E: Engine> Proof<E> {
    /// The length of every encoded proof: 192 bytes over BLS12-381.
    pub fn encoded_size() -> usize {
        2 * compressed_size::<E::G1Affine>() + compressed_size::<E::G2Affine>()
    }

    /// A, B and C compressed, one after the other.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(Self::encoded_size());
        write(&self.a, &mut bytes);
        write(&self.b, &mut bytes);
        write(&self.c, &mut bytes);
        bytes
    }

    /// Decodes a proof from anyone: every element is checked to be canonical, on its curve and in
    /// the subgroup, so a proof has one encoding.
    ///
    /// # Errors
    ///
    /// [`ProofError`] for any other bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ProofError> {
        let expected = Self::encoded_size();
        if bytes.len() != expected {
            return Err(ProofError::Length {
                expected,
                found: bytes.len(),
            });
        }
        let (a, rest) = bytes.split_at(compressed_size::<E::G1Affine>());
        let (b, c) = rest.split_at(compressed_size::<E::G2Affine>());
        let point = |element| ProofError::Point { element };
        Ok(Self {
            a: read_compressed(a).ok_or(point('A'))?,
            b: read_compressed(b).ok_or(point('B'))?,
            c: read_compressed(c).ok_or(point('C'))?,
        })
    }
}

fn write<A: AffineRepr>(point: &A, bytes: &mut Vec<u8>) {
    CanonicalSerialize::serialize_with_mode(point, bytes, Compress::Yes)
        .expect("writing to a vector does not fail");
}
