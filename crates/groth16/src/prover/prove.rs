//! Proofs with a key that is not resident, and errors of all provers.

use std::time::Duration;

use ark_std::rand::{CryptoRng, RngCore};
use proofmill_kernels::DomainTooLarge;
use proofmill_r1cs::{Assignment, R1cs, R1csError, Unsatisfied};

use crate::prover::stages::{Prover, ProverStage, StageReport};
use crate::{Proof, ProvingKey, SnarkCurve};

/// The reason why no proof was made. All reasons are permanent: the same call fails again. A device's error
/// concerns that device only: another device, or the processors, can make the proof.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProveError {
    /// The assignment does not satisfy the constraints: what it states is false.
    #[error("nothing to prove: {0}")]
    Unsatisfied(#[from] Unsatisfied),
    /// The assignment is for another system.
    #[error(transparent)]
    Assignment(#[from] R1csError),
    /// The key is for another system.
    #[error("the proving key is for another circuit: load the key whose digest is the circuit's")]
    WrongKey,
    /// The key's parts contradict each other.
    #[error("no proving key: {0}")]
    InvalidKey(String),
    /// The system exceeds the field's largest domain.
    #[error(transparent)]
    TooLarge(#[from] DomainTooLarge),
    /// The opening is that of a commitment to other values.
    #[error(
        "the opening is of a commitment to other values than the assignment's: commit to these, or \
         prove with the assignment that was committed to"
    )]
    OtherCommitment,
    /// The key's points are prepared for the processors.
    #[error("the key's points are prepared for the processors: hold them plain to use a device")]
    Prepared,
    /// A device failed, ran out of memory or refused the job.
    #[error(transparent)]
    Device(#[from] proofmill_accelerator::Error),
}

/// Durations of the stages of a proof.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timings {
    /// A·z and B·z, and checking them against C·z.
    pub evaluate: Duration,
    /// The transforms.
    pub quotient: Duration,
    /// The product over the A query.
    pub msm_a: Duration,
    /// The products over the B queries, both groups.
    pub msm_b: Duration,
    /// The product over the L query.
    pub msm_l: Duration,
    /// The product over the H query, the one with full-size scalars.
    pub msm_h: Duration,
    /// Blinding and conversion.
    pub assemble: Duration,
}

// === impl Timings ===

impl Timings {
    /// The sum of all stages.
    pub fn total(&self) -> Duration {
        self.evaluate
            + self.quotient
            + self.msm_a
            + self.msm_b
            + self.msm_l
            + self.msm_h
            + self.assemble
    }
}

impl<'a> FromIterator<&'a StageReport> for Timings {
    fn from_iter<I: IntoIterator<Item = &'a StageReport>>(reports: I) -> Self {
        let mut timings = Self::default();
        for report in reports {
            let slot = match report.stage {
                ProverStage::Evaluate => &mut timings.evaluate,
                ProverStage::Quotient => &mut timings.quotient,
                ProverStage::MsmA => &mut timings.msm_a,
                ProverStage::MsmBG1 | ProverStage::MsmBG2 => &mut timings.msm_b,
                ProverStage::MsmL => &mut timings.msm_l,
                ProverStage::MsmH => &mut timings.msm_h,
                ProverStage::Assemble => &mut timings.assemble,
            };
            *slot += report.duration;
        }
        timings
    }
}

/// Proves that `assignment` satisfies `r1cs`, whose key is `key`, on all threads of the current
/// rayon pool. The proof is blinded: it reveals the public inputs and nothing else.
///
/// # Errors
///
/// [`ProveError`]; in particular an assignment that does not satisfy the system is refused before
/// any group operation.
pub fn prove<E: SnarkCurve>(
    key: &ProvingKey<E>,
    r1cs: &R1cs<E::ScalarField>,
    assignment: &Assignment<E::ScalarField>,
    rng: &mut (impl RngCore + CryptoRng),
) -> Result<(Proof<E>, Timings), ProveError> {
    let (proof, reports) = Prover::new(key, r1cs)?.prove(assignment.z(), rng)?;
    Ok((proof, reports.iter().collect()))
}
