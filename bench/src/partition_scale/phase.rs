//! One step whose parts go to workers: the commitments, or the proofs.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use serde::Serialize;

use super::workers::Worker;

/// The way in which parts get to workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Allocation {
    /// A worker that is free takes the next part from a queue
    Pull,
    /// Each worker is given its parts in advance, as in appendix A of the paper
    Fixed,
}

/// A step of equal parts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Phase {
    pub(super) parts: usize,
    /// Seconds of a part on a worker that is not slow.
    pub(super) part_s: f64,
    /// Seconds of the leader's network for a part.
    pub(super) transfer_s: f64,
    /// Seconds of the coordinator for a task that is pulled.
    pub(super) dispatch_s: f64,
    /// Seconds that a task is under way.
    pub(super) latency_s: f64,
    /// Seconds after a worker's death until its task goes to another.
    pub(super) lease_s: f64,
}

/// A point in time: seconds, ordered.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Seconds(f64);

/// An event at a point in time; the order breaks ties, so that a run is deterministic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A worker asks for a part.
    Asks { worker: usize },
    /// The lease of a dead worker ends, and its part waits again.
    Returns,
}

/// State of a step in which workers pull.
struct Pulling<'w> {
    phase: Phase,
    workers: &'w mut [Worker],
    events: BinaryHeap<Reverse<(Seconds, Event)>>,
    /// Parts that wait for a worker. All are equal, so that their number is enough.
    waiting: usize,
    /// Workers that wait for a part.
    idle: Vec<usize>,
    /// Time at which the coordinator is done with the tasks before.
    coordinator_free: f64,
    done: usize,
    last_done: f64,
}

// === impl Seconds ===

impl Eq for Seconds {}

impl PartialOrd for Seconds {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Seconds {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

// === impl Phase ===

impl Phase {
    /// The time at which the last part is done, if the step begins at `begin`; `None` if it never is.
    pub(super) fn end(
        self,
        allocation: Allocation,
        begin: f64,
        workers: &mut [Worker],
    ) -> Option<f64> {
        match allocation {
            Allocation::Pull => Pulling::new(self, begin, workers).end(),
            Allocation::Fixed => self.end_of_fixed(begin, workers),
        }
    }

    /// Worker w of k has parts w, w + k and so on. The leader sends them in order, without waiting for requests. Nobody
    /// takes over the parts of a worker that dies.
    fn end_of_fixed(self, begin: f64, workers: &mut [Worker]) -> Option<f64> {
        let mut last_done = begin;
        let count = workers.len();
        for (first, worker) in workers.iter_mut().enumerate() {
            let mut free = begin;
            for part in (first..self.parts).step_by(count) {
                let sent = begin + (part + 1) as f64 * self.transfer_s;
                free = worker.done_at(self.part_s, free.max(sent + self.latency_s))?;
            }
            last_done = last_done.max(free);
        }
        Some(last_done)
    }
}

// === impl Worker ===

impl Worker {
    /// The time at which it is done with a part that it begins at `begin`; `None` if it dies before.
    fn done_at(&mut self, part_s: f64, begin: f64) -> Option<f64> {
        let keys_s = std::mem::take(&mut self.keys_s);
        let end = begin + (keys_s + part_s) * self.slowness;
        (end <= self.dies_at).then_some(end)
    }
}

// === impl Pulling ===

impl<'w> Pulling<'w> {
    fn new(phase: Phase, begin: f64, workers: &'w mut [Worker]) -> Self {
        let asks =
            (0..workers.len()).map(|worker| Reverse((Seconds(begin), Event::Asks { worker })));
        Self {
            phase,
            events: asks.collect(),
            workers,
            waiting: phase.parts,
            idle: Vec::new(),
            coordinator_free: begin,
            done: 0,
            last_done: begin,
        }
    }

    fn end(mut self) -> Option<f64> {
        while self.done < self.phase.parts {
            let Reverse((Seconds(now), event)) = self.events.pop()?;
            match event {
                Event::Asks { worker } if self.waiting > 0 => {
                    self.waiting -= 1;
                    self.assign(worker, now);
                }
                Event::Asks { worker } => self.idle.push(worker),
                Event::Returns => match self.idle.pop() {
                    Some(worker) => self.assign(worker, now),
                    None => self.waiting += 1,
                },
            }
        }
        Some(self.last_done)
    }

    /// Hands a part to a worker that asks for it at `now`.
    fn assign(&mut self, worker: usize, now: f64) {
        if self.workers[worker].dies_at <= now {
            // It died while it waited: nobody asks.
            self.events.push(Reverse((Seconds(now), Event::Returns)));
            return;
        }
        let phase = &self.phase;
        self.coordinator_free =
            self.coordinator_free.max(now) + phase.dispatch_s + phase.transfer_s;
        let begin = self.coordinator_free + phase.latency_s;
        let event = match self.workers[worker].done_at(phase.part_s, begin) {
            Some(end) => {
                self.done += 1;
                self.last_done = self.last_done.max(end);
                (Seconds(end), Event::Asks { worker })
            }
            None => {
                let returns = self.workers[worker].dies_at.max(now) + phase.lease_s;
                (Seconds(returns), Event::Returns)
            }
        };
        self.events.push(Reverse(event));
    }
}
