//! Partitions before their memory is reserved: one at a time waits for it, the first in line.

use std::collections::BTreeMap;
use std::future::Future;
use std::task::Poll;

use futures_util::future::BoxFuture;

use super::flight::Place;
use crate::budget::Reservation;
use crate::interface::{JobId, Priority};
use crate::residency::{AcquireError, KeyUse};

/// What a partition gets.
pub(super) type Acquired = Result<(KeyUse, Reservation), AcquireError>;

/// The line, and who is at its head.
pub(super) struct Admission {
    waiting: BTreeMap<Place, JobId>,
    asking: Option<Asking>,
    /// Partitions under way at once.
    workers: usize,
    /// More of them, if they are critical.
    express: usize,
}

struct Asking {
    place: Place,
    job: JobId,
    acquired: BoxFuture<'static, Acquired>,
}

// === impl Admission ===

impl Admission {
    pub(super) fn new(workers: usize, express: usize) -> Self {
        Self {
            waiting: BTreeMap::new(),
            asking: None,
            workers,
            express,
        }
    }

    pub(super) fn push(&mut self, place: Place, job: JobId) {
        self.waiting.insert(place, job);
    }

    /// The partition whose memory is to be asked for now, while `running` are under way. If one of
    /// lower place asks already it goes back into the line, and gives up its place before the budget.
    pub(super) fn next(&mut self, running: usize) -> Option<(Place, JobId)> {
        let (first, _) = self.waiting.first_key_value()?;
        let critical = first.priority.0 == Priority::Critical;
        let slots = self.workers + if critical { self.express } else { 0 };
        if running >= slots {
            return None;
        }
        if let Some(asking) = &self.asking {
            if asking.place < *first {
                return None;
            }
            self.waiting.insert(asking.place, asking.job);
            self.asking = None;
        }
        self.waiting.pop_first()
    }

    /// Asks for a partition's memory.
    pub(super) fn ask(&mut self, place: Place, job: JobId, acquired: BoxFuture<'static, Acquired>) {
        self.asking = Some(Asking {
            place,
            job,
            acquired,
        });
    }

    /// The one that has got its memory, or never will. Pending for ever while nobody asks.
    pub(super) fn admitted(&mut self) -> impl Future<Output = (Place, JobId, Acquired)> {
        std::future::poll_fn(|context| {
            let Some(asking) = &mut self.asking else {
                return Poll::Pending;
            };
            let Poll::Ready(acquired) = asking.acquired.as_mut().poll(context) else {
                return Poll::Pending;
            };
            let (place, job) = (asking.place, asking.job);
            self.asking = None;
            Poll::Ready((place, job, acquired))
        })
    }

    /// Forgets a job's partitions.
    pub(super) fn remove(&mut self, job: JobId) {
        self.waiting.retain(|_, waiting| *waiting != job);
        if self.asking.as_ref().is_some_and(|asking| asking.job == job) {
            self.asking = None;
        }
    }
}
