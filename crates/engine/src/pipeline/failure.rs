//! Interpretation of a failed attempt at a partition: who is at fault, and the message for people.

use super::device::Device;
use super::flight::RunningPartition;
use crate::interface::PipelineStage;
use crate::key::StepError;

/// A failed attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    /// The error message, with the partition and the reason.
    pub(super) why: String,
    /// Number of the device that made the attempt's products, if one did.
    pub(super) device: Option<usize>,
    pub(super) blame: Blame,
}

/// The party at fault for a failed attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Blame {
    /// The job: every attempt would fail.
    Job,
    /// No party is at fault.
    Nobody,
    /// The device, but it may do better the next time.
    Device,
    /// The device, which must not be used again, for this reason.
    Broken(String),
    /// The device: it made a wrong proof of a right witness.
    WrongProof,
    /// The device or the witness: decided once another attempt succeeds.
    Ambiguous,
}

// === impl Failure ===

impl Failure {
    /// The failure that an error in a stage means; `None` if the attempt was only cancelled. `device` is
    /// the one that made the products.
    pub(super) fn of(
        running: &RunningPartition,
        stage: PipelineStage,
        error: StepError,
        device: Option<&Device>,
    ) -> Option<Self> {
        let number = running.device().filter(|_| device.is_some());
        let what = format!(
            "partition {} of circuit {}",
            running.partition(),
            running.circuit()
        );
        let (why, blame) = match error {
            StepError::Stopped => return None,
            StepError::Permanent(why) => (why, Blame::Job),
            StepError::Retry(why) if stage == PipelineStage::Prove => (why, Blame::Device),
            StepError::Retry(why) => (why, Blame::Nobody),
            StepError::Broken(why) => (why.clone(), Blame::Broken(why)),
            StepError::Invalid => invalid(running.knows_constraints(), device),
        };
        Some(Self {
            why: format!("{what}: {why}"),
            device: number,
            blame,
        })
    }
}

/// The message and blame for a proof that does not verify. Unless the constraints are known in full, the
/// witness may be at fault, until another attempt with it succeeds.
fn invalid(knows_constraints: bool, device: Option<&Device>) -> (String, Blame) {
    let on = device.map_or_else(String::new, |device| {
        format!(" on device {}", device.name())
    });
    let (else_, blame) = if knows_constraints {
        (
            "the device computes wrongly, or the key's parts do not belong together",
            Blame::WrongProof,
        )
    } else {
        (
            "the witness does not satisfy the circuit, the key's parts do not belong \
             together, or the device computes wrongly",
            Blame::Ambiguous,
        )
    };
    let why = format!("the proof made{on} does not verify: {else_}");
    (why, blame)
}
