//! Reports of work on blocks, once somebody observes it.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

use proofmill_bus::Seq;

use super::Core;
use crate::core::event::Action;
use crate::core::tasks::{Task, TaskNo};
use crate::core::work::WorkEvent;
use crate::record::{HistoryEntry, TaskEnd, TaskOutcome, TaskRecord};
use crate::traces::Cause;

/// Number of blocks before the next to emit of which an observer is told that they were emitted.
const EMITTED_BLOCKS_MAX: u64 = 256;

impl Core {
    /// Starts to report work ([`Action::Work`]). Returns reports of the work of the past that an observer needs to know: all of
    /// blocks that are not emitted, and the last emissions.
    pub fn observe_work(&mut self) -> Vec<WorkEvent> {
        self.is_work_observed = true;
        let next = match self.plan.sequencer() {
            Some(_) => self.sequencer.cursor(),
            None => 0,
        };
        let mut events = self.last_emissions(next);
        // Beginnings come first: an observer does not take a block for new that was begun long ago.
        for end in self.task_ends(&(next..=u64::MAX)) {
            events.extend(first_begun(end).map(|at_ms| WorkEvent::Begun {
                stage: end.task.stage.clone(),
                first: end.task.block,
                last: end.last,
                at_ms,
            }));
        }
        for task in self.tasks.iter() {
            let at_ms = beginnings(task).min();
            events.extend(at_ms.map(|at_ms| begun(task.record(), at_ms)));
        }
        for end in self.task_ends(&(next..=u64::MAX)) {
            if matches!(end.trace.cause, Cause::Submission(_)) {
                events.push(WorkEvent::Accepted {
                    first: end.task.block,
                    last: end.last,
                    at_ms: end.accepted_ms,
                });
            }
        }
        let submitted = self.tasks.iter().map(|task| task.record());
        events.extend(submitted.filter_map(|task| accepted(task)));
        events
    }

    /// The last emissions below `next`, with the beginnings of their blocks.
    fn last_emissions(&self, next: u64) -> Vec<WorkEvent> {
        let Some(last) = next.checked_sub(1) else {
            return Vec::new();
        };
        let blocks = next.saturating_sub(EMITTED_BLOCKS_MAX)..=last;
        let emitted = self
            .task_ends(&blocks)
            .filter(|end| matches!(end.outcome, TaskOutcome::Emitted { .. }) && end.last < next);
        let reports = emitted.map(|emitted| {
            let mut begun: BTreeMap<Arc<str>, u64> = BTreeMap::new();
            for end in self.task_ends(&(emitted.task.block..=emitted.last)) {
                if let Some(at_ms) = first_begun(end) {
                    let known = begun.entry(end.task.stage.clone()).or_insert(at_ms);
                    *known = at_ms.min(*known);
                }
            }
            WorkEvent::EmittedBefore {
                first: emitted.task.block,
                last: emitted.last,
                at_ms: emitted.accepted_ms,
                begun: begun.into_iter().collect(),
            }
        });
        reports.collect()
    }

    /// Reports a message from outside that has become a task.
    pub(super) fn report_accepted(&mut self, no: TaskNo, seq: Seq) {
        if !self.is_work_observed {
            return;
        }
        let task = self.tasks.get(no).map(|task| task.record());
        if let Some(event) = task.and_then(|task| accepted(task)) {
            self.actions.push(Action::Work { after: seq, event });
        }
    }

    /// Reports a lease that begins now.
    pub(super) fn report_begun(&mut self, no: TaskNo) {
        if !self.is_work_observed {
            return;
        }
        if let Some(task) = self.tasks.get(no) {
            let event = begun(task.record(), self.now.wall_ms);
            // After the report of the task's acceptance.
            let after = self.applied;
            self.actions.push(Action::Work { after, event });
        }
    }

    fn task_ends(&self, blocks: &RangeInclusive<u64>) -> impl Iterator<Item = &TaskEnd> {
        self.history_about(blocks).filter_map(|entry| match entry {
            HistoryEntry::TaskEnd(end) => Some(end),
            HistoryEntry::Deadline { .. } | HistoryEntry::TakenBack { .. } => None,
        })
    }
}

fn accepted(task: &TaskRecord) -> Option<WorkEvent> {
    let is_submitted = matches!(task.trace.cause, Cause::Submission(_));
    is_submitted.then_some(WorkEvent::Accepted {
        first: task.id.block,
        last: task.last,
        at_ms: task.at_ms,
    })
}

fn begun(task: &Arc<TaskRecord>, at_ms: u64) -> WorkEvent {
    WorkEvent::Begun {
        stage: task.id.stage.clone(),
        first: task.id.block,
        last: task.last,
        at_ms,
    }
}

/// Beginnings of the attempts at a live task, as far as they are known.
fn beginnings(task: &Task) -> impl Iterator<Item = u64> {
    let held = task.copies().iter().map(|held| held.since_wall_ms());
    let unconfirmed = task.unconfirmed().iter().map(|begun| begun.at_ms);
    let attempts = task.attempts().iter();
    let failed = attempts.map(|it| it.at_ms.saturating_sub(it.failure.wall_ms));
    held.chain(unconfirmed).chain(failed)
}

/// Beginning of the first attempt at a task that has ended, as far as the history knows it.
fn first_begun(end: &TaskEnd) -> Option<u64> {
    let failures = end.failures.iter();
    let failed = failures.map(|it| it.at_ms.saturating_sub(it.ran_ms));
    failed.chain(end.begun_ms).min()
}
