//! The prover, which borrows its key.

use std::fmt;

use ark_ec::CurveGroup;
use ark_std::rand::{CryptoRng, RngCore};
use proofmill_r1cs::{Assignment, R1cs};

use super::commitment::CommitmentBases;
use super::{Commitment, Opening, ProvingKey};
use crate::{Proof, ProveError, SnarkCurve, StageReport, Timings};

/// A borrowed view of a key and its circuit, which commits and proves. Making the view copies no points.
pub struct Prover<'k, E: SnarkCurve> {
    pub(super) plain: crate::Prover<'k, E>,
    pub(super) instance: usize,
    pub(super) committed: CommitmentBases<'k, E>,
    pub(super) eta_g1: E::G1Affine,
}

// === impl Prover ===

impl<'k, E: SnarkCurve> Prover<'k, E> {
    /// A prover with a key whose points are unprepared. For many proofs, hold the key as a
    /// [`ResidentKey`](super::ResidentKey).
    ///
    /// # Errors
    ///
    /// [`ProveError::WrongKey`], [`ProveError::TooLarge`].
    pub fn new(key: &'k ProvingKey<E>, r1cs: &'k R1cs<E::ScalarField>) -> Result<Self, ProveError> {
        key.check_committed(r1cs)?;
        Ok(Self {
            plain: crate::Prover::new(&key.plain, r1cs)?,
            instance: key.plain.vk.instance.len(),
            committed: CommitmentBases::of(key),
            eta_g1: key.eta_g1,
        })
    }

    /// The plain prover, whose [`stages`](crate::prover::stages) make a proof that [`complete`](Self::complete)
    /// completes.
    pub const fn stages(&self) -> &crate::Prover<'k, E> {
        &self.plain
    }

    /// Commits to values of the committed variables, with fresh randomness: the commitment reveals nothing about
    /// them.
    ///
    /// # Errors
    ///
    /// [`ProveError::Assignment`] unless there is a value for each committed variable.
    pub fn commit(
        &self,
        values: &[E::ScalarField],
        rng: &mut (impl RngCore + CryptoRng),
    ) -> Result<(Commitment<E>, Opening<E>), ProveError> {
        let opening = Opening::draw(values, rng);
        Ok((self.commit_with(values, &opening)?, opening))
    }

    /// Like [`commit`](Self::commit), with the randomness of an opening.
    ///
    /// # Errors
    ///
    /// As for [`commit`](Self::commit), and [`ProveError::OtherCommitment`] for the opening of a commitment
    /// to other values.
    pub fn commit_with(
        &self,
        values: &[E::ScalarField],
        opening: &Opening<E>,
    ) -> Result<Commitment<E>, ProveError> {
        self.committed.commit(values, opening)
    }

    /// The part of an assignment that is committed to.
    ///
    /// # Errors
    ///
    /// [`ProveError::Assignment`] if `z` is for another circuit.
    pub fn committed_of<'z>(
        &self,
        z: &'z [E::ScalarField],
    ) -> Result<&'z [E::ScalarField], ProveError> {
        self.plain.check_length(z)?;
        Ok(&z[self.instance..self.instance + self.committed.count])
    }

    /// `Mirage.Prove`, all steps on all threads of the current rayon pool. The proof is blinded: beside the
    /// commitment it reveals the public inputs and nothing else.
    ///
    /// # Errors
    ///
    /// [`ProveError::OtherCommitment`] for the opening of a commitment to other values than `z` has, and as
    /// for [`evaluate`](crate::Prover::evaluate).
    pub fn prove(
        &self,
        z: &[E::ScalarField],
        opening: &Opening<E>,
        rng: &mut (impl RngCore + CryptoRng),
    ) -> Result<(Proof<E>, Vec<StageReport>), ProveError> {
        opening.require(self.committed_of(z)?)?;
        let (proof, reports) = self.plain.prove(z, rng)?;
        Ok((self.complete(&proof, opening), reports))
    }

    /// Completes a plain proof, which the stages or a [`DeviceKey`](crate::DeviceKey) made with the committed
    /// values, to the proof that belongs to the commitment: it subtracts κ_D·η from C, which compensates for the
    /// κ_D·δ in D.
    pub fn complete(&self, plain: &Proof<E>, opening: &Opening<E>) -> Proof<E> {
        complete(self.eta_g1, plain, opening)
    }
}

/// Completes a plain proof like [`Prover::complete`], with η in the first group and without the rest of the key.
pub fn complete<E: SnarkCurve>(
    eta_g1: E::G1Affine,
    plain: &Proof<E>,
    opening: &Opening<E>,
) -> Proof<E> {
    let c = -(eta_g1 * opening.randomness()) + plain.c;
    Proof {
        c: c.into_affine(),
        ..*plain
    }
}

/// Proves with `key` that `assignment` satisfies `r1cs`, as [`Prover::prove`] does. The committed part of `assignment`
/// must be the values that `opening` opens.
///
/// # Errors
///
/// As for [`Prover::new`] and [`Prover::prove`].
pub fn prove<E: SnarkCurve>(
    key: &ProvingKey<E>,
    r1cs: &R1cs<E::ScalarField>,
    assignment: &Assignment<E::ScalarField>,
    opening: &Opening<E>,
    rng: &mut (impl RngCore + CryptoRng),
) -> Result<(Proof<E>, Timings), ProveError> {
    let (proof, reports) = Prover::new(key, r1cs)?.prove(assignment.z(), opening, rng)?;
    Ok((proof, reports.iter().collect()))
}

impl<E: SnarkCurve> fmt::Debug for Prover<'_, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prover")
            .field("plain", &self.plain)
            .field("committed", &self.committed.count)
            .finish_non_exhaustive()
    }
}
