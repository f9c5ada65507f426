//! The line of partitions that wait for memory. Only one at a time asks the budget: the first in line.

use std::collections::BTreeMap;
use std::future::Future;
use std::task::Poll;

use futures_util::future::BoxFuture;

use super::flight::WaitingPlace;
use crate::budget::Reservation;
use crate::interface::{JobId, Priority};
use crate::residency::{AcquireError, KeyUse};

/// Most partitions that are examined for one that may overtake the first in line.
const OVERTAKERS_EXAMINED_MAX: usize = 256;

/// The key and the reserved memory that a partition gets, or the reason that it gets none.
pub(super) type Acquired = Result<(KeyUse, Reservation), AcquireError>;

/// The line, and the partition at its head that asks for memory.
pub(super) struct Admission {
    waiting: BTreeMap<WaitingPlace, JobId>,
    request: Option<MemoryRequest>,
    /// Most partitions under way at once.
    workers: usize,
    /// Critical partitions that may be under way beyond `workers`.
    express: usize,
    /// Most partitions that may overtake one in line.
    batch: u32,
    /// The partition that was overtaken last, and the number of times so far.
    overtaken: Option<(WaitingPlace, u32)>,
}

struct MemoryRequest {
    place: WaitingPlace,
    /// The place that decides about priority: the partition's own, or that of the partition that it
    /// overtook.
    rank: WaitingPlace,
    job: JobId,
    acquired: BoxFuture<'static, Acquired>,
}

// === impl Admission ===

impl Admission {
    pub(super) fn new(workers: usize, express: usize, batch: u32) -> Self {
        Self {
            waiting: BTreeMap::new(),
            request: None,
            workers,
            express,
            batch,
            overtaken: None,
        }
    }

    pub(super) fn push(&mut self, place: WaitingPlace, job: JobId) {
        self.waiting.insert(place, job);
    }

    /// The partition that should ask for memory now, while `running` are under way. A partition of lower
    /// rank that asks already goes back into the line, and loses its place before the budget.
    pub(super) fn next(&mut self, running: usize) -> Option<(WaitingPlace, JobId)> {
        let (first, _) = self.waiting.first_key_value()?;
        let critical = first.priority.0 == Priority::Critical;
        let slots = self.workers + if critical { self.express } else { 0 };
        if running >= slots {
            return None;
        }
        if let Some(request) = &self.request {
            if request.rank <= *first {
                return None;
            }
            self.waiting.insert(request.place, request.job);
            self.request = None;
        }
        self.waiting.pop_first()
    }

    /// A partition of the same priority that may overtake `first`: the next in line for which `is_ready`,
    /// unless `first` was overtaken `batch` times.
    pub(super) fn overtaking(
        &mut self,
        (first, job): (WaitingPlace, JobId),
        is_ready: impl Fn(WaitingPlace, JobId) -> bool,
    ) -> Option<(WaitingPlace, JobId)> {
        let times = match self.overtaken {
            Some((place, times)) if place == first => times,
            _ => 0,
        };
        if times >= self.batch {
            return None;
        }
        let (place, other) = self
            .waiting
            .iter()
            .take_while(|(place, _)| place.priority == first.priority)
            .take(OVERTAKERS_EXAMINED_MAX)
            .map(|(place, job)| (*place, *job))
            .find(|(place, job)| is_ready(*place, *job))?;
        self.overtaken = Some((first, times + 1));
        self.waiting.remove(&place);
        self.waiting.insert(first, job);
        Some((place, other))
    }

    /// Starts to ask for a partition's memory, with the rank `rank` in the line.
    pub(super) fn ask(
        &mut self,
        place: WaitingPlace,
        rank: WaitingPlace,
        job: JobId,
        acquired: BoxFuture<'static, Acquired>,
    ) {
        self.request = Some(MemoryRequest {
            place,
            rank,
            job,
            acquired,
        });
    }

    /// Waits until the partition that asks gets its memory or is refused. Pending for ever while none asks.
    pub(super) fn admitted(&mut self) -> impl Future<Output = (WaitingPlace, JobId, Acquired)> {
        std::future::poll_fn(|context| {
            let Some(request) = &mut self.request else {
                return Poll::Pending;
            };
            let Poll::Ready(acquired) = request.acquired.as_mut().poll(context) else {
                return Poll::Pending;
            };
            let (place, job) = (request.place, request.job);
            self.request = None;
            Poll::Ready((place, job, acquired))
        })
    }

    /// Removes a job's partitions.
    pub(super) fn remove(&mut self, job: JobId) {
        self.waiting.retain(|_, waiting| *waiting != job);
        if self
            .request
            .as_ref()
            .is_some_and(|request| request.job == job)
        {
            self.request = None;
        }
    }

    /// All partitions in line, including the one that asks.
    #[cfg(test)]
    pub(super) fn all(&self) -> impl Iterator<Item = (WaitingPlace, JobId)> {
        let asking = self.request.iter().map(|it| (it.place, it.job));
        let waiting = self.waiting.iter().map(|(place, job)| (*place, *job));
        waiting.chain(asking)
    }

    /// Panics if a partition is in line twice, or the one that asks has the rank of another priority.
    #[cfg(test)]
    pub(super) fn check(&self) {
        if let Some(request) = &self.request {
            assert!(!self.waiting.contains_key(&request.place));
            assert_eq!(request.rank.priority, request.place.priority);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Reverse;

    use super::*;

    fn place(priority: Priority, arrival: u64) -> WaitingPlace {
        WaitingPlace {
            priority: Reverse(priority),
            arrival,
            partition: 0,
        }
    }

    /// A line of normal partitions; keys are loaded for those with even numbers.
    fn line(batch: u32, length: u64) -> Admission {
        let mut admission = Admission::new(1, 0, batch);
        for arrival in 1..=length {
            admission.push(place(Priority::Normal, arrival), JobId([0; 16]));
        }
        admission
    }

    /// The arrival numbers of the partitions in the order in which they get their memory.
    fn order(admission: &mut Admission) -> Vec<u64> {
        let is_ready = |place: WaitingPlace, _| place.arrival.is_multiple_of(2);
        let mut order = Vec::new();
        while let Some((first, job)) = admission.next(0) {
            let overtaking = match is_ready(first, job) {
                true => None,
                false => admission.overtaking((first, job), is_ready),
            };
            let (next, job) = overtaking.unwrap_or((first, job));
            admission.ask(next, first, job, Box::pin(std::future::pending()));
            // A partition that asks is not returned again, whichever one it overtook.
            assert!(admission.next(0).is_none());
            admission.request = None;
            order.push(next.arrival);
        }
        order
    }

    #[test]
    fn a_partition_is_overtaken_at_most_as_often_as_allowed() {
        assert_eq!(order(&mut line(0, 6)), [1, 2, 3, 4, 5, 6]);
        assert_eq!(order(&mut line(1, 6)), [2, 1, 4, 3, 6, 5]);
        assert_eq!(order(&mut line(2, 8)), [2, 4, 1, 6, 8, 3, 5, 7]);
        assert_eq!(order(&mut line(9, 6)), [2, 4, 6, 1, 3, 5]);
    }

    #[test]
    fn only_equal_priorities_overtake_and_a_higher_one_replaces_the_request() {
        let mut admission = line(9, 2);
        admission.push(place(Priority::Low, 4), JobId([0; 16]));
        assert_eq!(order(&mut admission), [2, 1, 4]);

        let mut admission = line(9, 2);
        let first = admission.next(0).unwrap();
        let overtaking = admission.overtaking(first, |_, _| true).unwrap();
        admission.ask(
            overtaking.0,
            first.0,
            overtaking.1,
            Box::pin(std::future::pending()),
        );
        let high = place(Priority::High, 3);
        admission.push(high, JobId([0; 16]));
        assert_eq!(admission.next(0).map(|(place, _)| place), Some(high));
        // The partition that asked is in its own place again.
        let left: Vec<u64> = admission
            .waiting
            .keys()
            .map(|place| place.arrival)
            .collect();
        assert_eq!(left, [1, 2]);
    }
}
