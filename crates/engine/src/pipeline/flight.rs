//! A partition under way.

use std::cmp::Reverse;
use std::sync::Arc;

use proofmill_groth16::Curve;
use tokio_util::sync::CancellationToken;

use super::job::Attempt;
use crate::budget::Reservation;
use crate::interface::{CircuitId, JobId, PipelineStage, Priority, Span};
use crate::key::{Footprint, Key, StepError, Work};
use crate::queue::InputRecord;
use crate::registry::Registered;
use crate::residency::KeyUse;

/// The place of a partition in every waiting line: by priority, highest first, then by the job's arrival,
/// then by the partition's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct WaitingPlace {
    pub(super) priority: Reverse<Priority>,
    /// The job's number in order of acceptance.
    pub(super) arrival: u64,
    pub(super) partition: u32,
}

/// A partition that has its memory. Dropping it gives all memory back. Fields are dropped in order: data in
/// memory before its reservation.
pub(super) struct RunningPartition {
    place: WaitingPlace,
    job: JobId,
    /// The number of the attempt, from 1.
    attempt: u32,
    circuit: Arc<str>,
    circuit_id: CircuitId,
    input: InputRecord,
    /// Raised when the job ends.
    stop: CancellationToken,
    /// The computation; present from the first stage on.
    work: Option<Box<dyn Work>>,
    /// Whether a witness that violates the constraints is refused before any product is computed.
    knows_constraints: bool,
    /// Whether it still makes products, or will.
    multiplies: bool,
    /// The device that made its products, in this attempt or the previous one.
    device: Option<usize>,
    curve: Curve,
    footprint: Footprint,
    reservation: Reservation,
    held: KeyUse,
}

// === impl RunningPartition ===

impl RunningPartition {
    /// An attempt at the partition at `place` of `job`, which has its memory.
    pub(super) fn new(
        job: JobId,
        place: WaitingPlace,
        attempt: Attempt,
        input: InputRecord,
        circuit: &Registered,
        footprint: Footprint,
        (held, reservation): (KeyUse, Reservation),
    ) -> Self {
        Self {
            place,
            job,
            attempt: attempt.number,
            circuit: circuit.name.as_str().into(),
            circuit_id: circuit.id,
            input,
            stop: attempt.stop,
            work: None,
            knows_constraints: false,
            multiplies: true,
            device: attempt.last_device,
            curve: circuit.curve,
            footprint,
            reservation,
            held,
        }
    }

    pub(super) fn job(&self) -> JobId {
        self.job
    }

    pub(super) fn place(&self) -> WaitingPlace {
        self.place
    }

    pub(super) fn partition(&self) -> u32 {
        self.place.partition
    }

    pub(super) fn attempt(&self) -> u32 {
        self.attempt
    }

    /// The circuit's name.
    pub(super) fn circuit(&self) -> &Arc<str> {
        &self.circuit
    }

    pub(super) fn circuit_id(&self) -> CircuitId {
        self.circuit_id
    }

    pub(super) fn input(&self) -> &InputRecord {
        &self.input
    }

    pub(super) fn stop(&self) -> &CancellationToken {
        &self.stop
    }

    pub(super) fn knows_constraints(&self) -> bool {
        self.knows_constraints
    }

    pub(super) fn curve(&self) -> Curve {
        self.curve
    }

    pub(super) fn device(&self) -> Option<usize> {
        self.device
    }

    /// Bytes reserved for it.
    pub(super) fn bytes(&self) -> u64 {
        self.reservation.bytes()
    }

    pub(super) fn span(&self) -> Span {
        Span {
            job: self.job,
            partition: self.place.partition,
            attempt: self.attempt,
            circuit: self.circuit.clone(),
        }
    }

    /// Waits until its key is loaded, unless its job ends first, and takes over the memory that loading no
    /// longer needs.
    pub(super) async fn load_key(&mut self) -> Result<Arc<dyn Key>, StepError> {
        let key = tokio::select! {
            key = self.held.ready() => key.map_err(StepError::Permanent),
            () = self.stop.cancelled() => Err(StepError::Stopped),
        };
        if let Some(remaining) = self.held.take_remaining() {
            self.reservation.merge(remaining);
        }
        key
    }

    /// Begins its computation with the key.
    pub(super) fn begin(&mut self, key: Arc<dyn Key>) {
        self.knows_constraints = key.knows_constraints();
        self.work = Some(key.work());
    }

    /// The computation, for the next stage.
    pub(super) fn require_work(&mut self) -> Result<&mut dyn Work, StepError> {
        match &mut self.work {
            Some(work) => Ok(&mut **work),
            None => Err(StepError::Retry("the key was not there".to_owned())),
        }
    }

    /// Drops the computation, which is no longer needed.
    pub(super) fn drop_work(&mut self) {
        self.work = None;
    }

    /// Records the device that makes its products.
    pub(super) fn enter_device(&mut self, number: usize) {
        self.device = Some(number);
    }

    /// Gives back the memory that is not needed from the stage `next` on, or all of it if there is no next
    /// stage. Returns the bytes that it keeps.
    pub(super) fn keep_for(&mut self, next: Option<PipelineStage>) -> u64 {
        let bytes = next.map_or(0, |next| self.footprint.from(next));
        if bytes == 0 {
            self.work = None;
        }
        self.reservation.shrink_to(bytes);
        bytes
    }

    /// Records that it makes no more products. Returns whether it did until now.
    pub(super) fn stop_multiplying(&mut self) -> bool {
        std::mem::take(&mut self.multiplies)
    }
}
