//! The live tasks: their state, and every index of it.
//!
//! [`TaskTable`] owns the tasks. A task's phase, copies, results and attempts change only through the table's
//! methods, which all go through one function that keeps the indices in step: the claimable tasks of each
//! worker group, the numbers of waiting, leased and held tasks of each stage, the tasks that may be hedged,
//! and those that wait for the sequencer. Other parts read a [`Task`] through its methods.
//!
//! The table knows no worker, no collector and no timer. The caller that ends a copy frees its worker, and
//! the caller that takes a task out of [`Phase::Held`] takes it out of its collector; the methods return the
//! values needed for that.

mod ready;
mod table;

use std::collections::BTreeMap;
use std::sync::Arc;

use proofmill_bus::Seq;

pub(super) use ready::{Class, Priority};
pub(super) use table::{NewTask, TaskTable};

use super::ending::EndDetails;
use super::event::Time;
use super::tag::LeaseTag;
use crate::id::{TaskId, WorkerId};
use crate::plan::{DispatcherPlan, StageIx};
use crate::principal::quorum_id;
use crate::record::{Attempt, PartialResult, StartedAttempt, TaskRecord, TaskTimeline};

/// Number of a task: unique for the life of a core, in order of acceptance.
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
    copies: Vec<ActiveLease>,
    results: BTreeMap<Arc<str>, PartialResult>,
    policy: RunPolicy,
    attempts: Vec<Attempt>,
    class: Option<(usize, Class)>,
    /// Workers that have themselves ended an attempt (failed, completed or released it), with the attempt's
    /// number.
    reported: Vec<(WorkerId, u32)>,
    /// Whether the attempt being recorded as failed is followed by another without a backoff.
    retry_immediately: bool,
    /// Attempts that had begun before a restart and whose workers have sent nothing about them since.
    unconfirmed: Vec<StartedAttempt>,
    /// Time at which a retry was due before a restart, milliseconds since 1970-01-01 UTC.
    retry_at_ms: Option<u64>,
    /// Whether the log holds an [`AttemptsInProgress`](crate::record::AttemptsInProgress) of the task, or will
    /// once pending appends are accepted.
    run_recorded: bool,
    replayed: bool,
    end_details: EndDetails,
}

/// Number of workers, results and attempts for the tasks of a stage.
#[derive(Clone, Debug)]
pub(super) struct RunPolicy {
    /// Number of workers that should have a task or have completed it.
    copies_wanted: usize,
    /// Number of results that complete a task.
    results_required: usize,
    /// Number of failed attempts after which no other is made.
    attempts_max: u32,
    hedges: bool,
}

/// The state of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Just accepted, or between two phases.
    New,
    /// Claimable. If several workers are to have the task, some may have it already.
    Ready,
    /// Waits for its backoff, or for the strategy that postponed it.
    Delayed { until: Time },
    /// As many workers have the task as are wanted.
    Leased,
    /// A failed attempt is being recorded.
    Recording,
    /// A collector has the task.
    Held,
    /// The task is in the sequencer's input and waits for lower blocks.
    Queued,
    /// The task is handed to the sink.
    Emitting,
    /// The end of the task is being recorded.
    Finishing,
}

/// A worker's copy of a task: its lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ActiveLease {
    worker: WorkerId,
    distinct_name: Arc<str>,
    attempt: u32,
    tag: LeaseTag,
    batch: u64,
    expires: Time,
    /// Whether a report on it waits for a check.
    reported: bool,
    since: Time,
    since_wall_ms: u64,
}

// === impl TaskNo ===

impl TaskNo {
    #[cfg(test)]
    pub(super) fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number modulo `places`, which must not be zero; used to spread tasks evenly.
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

    /// Record of the task, as accepted.
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

    /// Sequence number of the task's record in the log.
    pub(super) fn seq(&self) -> Seq {
        self.seq
    }

    pub(super) fn accepted(&self) -> Time {
        self.accepted
    }

    pub(super) fn phase(&self) -> Phase {
        self.phase
    }

    /// Copies of the task, in the order in which workers were given them.
    pub(super) fn copies(&self) -> &[ActiveLease] {
        &self.copies
    }

    /// Results so far, by distinct name; empty unless the stage takes several results.
    pub(super) fn results(&self) -> &BTreeMap<Arc<str>, PartialResult> {
        &self.results
    }

    /// Number of results that complete the task.
    pub(super) fn results_required(&self) -> usize {
        self.policy.results_required
    }

    /// Failed attempts that are kept.
    pub(super) fn attempts(&self) -> &[Attempt] {
        &self.attempts
    }

    /// Worker group that runs the task and the task's class in it; `None` if no worker runs tasks of the
    /// stage.
    pub(super) fn class(&self) -> Option<(usize, &Class)> {
        self.class.as_ref().map(|(group, class)| (*group, class))
    }

    /// Whether the worker has itself ended this attempt (failed, completed or released it).
    pub(super) fn has_reported(&self, worker: &WorkerId, attempt: u32) -> bool {
        let mut reported = self.reported.iter();
        reported.any(|(by, ended)| by == worker && *ended == attempt)
    }

    /// Attempts that had begun before a restart and whose workers have sent nothing about them since.
    pub(super) fn unconfirmed(&self) -> &[StartedAttempt] {
        &self.unconfirmed
    }

    /// Whether the log holds an [`AttemptsInProgress`](crate::record::AttemptsInProgress) of the task, or will
    /// once pending appends are accepted.
    pub(super) fn is_run_recorded(&self) -> bool {
        self.run_recorded
    }

    /// Whether the task was in the log at the start.
    pub(super) fn is_replayed(&self) -> bool {
        self.replayed
    }

    /// Details of the task's end, collected before it is recorded.
    pub(super) fn end_details(&self) -> &EndDetails {
        &self.end_details
    }

    /// Timeline of the task until now.
    pub(super) fn timeline(&self) -> TaskTimeline {
        self.end_details.timeline(&self.record, &self.attempts)
    }

    pub(super) fn priority(&self) -> Priority {
        Priority::new(self.record.id.block, self.attempts.is_empty(), self.no)
    }

    /// Number of failed attempts.
    pub(super) fn failed_count(&self) -> u32 {
        self.attempts.last().map_or(0, |attempt| attempt.number)
    }

    /// Number of workers that have the task or have completed it.
    fn assigned_count(&self) -> usize {
        self.copies.len() + self.results.len()
    }

    /// Number of workers that should have the task, hedges aside. A worker that failed it for good is not
    /// replaced.
    fn workers_wanted(&self) -> usize {
        let failed = self.failed_for_good().count();
        self.policy.copies_wanted.saturating_sub(failed)
    }

    pub(super) fn failed_for_good(&self) -> impl Iterator<Item = &WorkerId> {
        let attempts = self.attempts.iter();
        let permanent = attempts.filter(|attempt| attempt.failure.permanent);
        permanent.map(|attempt| &attempt.worker)
    }

    /// Number of further workers that should have the task; 0 once the limit of failed attempts, over all
    /// copies together, is reached.
    pub(super) fn workers_missing(&self) -> usize {
        if self.failed_count() >= self.policy.attempts_max {
            return 0;
        }
        self.workers_wanted().saturating_sub(self.assigned_count())
    }

    /// Whether enough results can still come: workers that have the task, have completed it or should have it
    /// are at least as many as the results required.
    pub(super) fn can_complete(&self) -> bool {
        self.assigned_count() + self.workers_missing() >= self.policy.results_required
    }

    /// Whether one more worker than wanted may have the task because it takes long.
    pub(super) fn is_hedgeable(&self) -> bool {
        self.policy.hedges
            && self.phase == Phase::Leased
            && self.assigned_count() <= self.workers_wanted()
            && self.failed_count() < self.policy.attempts_max
            && !self.copies.iter().any(ActiveLease::is_reported)
    }

    /// Whether the worker, or another one with the same distinct name, has the task or has completed it.
    pub(super) fn is_known_to(&self, worker: &WorkerId, distinct_name: &Arc<str>) -> bool {
        let has =
            |held: &ActiveLease| held.worker == *worker || held.distinct_name == *distinct_name;
        self.results.contains_key(distinct_name) || self.copies.iter().any(has)
    }

    /// Whether several results are compared and a worker of the same user has the task or has completed it.
    /// One user's workers could all return the same wrong result.
    pub(super) fn has_worker_of_user(&self, worker: &WorkerId) -> bool {
        let same = |other: &WorkerId| quorum_id(other) == quorum_id(worker);
        self.policy.results_required > 1
            && (self.copies.iter().any(|held| same(&held.worker))
                || self.results.values().any(|part| same(&part.worker)))
    }

    /// Whether some workers of the class may not have the task because they have it, have completed it, or
    /// have failed it for good.
    pub(super) fn is_partially_assigned(&self) -> bool {
        self.assigned_count() > 0 || self.failed_for_good().next().is_some()
    }

    /// Time of the next attempt, if the task waits for the backoff of a failed one; `None` otherwise.
    pub(super) fn waits_for_backoff(&self) -> Option<Time> {
        match self.phase {
            Phase::Delayed { until } if self.class.is_some() => Some(until),
            _ => None,
        }
    }

    /// Whether the task counts against its queue's Q_max: it waits and no worker has it.
    pub(super) fn waits(&self) -> bool {
        self.phase.waits() && self.copies.is_empty()
    }

    /// Whether the task can still be cancelled: it has not ended, and the sink has not been given it.
    pub(super) fn is_cancellable(&self) -> bool {
        !matches!(self.phase, Phase::Finishing | Phase::Emitting)
    }

    /// The worker's copy of the task under this attempt number.
    pub(super) fn copy(&self, worker: &WorkerId, attempt: u32) -> Option<&ActiveLease> {
        let mut copies = self.copies.iter();
        copies.find(|held| held.worker == *worker && held.attempt == attempt)
    }
}

// === impl RunPolicy ===

impl RunPolicy {
    /// Policy of a dispatcher's stage; `None` for a stage whose tasks no worker runs.
    pub(super) fn of(dispatcher: Option<&DispatcherPlan>) -> Self {
        let speculation = dispatcher.map(|dispatcher| &dispatcher.speculation);
        let copies_wanted = speculation.map_or(1, |of| of.copies);
        let r_max = dispatcher.map_or(0, |dispatcher| dispatcher.r_max);
        let copies = u32::try_from(copies_wanted).unwrap_or(u32::MAX);
        Self {
            copies_wanted,
            results_required: speculation.map_or(1, |of| of.accept),
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

    /// Whether only another message can move the task on.
    fn is_blocked(self) -> bool {
        matches!(self, Self::Held | Self::Queued)
    }
}

// === impl ActiveLease ===

impl ActiveLease {
    /// The copy of `worker`, whose name by the stage's `distinct` setting is `distinct_name`; no other copy of
    /// the task may have the same.
    pub(super) fn new(
        worker: WorkerId,
        distinct_name: Arc<str>,
        attempt: u32,
        tag: LeaseTag,
    ) -> Self {
        Self {
            worker,
            distinct_name,
            attempt,
            tag,
            batch: 0,
            expires: Time::default(),
            reported: false,
            since: Time::default(),
            since_wall_ms: 0,
        }
    }

    /// The copy as part of assignment `batch`.
    pub(super) fn in_batch(mut self, batch: u64) -> Self {
        self.batch = batch;
        self
    }

    /// The copy with its times: given at `since` (`since_wall_ms` is the same in milliseconds since
    /// 1970-01-01 UTC), ending at `expires` unless it is renewed.
    pub(super) fn lasting(mut self, since: Time, since_wall_ms: u64, expires: Time) -> Self {
        (self.since, self.since_wall_ms, self.expires) = (since, since_wall_ms, expires);
        self
    }

    pub(super) fn worker(&self) -> &WorkerId {
        &self.worker
    }

    /// Name of the worker by the stage's `distinct` setting; two copies of a task never share it.
    pub(super) fn distinct_name(&self) -> &Arc<str> {
        &self.distinct_name
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

    /// Whether a report on it waits for a check.
    pub(super) fn is_reported(&self) -> bool {
        self.reported
    }

    pub(super) fn expires(&self) -> Time {
        self.expires
    }

    pub(super) fn since(&self) -> Time {
        self.since
    }

    /// The time of [`ActiveLease::since`], in milliseconds since 1970-01-01 UTC.
    pub(super) fn since_wall_ms(&self) -> u64 {
        self.since_wall_ms
    }
}
