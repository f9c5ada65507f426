//! How a task stands, and the indices that say so.

use std::sync::Arc;

use super::{Core, Held, Phase, Task};
use crate::core::event::{Action, LeaseRef, Time};
use crate::core::ready::{Priority, TaskNo};
use crate::id::WorkerId;
use crate::principal::voter;

/// What the indices hold of a task.
struct Standing {
    /// Claimable, and whether not by every worker of its class.
    claimable: Option<(bool, Priority)>,
    waits: bool,
    queued: bool,
    rests: bool,
    leased: bool,
    held: bool,
    /// May be hedged, by the start of its oldest lease.
    hedgeable: Option<Time>,
}

impl Core {
    pub(super) fn set_phase(&mut self, no: TaskNo, phase: Phase) {
        self.update(no, |task| task.phase = phase);
    }

    /// The one place where a task's phase, copies and results change: keeps every index in step.
    pub(super) fn update(&mut self, no: TaskNo, change: impl FnOnce(&mut Task)) {
        let Some(task) = self.tasks.get_mut(&no) else {
            return;
        };
        let before = task.standing();
        let begun = (task.copies.len(), task.waits_for_backoff());
        change(task);
        let after = task.standing();
        if begun != (task.copies.len(), task.waits_for_backoff()) {
            self.unrecorded.note(no);
        }
        let (stage, block) = (task.stage.0, task.record.id.block);
        if before.claimable != after.claimable
            && let Some((group, class)) = &task.class
        {
            match before.claimable {
                Some((false, priority)) => self.ready[*group].remove(class, &priority),
                Some((true, priority)) => {
                    self.begun[*group].remove(&priority);
                }
                None => {}
            }
            match after.claimable {
                Some((false, priority)) => self.ready[*group].insert(class, priority),
                Some((true, priority)) => {
                    self.begun[*group].insert(priority);
                }
                None => {}
            }
        }
        match (before.waits, after.waits) {
            (true, false) => self.waiting[stage].remove(block),
            (false, true) => self.waiting[stage].add(block),
            _ => {}
        }
        match (before.queued, after.queued) {
            (true, false) => {
                self.emission.remove(&(block, task.record.id.part.clone()));
            }
            (false, true) => {
                self.emission
                    .insert((block, task.record.id.part.clone()), no);
            }
            _ => {}
        }
        match (before.rests, after.rests) {
            (true, false) => self.moving += 1,
            (false, true) => self.moving -= 1,
            _ => {}
        }
        match (before.leased, after.leased) {
            (true, false) => self.leased[stage].remove(block),
            (false, true) => self.leased[stage].add(block),
            _ => {}
        }
        if before.hedgeable != after.hedgeable {
            let index = &mut self.hedgeable[stage];
            if let Some(since) = before.hedgeable {
                index.remove(&(since, no));
            }
            if let Some(since) = after.hedgeable {
                index.insert((since, no));
            }
        }
        match (before.held, after.held) {
            (true, false) => {
                self.held[stage] -= 1;
                self.unfile(no);
            }
            (false, true) => self.held[stage] += 1,
            _ => {}
        }
    }

    /// A worker has the task no more.
    pub(super) fn end_copy(&mut self, no: TaskNo, worker: &WorkerId) -> Option<Held> {
        let mut ended = None;
        self.update(no, |task| {
            let at = task.copies.iter().position(|held| held.worker == *worker);
            ended = at.map(|at| task.copies.remove(at));
        });
        let ended = ended?;
        self.free_slot(no, &ended);
        Some(ended)
    }

    /// Nobody is to work on the task any more: whoever has it is told, but for him who has brought
    /// the result of an attempt.
    pub(super) fn end_copies(&mut self, no: TaskNo, by: Option<(&WorkerId, u32)>) {
        let mut ended = Vec::new();
        self.update(no, |task| ended = std::mem::take(&mut task.copies));
        let Some(id) = self.tasks.get(&no).map(|task| task.record.id.clone()) else {
            return;
        };
        for held in ended {
            self.free_slot(no, &held);
            if by.is_none_or(|(worker, attempt)| held.worker != *worker || held.attempt != attempt)
            {
                let (task, attempt) = (id.clone(), held.attempt);
                self.actions.push(Action::Cancel {
                    worker: held.worker,
                    lease: LeaseRef {
                        task,
                        attempt,
                        tag: held.tag,
                    },
                });
            }
        }
    }

    fn free_slot(&mut self, no: TaskNo, held: &Held) {
        let Some(worker) = self.workers.get_mut(&held.worker) else {
            return;
        };
        if let Some(batch) = worker.batches.get_mut(&held.batch) {
            batch.remove(&no);
            if batch.is_empty() {
                worker.batches.remove(&held.batch);
            }
        }
        self.note_free(&held.worker);
    }

    /// After a copy has ended: claimable for what is missing, unless something else is awaited.
    pub(super) fn rest(&mut self, no: TaskNo) {
        let Some(task) = self.tasks.get(&no) else {
            return;
        };
        if !matches!(task.phase, Phase::Ready | Phase::Leased) {
            return;
        }
        if !self.bury_spent(no) {
            let phase = match self.tasks[&no].missing() {
                0 => Phase::Leased,
                _ => Phase::Ready,
            };
            self.set_phase(no, phase);
        }
    }
}

// === impl Task ===

impl Task {
    pub(super) fn priority(&self) -> Priority {
        Priority {
            block: self.record.id.block,
            first_attempt: self.attempts.is_empty(),
            no: self.no,
        }
    }

    /// How many attempts have failed.
    pub(super) fn tried(&self) -> u32 {
        self.attempts.last().map_or(0, |attempt| attempt.number)
    }

    /// How many workers have it or have completed it.
    fn given(&self) -> usize {
        self.copies.len() + self.parts.len()
    }

    /// How many workers should, at first: one that has failed for good is not replaced.
    fn wanted(&self) -> usize {
        self.wanted.saturating_sub(self.failed_for_good().count())
    }

    pub(super) fn failed_for_good(&self) -> impl Iterator<Item = &WorkerId> {
        let attempts = self.attempts.iter();
        let permanent = attempts.filter(|attempt| attempt.failure.permanent);
        permanent.map(|attempt| &attempt.worker)
    }

    /// How many more workers should have it. Each copy has its R_max; they count together.
    pub(super) fn missing(&self) -> usize {
        if self.tried() >= self.attempts_max {
            return 0;
        }
        self.wanted().saturating_sub(self.given())
    }

    /// Whether those who have it, have completed it and should have it are as many as it takes.
    pub(super) fn is_possible(&self) -> bool {
        self.given() + self.missing() >= self.accept
    }

    /// Whether one more worker may have it than are asked for, since it takes long.
    pub(super) fn is_hedgeable(&self) -> bool {
        self.hedges
            && self.phase == Phase::Leased
            && self.given() <= self.wanted()
            && self.tried() < self.attempts_max
    }

    /// Whether a worker, or what it counts as, has it or has completed it.
    pub(super) fn is_known_to(&self, worker: &WorkerId, name: &Arc<str>) -> bool {
        let has = |held: &Held| held.worker == *worker || held.name == *name;
        self.parts.contains_key(name) || self.copies.iter().any(has)
    }

    /// Whether several results are compared and a worker of the same user has it, or has completed
    /// it: one user's workers may all say the same.
    pub(super) fn has_voter(&self, worker: &WorkerId) -> bool {
        let same = |other: &WorkerId| voter(other) == voter(worker);
        self.accept > 1
            && (self.copies.iter().any(|held| same(&held.worker))
                || self.parts.values().any(|part| same(&part.worker)))
    }

    /// Whether there are workers of its class that may not have it, since they have it already,
    /// have completed it, or have failed it for good.
    pub(super) fn is_begun(&self) -> bool {
        self.given() > 0 || self.failed_for_good().next().is_some()
    }

    fn standing(&self) -> Standing {
        let ready = self.phase == Phase::Ready;
        Standing {
            claimable: ready.then(|| (self.is_begun(), self.priority())),
            waits: self.waits(),
            queued: self.phase == Phase::Queued,
            rests: self.phase.rests(),
            leased: !self.copies.is_empty(),
            held: self.phase == Phase::Held,
            hedgeable: self
                .copies
                .iter()
                .map(|held| held.since)
                .min()
                .filter(|_| self.is_hedgeable()),
        }
    }

    /// When its next attempt is due, where workers run it and a failed one is behind it.
    pub(super) fn waits_for_backoff(&self) -> Option<Time> {
        match self.phase {
            Phase::Delayed { until } if self.class.is_some() => Some(until),
            _ => None,
        }
    }

    /// Whether the task counts against its queue's Q_max: nobody has it.
    pub(super) fn waits(&self) -> bool {
        self.phase.waits() && self.copies.is_empty()
    }
}

// === impl Phase ===

impl Phase {
    fn waits(&self) -> bool {
        matches!(
            self,
            Self::Ready | Self::Delayed { .. } | Self::Recording | Self::Queued
        )
    }

    /// Whether only another message moves it on.
    pub(super) fn rests(&self) -> bool {
        matches!(self, Self::Held | Self::Queued)
    }
}
