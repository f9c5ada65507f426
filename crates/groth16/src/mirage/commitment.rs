//! Commitments to the committed variables, and the secrets that open them.

use std::fmt;

use ark_ec::CurveGroup;
use ark_ff::UniformRand;
use ark_serialize::{CanonicalDeserialize, CanonicalSerialize};
use ark_std::rand::{CryptoRng, RngCore};
use proofmill_r1cs::R1csError;
use sha2::{Digest, Sha256};
use zeroize::{Zeroize, Zeroizing};

use super::ProvingKey;
use crate::keys::bases::Bases;
use crate::keys::encoding::{CompressedForm, compressed_size, read_compressed_each};
use crate::{ProveError, SnarkCurve};

/// Domain and version of the hash in an [`Opening`].
const DIGEST_DOMAIN: &[u8] = b"proofmill/mirage/committed/1";
const DIGEST_BYTES: usize = 32;

/// A commitment to values of a system's committed variables: D of the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Commitment<E: SnarkCurve> {
    /// Σ wⱼ·\[pⱼ(s)/η\] + κ_D·\[δ\].
    pub point: E::G1Affine,
}

/// The prover's secret of a commitment: its randomness κ_D, and a digest of the
/// committed values, so that a proof with others is refused when it is made.
#[derive(Clone, PartialEq, Eq)]
pub struct Opening<E: SnarkCurve> {
    randomness: E::ScalarField,
    values_digest: [u8; DIGEST_BYTES],
}

/// Bytes that are no commitment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CommitmentError {
    /// The wrong number of bytes.
    #[error("a commitment of {found} bytes: it has exactly {expected}")]
    Length {
        /// The bytes of a commitment.
        expected: usize,
        /// The bytes there are.
        found: usize,
    },
    /// The bytes are not a canonically encoded point of the first group.
    #[error("the commitment is not a canonical point of its group")]
    Point,
}

/// Bytes that are no opening.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "not the opening of a commitment: {expected} bytes that begin with a number below the group's order"
)]
pub struct OpeningError {
    /// The bytes an opening has.
    pub expected: usize,
}

// === impl Commitment ===

impl<E: SnarkCurve> Commitment<E> {
    /// The length of every encoded commitment: 48 bytes over BLS12-381, 32 over BN254.
    pub fn encoded_size() -> usize {
        compressed_size::<E::G1Affine>()
    }

    /// The point, compressed as a proof's points are.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(Self::encoded_size());
        self.point
            .serialize_compressed(&mut bytes)
            .expect("writing to a vector does not fail");
        bytes
    }

    /// Decodes an untrusted commitment: the point is checked to be canonical, on its curve and in the
    /// subgroup, so a commitment has one encoding.
    ///
    /// # Errors
    ///
    /// [`CommitmentError`] for any other bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, CommitmentError> {
        let mut read = Self::from_bytes_each(&[bytes]);
        read.pop().expect("as many commitments as there were")
    }

    /// Decodes several commitments as [`from_bytes`](Self::from_bytes) does, in less time than one by one: the costly
    /// steps run on eight points side by side.
    pub fn from_bytes_each(commitments: &[&[u8]]) -> Vec<Result<Self, CommitmentError>> {
        let expected = Self::encoded_size();
        let form = CompressedForm::of(E::CURVE);
        let points = read_compressed_each::<E::G1Affine>(form, commitments);
        let read = commitments.iter().zip(points).map(|(bytes, point)| {
            let found = bytes.len();
            if found != expected {
                return Err(CommitmentError::Length { expected, found });
            }
            let point = point.ok_or(CommitmentError::Point)?;
            Ok(Self { point })
        });
        read.collect()
    }
}

// === impl Opening ===

impl<E: SnarkCurve> Opening<E> {
    /// An opening of these values with fresh randomness.
    pub(super) fn draw(values: &[E::ScalarField], rng: &mut (impl RngCore + CryptoRng)) -> Self {
        Self::new(values, E::ScalarField::rand(rng))
    }

    /// The opening of a commitment to these values with this randomness. Unless the randomness is uniform and used
    /// for no other values, the commitment hides nothing.
    pub fn new(values: &[E::ScalarField], randomness: E::ScalarField) -> Self {
        Self {
            randomness,
            values_digest: digest(values),
        }
    }

    /// The randomness κ_D of the commitment.
    pub const fn randomness(&self) -> E::ScalarField {
        self.randomness
    }

    /// Whether this opens a commitment to `values`.
    pub fn opens(&self, values: &[E::ScalarField]) -> bool {
        self.values_digest == digest(values)
    }

    /// An error unless this opens a commitment to `values`.
    pub(super) fn require(&self, values: &[E::ScalarField]) -> Result<(), ProveError> {
        match self.opens(values) {
            true => Ok(()),
            false => Err(ProveError::OtherCommitment),
        }
    }

    /// The length of every encoded opening.
    pub fn encoded_size() -> usize {
        E::ScalarField::default().compressed_size() + DIGEST_BYTES
    }

    /// The randomness, little-endian, and the digest, for proving in another process than committing. They are
    /// secret: with them, the committed values can be found if few are possible.
    pub fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        let mut bytes = Zeroizing::new(Vec::with_capacity(Self::encoded_size()));
        self.randomness
            .serialize_compressed(&mut *bytes)
            .expect("writing to a vector does not fail");
        bytes.extend_from_slice(&self.values_digest);
        bytes
    }

    /// Decodes an opening.
    ///
    /// # Errors
    ///
    /// [`OpeningError`] for any other bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, OpeningError> {
        let expected = Self::encoded_size();
        let refused = OpeningError { expected };
        let (randomness, values_digest) = bytes.split_last_chunk().ok_or(refused)?;
        if bytes.len() != expected {
            return Err(refused);
        }
        Ok(Self {
            randomness: E::ScalarField::deserialize_compressed(randomness).map_err(|_| refused)?,
            values_digest: *values_digest,
        })
    }
}

impl<E: SnarkCurve> Drop for Opening<E> {
    fn drop(&mut self) {
        self.randomness.zeroize();
        self.values_digest.zeroize();
    }
}

impl<E: SnarkCurve> fmt::Debug for Opening<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Its content is secret.
        f.debug_struct("Opening").finish_non_exhaustive()
    }
}

/// `Mirage.Commit` with fresh randomness, under a key with unprepared points: the commitment reveals nothing
/// about the values. [`Prover::commit`](super::Prover::commit) does the same with any key.
///
/// # Errors
///
/// [`ProveError::Assignment`] unless there is a value for each committed variable.
pub fn commit<E: SnarkCurve>(
    key: &ProvingKey<E>,
    values: &[E::ScalarField],
    rng: &mut (impl RngCore + CryptoRng),
) -> Result<(Commitment<E>, Opening<E>), ProveError> {
    let opening = Opening::draw(values, rng);
    let commitment = CommitmentBases::of(key).commit(values, &opening)?;
    Ok((commitment, opening))
}

/// The commitment key, borrowed: `ck` of the paper.
pub(super) struct CommitmentBases<'k, E: SnarkCurve> {
    /// \[pⱼ(s)/η\] for each committed variable j.
    pub(super) points: Bases<'k, E::G1>,
    /// The number of committed variables.
    pub(super) count: usize,
    /// δ in the first group.
    pub(super) delta_g1: E::G1Affine,
}

// === impl CommitmentBases ===

impl<'k, E: SnarkCurve> CommitmentBases<'k, E> {
    pub(super) fn of(key: &'k ProvingKey<E>) -> Self {
        Self {
            points: Bases::Plain(&key.committed),
            count: key.committed.len(),
            delta_g1: key.plain.delta_g1,
        }
    }

    /// Σ wⱼ·\[pⱼ(s)/η\] + κ_D·\[δ\].
    pub(super) fn commit(
        &self,
        values: &[E::ScalarField],
        opening: &Opening<E>,
    ) -> Result<Commitment<E>, ProveError> {
        if values.len() != self.count {
            return Err(ProveError::Assignment(R1csError::Length {
                expected: self.count,
                found: values.len(),
            }));
        }
        opening.require(values)?;
        let sum = self.points.multiply(values) + self.delta_g1 * opening.randomness;
        Ok(Commitment {
            point: sum.into_affine(),
        })
    }
}

/// SHA-256 of the domain, the number of values and the values.
fn digest<F: CanonicalSerialize>(values: &[F]) -> [u8; DIGEST_BYTES] {
    let mut hasher = Sha256::new();
    hasher.update(DIGEST_DOMAIN);
    hasher.update((values.len() as u64).to_le_bytes());
    let mut bytes = Zeroizing::new(Vec::new());
    for value in values {
        bytes.clear();
        value
            .serialize_compressed(&mut *bytes)
            .expect("writing to a vector does not fail");
        hasher.update(&bytes[..]);
    }
    hasher.finalize().into()
}
