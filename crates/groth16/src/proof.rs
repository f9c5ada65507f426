//! A proof and its encoding.

use ark_ec::AffineRepr;
use ark_serialize::{CanonicalSerialize, Compress};

use crate::SnarkCurve;
use crate::keys::encoding::{CompressedForm, compressed_size, read_compressed_each};

/// A proof: two elements of the first group and one of the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proof<E: SnarkCurve> {
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
        /// Bytes of a proof over this curve.
        expected: usize,
        /// Bytes given.
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

impl<E: SnarkCurve> Proof<E> {
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

    /// Decodes an untrusted proof: every element is checked to be canonical, on its curve and in
    /// the subgroup, so a proof has one encoding.
    ///
    /// # Errors
    ///
    /// [`ProofError`] for any other bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ProofError> {
        let mut read = Self::from_bytes_each(&[bytes]);
        read.pop().expect("as many proofs as there were")
    }

    /// Decodes several proofs as [`from_bytes`](Self::from_bytes) does, in less time than one by one: the costly steps
    /// run on eight points side by side.
    pub fn from_bytes_each(proofs: &[&[u8]]) -> Vec<Result<Self, ProofError>> {
        let form = CompressedForm::of(E::CURVE);
        let (first, second) = (
            compressed_size::<E::G1Affine>(),
            compressed_size::<E::G2Affine>(),
        );
        let expected = Self::encoded_size();
        let complete = || proofs.iter().filter(|bytes| bytes.len() == expected);
        let in_g1: Vec<_> = complete()
            .flat_map(|bytes| [&bytes[..first], &bytes[first + second..]])
            .collect();
        let in_g2: Vec<_> = complete()
            .map(|bytes| &bytes[first..first + second])
            .collect();
        let in_g1 = read_compressed_each::<E::G1Affine>(form, &in_g1);
        let in_g2 = read_compressed_each::<E::G2Affine>(form, &in_g2);
        let mut points = in_g1.chunks_exact(2).zip(in_g2);
        let read = proofs.iter().map(|bytes| {
            let found = bytes.len();
            if found != expected {
                return Err(ProofError::Length { expected, found });
            }
            let (a_and_c, b) = points.next().expect("the points of each complete proof");
            let point = |element| ProofError::Point { element };
            Ok(Self {
                a: a_and_c[0].ok_or(point('A'))?,
                b: b.ok_or(point('B'))?,
                c: a_and_c[1].ok_or(point('C'))?,
            })
        });
        read.collect()
    }
}

fn write<A: AffineRepr>(point: &A, bytes: &mut Vec<u8>) {
    CanonicalSerialize::serialize_with_mode(point, bytes, Compress::Yes)
        .expect("writing to a vector does not fail");
}
