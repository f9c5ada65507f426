//! The live tasks: what each is, how it stands, and every index of that.
//!
//! [`TaskTable`] owns them. A task's phase, its copies, results and attempts change only by the table's
//! verbs, which all go through one place that keeps the indices in step: what is claimable by each
//! worker group, how many tasks of each stage wait, are leased or are held, which may be hedged, and
//! which wait for the sequencer. Others read a [`Task`] by its methods.
//!
//! The table knows no worker, no collector and no timer. Whoever ends a copy frees its worker, and whoever
//! takes a task out of [`Phase::Held`] takes it out of its collector: the verbs return what that needs.

mod ready;
mod table;

use std::collections::BTreeMap;
use std::sync::Arc;

use proofmill_bus::Seq;

pub(super) use ready::{Class, Priority};
pub(super) use table::{NewTask, TaskTable};

use super::ending::Ending;
use super::event::Time;
use super::tag::LeaseTag;
use crate::id::{TaskId, WorkerId};
use crate::plan::{DispatcherPlan, StageIx};
use crate::principal::voter;
use crate::record::{Attempt, Begun, Course, PartRecord, TaskRecord};

/// A task's number: unique for the life of a core, in order of acceptance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct TaskNo(u64);

/// A live task.
pub(super) struct Task {
    no: TaskNo,
    stage: StageIx,
    record: Arc<TaskRecord>,
    content: [u8; 32],
    seq: Seq,
    accepted: Time,
    phase: Phase,
    copies: Vec<Held>,
    results: BTreeMap<Arc<str>, PartRecord>,
    terms: Terms,
    attempts: Vec<Attempt>,
    class: Option<(usize, Class)>,
    /// Workers that have ended an attempt by their own word, and which.
    reported: Vec<(WorkerId, u32)>,
    /// Whether the attempt that is being recorded as failed is followed by another without a wait.
    at_once: bool,
    /// Attempts that had begun before a restart, and whose workers have not been heard of since.
    lost: Vec<Begun>,
    /// When a retry was due before a restart, milliseconds since 1970-01-01 UTC.
    retry_at_ms: Option<u64>,
    /// Whether the log holds a record of its attempts, or is about to.
    run_recorded: bool,
    replayed: bool,
    ending: Ending,
}

/// How a stage has its tasks run: by how many workers, and how often.
#[derive(Clone, Debug)]
pub(super) struct Terms {
    /// Number of workers that should have a task, or have completed it.
    wanted: usize,
    /// Results that complete it.
    accept: usize,
    /// Attempts that may fail before no other is made.
    attempts_max: u32,
    hedges: bool,
}

/// The state of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Just applied, or between two phases.
    New,
    /// Claimable; where several workers are to have it, some may already.
    Ready,
    /// Waits for its backoff, or for the strategy that postponed it.
    Delayed { until: Time },
    /// As many workers as are wanted have it.
    Leased,
    /// A failed attempt is being recorded.
    Recording,
    /// A collector has it.
    Held,
    /// In the sequencer's input, waiting for lower blocks.
    Queued,
    /// Handed to the sink.
    Emitting,
    /// Its end is being recorded.
    Finishing,
}

/// A worker's copy of a task: its lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Held {
    worker: WorkerId,
    name: Arc<str>,
    attempt: u32,
    tag: LeaseTag,
    batch: u64,
    expires: Time,
    since: Time,
    since_wall_ms: u64,
}

// === impl TaskNo ===

impl TaskNo {
    #[cfg(test)]
    pub(super) fn new(number: u64) -> Self {
        Self(number)
    }

    /// Its remainder: spreads tasks over so many places, which are not none.
    pub(super) fn modulo(self, places: usize) -> usize {
        self.0 as usize % places
    }
}

// === impl Task ===

impl Task {
    pub(super) fn no(&self) -> TaskNo {
        self.no
    }

    pub(super) fn stage(&self) -> StageIx {
        self.stage
    }

    /// The record, as accepted.
    pub(super) fn record(&self) -> &Arc<TaskRecord> {
        &self.record
    }

    pub(super) fn id(&self) -> &TaskId {
        &self.record.id
    }

    /// [`TaskRecord::content`].
    pub(super) fn content(&self) -> &[u8; 32] {
        &self.content
    }

    /// The place of its record in the log.
    pub(super) fn seq(&self) -> Seq {
        self.seq
    }

    pub(super) fn accepted(&self) -> Time {
        self.accepted
    }

    pub(super) fn phase(&self) -> Phase {
        self.phase
    }

    /// Its workers, in the order in which they were given it.
    pub(super) fn copies(&self) -> &[Held] {
        &self.copies
    }

    /// Results so far, by what their workers count as, where it takes several.
    pub(super) fn results(&self) -> &BTreeMap<Arc<str>, PartRecord> {
        &self.results
    }

    /// Results that complete it.
    pub(super) fn accept(&self) -> usize {
        self.terms.accept
    }

    /// Its failed attempts.
    pub(super) fn attempts(&self) -> &[Attempt] {
        &self.attempts
    }

    /// The worker group whose members run it and its class among them, where workers run it.
    pub(super) fn class(&self) -> Option<(usize, &Class)> {
        self.class.as_ref().map(|(group, class)| (*group, class))
    }

    /// Whether a worker has ended this attempt by its own word.
    pub(super) fn has_reported(&self, worker: &WorkerId, attempt: u32) -> bool {
        let mut reported = self.reported.iter();
        reported.any(|(by, ended)| by == worker && *ended == attempt)
    }

    /// Attempts that had begun before a restart, and whose workers have not been heard of since.
    pub(super) fn lost(&self) -> &[Begun] {
        &self.lost
    }

    /// Whether the log holds a record of its attempts, or is about to.
    pub(super) fn is_run_recorded(&self) -> bool {
        self.run_recorded
    }

    /// Whether it was in the log at the start.
    pub(super) fn is_replayed(&self) -> bool {
        self.replayed
    }

    /// What is known of its end before that is recorded.
    pub(super) fn ending(&self) -> &Ending {
        &self.ending
    }

    /// How it has gone until now.
    pub(super) fn course(&self) -> Course {
        self.ending.course(&self.record, &self.attempts)
    }

    pub(super) fn priority(&self) -> Priority {
        Priority::new(self.record.id.block, self.attempts.is_empty(), self.no)
    }

    /// Number of failed attempts.
    pub(super) fn tried(&self) -> u32 {
        self.attempts.last().map_or(0, |attempt| attempt.number)
    }

    /// Number of workers that have it or have completed it.
    fn given(&self) -> usize {
        self.copies.len() + self.results.len()
    }

    /// Number of workers that should, at first: one that has failed for good is not replaced.
    fn wanted(&self) -> usize {
        let failed = self.failed_for_good().count();
        self.terms.wanted.saturating_sub(failed)
    }

    pub(super) fn failed_for_good(&self) -> impl Iterator<Item = &WorkerId> {
        let attempts = self.attempts.iter();
        let permanent = attempts.filter(|attempt| attempt.failure.permanent);
        permanent.map(|attempt| &attempt.worker)
    }

    /// Number of workers that should have it besides. Each copy has its R_max; they count together.
    pub(super) fn missing(&self) -> usize {
        if self.tried() >= self.terms.attempts_max {
            return 0;
        }
        self.wanted().saturating_sub(self.given())
    }

    /// Whether those who have it, have completed it and should have it are as many as it takes.
    pub(super) fn is_possible(&self) -> bool {
        self.given() + self.missing() >= self.terms.accept
    }

    /// Whether one more worker may have it than are asked for, since it takes long.
    pub(super) fn is_hedgeable(&self) -> bool {
        self.terms.hedges
            && self.phase == Phase::Leased
            && self.given() <= self.wanted()
            && self.tried() < self.terms.attempts_max
    }

    /// Whether a worker, or what it counts as, has it or has completed it.
    pub(super) fn is_known_to(&self, worker: &WorkerId, name: &Arc<str>) -> bool {
        let has = |held: &Held| held.worker == *worker || held.name == *name;
        self.results.contains_key(name) || self.copies.iter().any(has)
    }

    /// Whether several results are compared and a worker of the same user has it, or has completed
    /// it: one user's workers may all say the same.
    pub(super) fn has_voter(&self, worker: &WorkerId) -> bool {
        let same = |other: &WorkerId| voter(other) == voter(worker);
        self.terms.accept > 1
            && (self.copies.iter().any(|held| same(&held.worker))
                || self.results.values().any(|part| same(&part.worker)))
    }

    /// Whether there are workers of its class that may not have it, since they have it already,
    /// have completed it, or have failed it for good.
    pub(super) fn is_begun(&self) -> bool {
        self.given() > 0 || self.failed_for_good().next().is_some()
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

    /// Whether it can still be stopped: it has not ended, and the sink has not been given it.
    pub(super) fn is_cancellable(&self) -> bool {
        !matches!(self.phase, Phase::Finishing | Phase::Emitting)
    }

    /// The copy that a worker has, if it has it as this attempt.
    pub(super) fn copy(&self, worker: &WorkerId, attempt: u32) -> Option<&Held> {
        let mut copies = self.copies.iter();
        copies.find(|held| held.worker == *worker && held.attempt == attempt)
    }
}

// === impl Terms ===

impl Terms {
    /// Those of a dispatcher, or of a stage where no worker runs tasks.
    pub(super) fn of(dispatcher: Option<&DispatcherPlan>) -> Self {
        let speculation = dispatcher.map(|dispatcher| &dispatcher.speculation);
        let wanted = speculation.map_or(1, |of| of.copies);
        let r_max = dispatcher.map_or(0, |dispatcher| dispatcher.r_max);
        let copies = u32::try_from(wanted).unwrap_or(u32::MAX);
        Self {
            wanted,
            accept: speculation.map_or(1, |of| of.accept),
            attempts_max: r_max.saturating_add(1).saturating_mul(copies),
            hedges: speculation.is_some_and(|of| of.hedge.is_some()),
        }
    }
}

// === impl Phase ===

impl Phase {
    fn waits(self) -> bool {
        matches!(
            self,
            Self::Ready | Self::Delayed { .. } | Self::Recording | Self::Queued
        )
    }

    /// Whether only another message moves it on.
    fn rests(self) -> bool {
        matches!(self, Self::Held | Self::Queued)
    }
}

// === impl Held ===

impl Held {
    /// The copy of `worker`, which counts as `name`: no other copy's worker may.
    pub(super) fn new(worker: WorkerId, name: Arc<str>, attempt: u32, tag: LeaseTag) -> Self {
        Self {
            worker,
            name,
            attempt,
            tag,
            batch: 0,
            expires: Time::default(),
            since: Time::default(),
            since_wall_ms: 0,
        }
    }

    /// Given as a part of this assignment.
    pub(super) fn in_batch(mut self, batch: u64) -> Self {
        self.batch = batch;
        self
    }

    /// Given at `since` (by the clock on the wall `since_wall_ms`, milliseconds since 1970-01-01 UTC),
    /// until `expires` unless it is renewed.
    pub(super) fn lasting(mut self, since: Time, since_wall_ms: u64, expires: Time) -> Self {
        (self.since, self.since_wall_ms, self.expires) = (since, since_wall_ms, expires);
        self
    }

    pub(super) fn worker(&self) -> &WorkerId {
        &self.worker
    }

    /// Identity used for quorum counting; two copies of a task never share it.
    pub(super) fn name(&self) -> &Arc<str> {
        &self.name
    }

    pub(super) fn attempt(&self) -> u32 {
        self.attempt
    }

    pub(super) fn tag(&self) -> LeaseTag {
        self.tag
    }

    pub(super) fn batch(&self) -> u64 {
        self.batch
    }

    pub(super) fn expires(&self) -> Time {
        self.expires
    }

    pub(super) fn since(&self) -> Time {
        self.since
    }

    /// As `since`, in milliseconds since 1970-01-01 UTC.
    pub(super) fn since_wall_ms(&self) -> u64 {
        self.since_wall_ms
    }
}
