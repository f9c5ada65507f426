//! A partition under way.

use std::cmp::Reverse;
use std::sync::Arc;

use crate::budget::Reservation;
use crate::interface::{JobId, Priority, Span};
use crate::key::{Footprint, Stop, Work};
use crate::queue::InputRecord;
use crate::residency::KeyUse;

/// Whose turn it is: higher priority first, then the job that arrived first, then its partitions in
/// order. It is the order before every stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Place {
    pub(super) priority: Reverse<Priority>,
    /// Counts accepted jobs.
    pub(super) arrival: u64,
    pub(super) partition: u32,
}

/// A partition that has its memory. Dropping it gives all of it back; fields are dropped in order,
/// what is in memory before what was reserved for it.
pub(super) struct Flight {
    pub(super) place: Place,
    pub(super) job: JobId,
    /// From 1.
    pub(super) attempt: u32,
    pub(super) circuit: Arc<str>,
    pub(super) circuit_id: crate::interface::CircuitId,
    pub(super) input: InputRecord,
    /// Raised when its job is at its end.
    pub(super) stop: Stop,
    /// There from the first stage on.
    pub(super) work: Option<Box<dyn Work>>,
    /// Whether a witness that does not satisfy the constraints is refused before any product.
    pub(super) knows_constraints: bool,
    /// Whether it makes products yet, or will.
    pub(super) multiplies: bool,
    /// The device that made its products.
    pub(super) device: Option<usize>,
    pub(super) footprint: Footprint,
    pub(super) reservation: Reservation,
    pub(super) held: KeyUse,
}

// === impl Flight ===

impl Flight {
    pub(super) fn span(&self) -> Span {
        Span {
            job: self.job,
            partition: self.place.partition,
            attempt: self.attempt,
            circuit: self.circuit.clone(),
        }
    }
}
