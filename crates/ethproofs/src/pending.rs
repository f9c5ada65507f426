//! Reports that the site has not taken yet: the latest step of each block.
//!
//! A block has one report at a time. A later step replaces an earlier one that was not sent: a call would make the
//! site take it for news.

use std::collections::{BTreeMap, BTreeSet};

use crate::call::{Proof, Step};

/// A report.
#[derive(Clone, Debug)]
struct Report {
    step: Step,
    proof: Option<Proof>,
    /// Failed calls for this report.
    failures: u32,
    /// Earliest time of the next call.
    due_ms: u64,
    /// The step of the call that has no answer yet.
    called: Option<Step>,
}

/// A report that was given up to make room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Evicted {
    pub(crate) block: u64,
    pub(crate) step: Step,
}

/// The reports, by block.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    reports: BTreeMap<u64, Report>,
    /// Blocks without a call in flight, by step.
    idle: [BTreeSet<u64>; 3],
    /// Those of them that wait after a failure, by the end of the wait.
    waiting: BTreeSet<(u64, u64)>,
    /// Number of reports, by step.
    counts: [usize; 3],
    /// Bytes of the proofs.
    bytes: u64,
}

// === impl Pending ===

impl Pending {
    pub(crate) fn len(&self) -> usize {
        self.reports.len()
    }

    /// Bytes of the proofs.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Number of reports of each step, in the order of [`Step::ALL`].
    pub(crate) fn counts(&self) -> [usize; 3] {
        self.counts
    }

    /// Adds a report, unless the block has one of the same or of a later step. Returns whether it was added.
    pub(crate) fn add(&mut self, block: u64, step: Step, proof: Option<Proof>) -> bool {
        let known = self.reports.get(&block);
        if known.is_some_and(|known| known.step >= step) {
            return false;
        }
        let called = known.and_then(|known| known.called);
        let known_step = known.map(|known| known.step);
        self.unlist(block);
        if let Some(known) = known_step {
            self.counts[known as usize] -= 1;
        }
        self.counts[step as usize] += 1;
        self.bytes += proof.map_or(0, |proof| proof.bytes);
        let report = Report {
            step,
            proof,
            failures: 0,
            due_ms: 0,
            called,
        };
        self.reports.insert(block, report);
        self.list(block);
        true
    }

    /// Starts the call that is worth most now: of the latest step, and of these of the newest block.
    pub(crate) fn call(&mut self, now_ms: u64) -> Option<(u64, Step, Option<Proof>)> {
        self.wake(now_ms);
        let ready = |blocks: &BTreeSet<u64>| {
            let is_ready = |block: &&u64| !self.waits(**block);
            blocks.iter().rev().find(is_ready).copied()
        };
        let block = self.idle.iter().rev().find_map(ready)?;
        self.unlist(block);
        let report = self.reports.get_mut(&block)?;
        report.called = Some(report.step);
        Some((block, report.step, report.proof))
    }

    /// Ends a block's call. Removes the report if `is_done` and it has not become a later one since; returns whether it
    /// was removed.
    pub(crate) fn called(&mut self, block: u64, is_done: bool) -> bool {
        let Some(report) = self.reports.get_mut(&block) else {
            return false;
        };
        let called = report.called.take();
        if is_done && called == Some(report.step) {
            self.remove(block);
            return true;
        }
        self.list(block);
        false
    }

    /// Removes a block's report, whatever its step, unless a call is in flight.
    pub(crate) fn forget(&mut self, block: u64) -> bool {
        let is_idle = self
            .reports
            .get(&block)
            .is_some_and(|it| it.called.is_none());
        if is_idle {
            self.unlist(block);
            self.remove(block);
        }
        is_idle
    }

    /// Counts a failed call of a block's report.
    pub(crate) fn fail(&mut self, block: u64) -> u32 {
        self.reports.get_mut(&block).map_or(0, |report| {
            report.failures = report.failures.saturating_add(1);
            report.failures
        })
    }

    /// Lets a block's report, which has no call in flight, wait until `due_ms`.
    pub(crate) fn wait(&mut self, block: u64, due_ms: u64) {
        self.unlist(block);
        if let Some(report) = self.reports.get_mut(&block) {
            report.due_ms = due_ms;
        }
        self.list(block);
    }

    /// Earliest time at which a report may be sent, as far as its own waits go; `None` if none is idle.
    pub(crate) fn due_ms(&self) -> Option<u64> {
        let idle: usize = self.idle.iter().map(BTreeSet::len).sum();
        match self.waiting.first() {
            Some((due_ms, _)) if self.waiting.len() == idle => Some(*due_ms),
            _ if idle == 0 => None,
            _ => Some(0),
        }
    }

    /// The report that is worth least: of the earliest step, and of these of the oldest block.
    pub(crate) fn least(&self) -> Option<Evicted> {
        let steps = Step::ALL.into_iter().zip(&self.idle);
        let mut oldest = steps.filter_map(|(step, blocks)| Some((step, *blocks.first()?)));
        oldest.next().map(|(step, block)| Evicted { block, step })
    }

    /// The proof of the oldest block.
    pub(crate) fn oldest_proof(&self) -> Option<Evicted> {
        let step = Step::Proved;
        let block = *self.idle[step as usize].first()?;
        Some(Evicted { block, step })
    }

    fn waits(&self, block: u64) -> bool {
        let report = self.reports.get(&block);
        report.is_some_and(|it| it.due_ms > 0 && self.waiting.contains(&(it.due_ms, block)))
    }

    /// Ends the waits that are over.
    fn wake(&mut self, now_ms: u64) {
        while self.waiting.first().is_some_and(|(due, _)| *due <= now_ms) {
            self.waiting.pop_first();
        }
    }

    fn list(&mut self, block: u64) {
        if let Some(report) = self.reports.get(&block)
            && report.called.is_none()
        {
            self.idle[report.step as usize].insert(block);
            if report.due_ms > 0 {
                self.waiting.insert((report.due_ms, block));
            }
        }
    }

    fn unlist(&mut self, block: u64) {
        if let Some(report) = self.reports.get(&block) {
            self.idle[report.step as usize].remove(&block);
            self.waiting.remove(&(report.due_ms, block));
        }
    }

    fn remove(&mut self, block: u64) {
        if let Some(report) = self.reports.remove(&block) {
            self.counts[report.step as usize] -= 1;
            self.bytes -= report.proof.map_or(0, |proof| proof.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proof(bytes: u64) -> Option<Proof> {
        Some(Proof {
            proving_ms: 1,
            cycles: None,
            bytes,
        })
    }

    #[test]
    fn a_later_step_replaces_an_earlier_one_and_waits_for_its_call() {
        let mut pending = Pending::default();
        assert!(pending.add(7, Step::Queued, None));
        assert!(!pending.add(7, Step::Queued, None));
        assert_eq!(pending.call(0), Some((7, Step::Queued, None)));
        assert!(pending.add(7, Step::Proving, None));
        assert!(pending.add(7, Step::Proved, proof(5)));
        // Calls of one block never overtake each other.
        assert_eq!(pending.call(0), None);
        assert!(!pending.called(7, true));
        assert_eq!(pending.call(0), Some((7, Step::Proved, proof(5))));
        assert!(!pending.add(7, Step::Proving, None));
        assert!(pending.called(7, true));
        assert_eq!((pending.len(), pending.bytes()), (0, 0));
    }

    #[test]
    fn the_latest_step_of_the_newest_block_comes_first_and_the_oldest_is_worth_least() {
        let mut pending = Pending::default();
        for block in [4, 9, 6] {
            pending.add(block, Step::Queued, None);
        }
        pending.add(5, Step::Proving, None);
        pending.add(2, Step::Proved, proof(1));
        pending.add(3, Step::Proved, proof(2));
        assert_eq!(pending.bytes(), 3);
        let least = pending.least().expect("one");
        assert_eq!((least.block, least.step), (4, Step::Queued));
        assert_eq!(pending.oldest_proof().expect("one").block, 2);
        let order: Vec<u64> = std::iter::from_fn(|| pending.call(0).map(|it| it.0)).collect();
        assert_eq!(order, [3, 2, 5, 9, 6, 4]);
        assert_eq!(pending.counts(), [3, 1, 2]);
        assert_eq!((pending.least(), pending.due_ms()), (None, None));
    }

    #[test]
    fn a_report_that_fails_waits_alone() {
        let mut pending = Pending::default();
        pending.add(8, Step::Proved, proof(1));
        pending.add(7, Step::Proved, proof(1));
        assert_eq!(pending.call(0).map(|it| it.0), Some(8));
        assert!(!pending.called(8, false));
        assert_eq!(pending.fail(8), 1);
        pending.wait(8, 500);
        assert_eq!(pending.due_ms(), Some(0));
        assert_eq!(pending.call(0).map(|it| it.0), Some(7));
        assert!(pending.called(7, true));
        assert_eq!(pending.due_ms(), Some(500));
        assert_eq!(pending.call(499), None);
        assert_eq!(pending.call(500).map(|it| it.0), Some(8));
        assert!(!pending.forget(8));
        assert!(!pending.called(8, false) && pending.forget(8));
        assert_eq!((pending.len(), pending.bytes()), (0, 0));
    }
}
