//! What a failed attempt at a partition means: whom it speaks against, and what people are told.

use super::device::Device;
use super::flight::Flight;
use crate::interface::Stage;
use crate::key::StepError;

/// A failed attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    /// The partition, and the reason.
    pub(super) why: String,
    /// The device that made the attempt's products, by number, if one did.
    pub(super) device: Option<usize>,
    pub(super) blame: Blame,
}

/// The party that a failed attempt speaks against.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Blame {
    /// The job: another attempt would fail as well.
    Job,
    /// Nobody.
    Nobody,
    /// The device, which may do better the next time.
    Device,
    /// The device, which is not to be used any more: why.
    Broken(String),
    /// The device, which made a wrong proof of a right witness.
    Wrong,
    /// The device or the witness: known once another attempt succeeds.
    Doubtful,
}

// === impl Failure ===

impl Failure {
    /// What an error in a stage comes to; nothing if the attempt was only told to stop. `device` is the one
    /// that made the products.
    pub(super) fn of(
        flight: &Flight,
        stage: Stage,
        error: StepError,
        device: Option<&Device>,
    ) -> Option<Self> {
        let number = flight.device().filter(|_| device.is_some());
        let what = format!(
            "partition {} of circuit {}",
            flight.partition(),
            flight.circuit()
        );
        let (why, blame) = match error {
            StepError::Stopped => return None,
            StepError::Permanent(why) => (why, Blame::Job),
            StepError::Retry(why) if stage == Stage::Prove => (why, Blame::Device),
            StepError::Retry(why) => (why, Blame::Nobody),
            StepError::Broken(why) => (why.clone(), Blame::Broken(why)),
            StepError::Invalid => invalid(flight.knows_constraints(), device),
        };
        Some(Self {
            why: format!("{what}: {why}"),
            device: number,
            blame,
        })
    }
}

/// A proof does not verify. Where the constraints are not known in full it may be the witness, as long as no
/// other attempt with it succeeds.
fn invalid(knows_constraints: bool, device: Option<&Device>) -> (String, Blame) {
    let on = device.map_or_else(String::new, |device| {
        format!(" on device {}", device.name())
    });
    let (else_, blame) = if knows_constraints {
        (
            "the device computes wrongly, or the key's parts do not belong together",
            Blame::Wrong,
        )
    } else {
        (
            "the witness does not satisfy the circuit, the key's parts do not belong \
             together, or the device computes wrongly",
            Blame::Doubtful,
        )
    };
    let why = format!("the proof made{on} does not verify: {else_}");
    (why, blame)
}
