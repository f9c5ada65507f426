//! Records of work under way, with which it survives the process: attempts that have begun, the
//! time at which a retry is due, and the time since which a group is gathered.
//!
//! None of it is waited for. That an attempt has begun is recorded when it has lasted [`BRIEF`]: most
//! attempts at a task of milliseconds end before, and cost no record. Other changes are appended after
//! the event that made them, in one batch. So a crash may lose that an attempt had begun. A program
//! that kills the process at once could profit from that for ever; therefore, after a restart,
//! assignments are recorded at once and wait until it is durable that they have begun: of tasks that
//! were there before, and in the first minute of all.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use super::forget::FORGET_MAX;
use super::hosts::Gathering;
use super::lease::{draw, reason};
use super::{Change, Core, Gathered, Phase, Task, Then, Timer};
use crate::core::event::{Action, Lease, Time};
use crate::core::ready::TaskNo;
use crate::id::{Part, WorkerId};
use crate::plan::StageIx;
use crate::record::{Begun, Record, RecordKey, RunRecord};

/// For so long after a restart every assignment waits for its record: what was submitted again since
/// the log had lost it may be what ended the process.
const CAUTION: Duration = Duration::from_secs(60);

/// An attempt that has lasted for less is not recorded as begun.
const BRIEF: Duration = Duration::from_millis(100);

/// Failure text of an attempt of which nobody has spoken since a restart.
const LOST: &str = "the process that ran it, and the coordinator with it, ended while it did";

/// What the log does not say yet of the work under way.
#[derive(Default)]
pub(super) struct Unrecorded {
    /// Tasks whose attempts or backoff have changed.
    tasks: BTreeSet<TaskNo>,
    /// Tasks at which attempts have begun of which nothing is recorded, and when that is due; earliest
    /// first. There is a timer while there are any.
    brief: VecDeque<(Time, TaskNo)>,
    /// Those of them that have lasted long enough.
    lasting: Vec<TaskNo>,
    /// Groups whose time has begun or ended.
    groups: BTreeSet<(StageIx, Arc<str>)>,
    /// Among the actions, the assignments that wait for the record that they have begun.
    careful: Vec<usize>,
}

impl Core {
    /// Hands an assignment out: at once, or when it is durable that it has begun.
    pub(super) fn hand_out(&mut self, worker: &WorkerId, leases: Vec<Lease>) {
        let since_start = self.started_at.until(self.now.mono);
        let in_doubt = self.reopened && since_start < CAUTION;
        let is_old = |lease: &Lease| {
            let no = self.by_id.get(&lease.task.id);
            no.and_then(|no| self.tasks.get(no))
                .is_some_and(|task| task.replayed)
        };
        if in_doubt || leases.iter().any(is_old) {
            self.unrecorded.careful.push(self.actions.len());
        }
        self.actions.push(Action::Assign {
            after: None,
            worker: worker.clone(),
            leases,
        });
    }

    /// Appends what has changed of the work under way.
    pub(super) fn record_progress(&mut self) {
        let new = &mut self.unrecorded;
        if new.tasks.is_empty() && new.lasting.is_empty() && new.groups.is_empty() {
            return;
        }
        let (mut tasks, groups) = (
            std::mem::take(&mut new.tasks),
            std::mem::take(&mut new.groups),
        );
        if new.careful.is_empty() {
            tasks.retain(|no| !self.is_brief(*no));
        }
        tasks.extend(std::mem::take(&mut self.unrecorded.lasting));
        let mut changes = Vec::new();
        changes.extend(tasks.into_iter().filter_map(|no| self.run_change(no)));
        for (stage, key) in groups {
            changes.extend(self.group_change(stage, &key));
        }
        while changes.len() > FORGET_MAX {
            let rest = changes.split_off(FORGET_MAX);
            self.append(std::mem::replace(&mut changes, rest), Then::Nothing);
        }
        if changes.is_empty() && self.unrecorded.careful.is_empty() {
            return;
        }
        let token = self.append(changes, Then::Nothing);
        for at in std::mem::take(&mut self.unrecorded.careful) {
            if let Some(Action::Assign { after, .. }) = self.actions.get_mut(at) {
                *after = Some(token);
            }
        }
    }

    /// Whether all that is new of a task is an attempt that has just begun: it is recorded later, if
    /// it lasts.
    fn is_brief(&mut self, no: TaskNo) -> bool {
        let Some(task) = self.tasks.get(&no) else {
            return true;
        };
        if task.run_recorded || !task.lost.is_empty() || task.waits_for_backoff().is_some() {
            return false;
        }
        let mut copies = task.copies.iter();
        if copies.any(|held| held.since == self.now.mono) {
            let due = self.now.mono.plus(BRIEF);
            if self.unrecorded.brief.is_empty() {
                self.timers.insert((due, Timer::Begun));
            }
            self.unrecorded.brief.push_back((due, no));
        }
        true
    }

    /// Attempts may have lasted long enough to be recorded. Those that will have soon are recorded
    /// with them: one append is cheaper than two.
    pub(super) fn begun_due(&mut self) {
        let soon = self.now.mono.plus(BRIEF / 4);
        while let Some((due, no)) = self.unrecorded.brief.pop_front() {
            if due > soon {
                self.unrecorded.brief.push_front((due, no));
                self.timers.insert((due, Timer::Begun));
                return;
            }
            self.unrecorded.lasting.push(no);
        }
    }

    fn run_change(&mut self, no: TaskNo) -> Option<(RecordKey, Change)> {
        let now = self.now;
        let task = self.tasks.get_mut(&no)?;
        // Its record goes in the append that ends it.
        if task.phase == Phase::Finishing {
            return None;
        }
        let held = task.copies.iter().map(|held| Begun {
            worker: held.worker.clone(),
            attempt: held.attempt,
            at_ms: held.since_wall_ms,
            orphaned: false,
        });
        let record = RunRecord {
            begun: task.lost.iter().cloned().chain(held).collect(),
            retry_at_ms: match task.phase {
                Phase::Delayed { until } => {
                    let left = now.mono.until(until).as_millis();
                    Some(now.wall_ms.saturating_add(left as u64))
                }
                _ => None,
            },
        };
        let key = RecordKey::Run(task.record.id.clone());
        let is_empty = record.begun.is_empty() && record.retry_at_ms.is_none();
        if is_empty && !task.run_recorded {
            return None;
        }
        task.run_recorded = !is_empty;
        let change = match is_empty {
            true => Change::Delete,
            false => Change::put(Record::Run(record)),
        };
        Some((key, change))
    }

    /// After a restart: a dispatcher's task waits for what is left of its backoff.
    pub(super) fn resume_backoff(&mut self, no: TaskNo) -> bool {
        let (now, plan) = (self.now, Arc::clone(&self.plan));
        let Some(task) = self.tasks.get_mut(&no) else {
            return false;
        };
        let Some(retry_at_ms) = task.retry_at_ms.take() else {
            return false;
        };
        let Some(dispatcher) = plan.stage(task.stage).dispatcher() else {
            return false;
        };
        let retry = task.tried();
        // A clock that was set back does not make it longer.
        let whole = dispatcher
            .backoff
            .delay(retry, draw(&task.record.id, retry));
        let left = Duration::from_millis(retry_at_ms.saturating_sub(now.wall_ms)).min(whole);
        if left.is_zero() {
            return false;
        }
        let until = now.mono.plus(left);
        self.set_phase(no, Phase::Delayed { until });
        self.timers.insert((until, Timer::Wake(no)));
        true
    }

    /// After a restart: attempts that had begun, and whose worker has not been heard of. Where no
    /// worker outlives the coordinator they have failed. Where workers do, they have the time of a
    /// lease to say that they still run, but for those that have had it before.
    pub(super) fn resume_attempts(&mut self, no: TaskNo) {
        let workers_live_on = !self.options.adopt_grace.is_zero();
        let Some(task) = self.tasks.get_mut(&no) else {
            return;
        };
        if task.lost.is_empty() || task.phase == Phase::Finishing {
            return;
        }
        let lost = std::mem::take(&mut task.lost);
        let (failed, open): (Vec<Begun>, Vec<Begun>) = lost
            .into_iter()
            .partition(|begun| begun.orphaned || !workers_live_on);
        task.lost = open
            .into_iter()
            .map(|begun| Begun {
                orphaned: true,
                ..begun
            })
            .collect();
        let stage = task.stage;
        // The first time it may well be innocent: there is no reason to wait.
        task.at_once |= !failed.is_empty() && task.attempts.is_empty();
        if !task.lost.is_empty() {
            let t_ack = self.plan.stage(stage).dispatcher().map(|of| of.t_ack);
            let due = self.now.mono.plus(t_ack.unwrap_or_default());
            self.timers.insert((due, Timer::Lost(no)));
        }
        self.unrecorded.note(no);
        for begun in failed {
            self.charge(no, &begun.worker, &reason(LOST));
        }
    }

    /// Nobody has spoken of these attempts for as long as a lease lasts.
    pub(super) fn lost_due(&mut self, no: TaskNo) {
        let Some(task) = self.tasks.get_mut(&no) else {
            return;
        };
        let lost = std::mem::take(&mut task.lost);
        if lost.is_empty() || task.phase == Phase::Finishing {
            return;
        }
        self.unrecorded.note(no);
        for begun in lost {
            self.charge(no, &begun.worker, &reason(LOST));
        }
    }

    /// A worker speaks of an attempt that began before a restart: it has not ended its process.
    pub(super) fn found_again(&mut self, no: TaskNo, worker: &WorkerId, attempt: u32) {
        let Some(task) = self.tasks.get_mut(&no) else {
            return;
        };
        let mut lost = task.lost.iter();
        let found = lost.position(|begun| begun.worker == *worker && begun.attempt == attempt);
        if let Some(at) = found {
            task.lost.remove(at);
            self.unrecorded.note(no);
        }
    }

    /// Attempts have been charged: the task may be spent.
    fn charge(&mut self, no: TaskNo, worker: &WorkerId, failure: &crate::record::Failure) {
        let alive = self.tasks.get(&no);
        if alive.is_some_and(|task| task.phase != Phase::Finishing) {
            self.record_failure(no, worker, failure);
        }
    }

    // Groups.

    /// When the time of a group is up that is gathered from now on, or was before a restart.
    pub(super) fn group_due(
        &mut self,
        stage: StageIx,
        key: &Arc<str>,
        t_collect: Duration,
    ) -> Time {
        let now = self.now;
        self.unrecorded.note_group(stage, key.clone());
        let Some(collector) = self.collectors[stage.0].as_mut() else {
            return now.mono.plus(t_collect);
        };
        let began = collector.began.entry(Part::from_text(key));
        let group = began.or_insert(Gathered {
            since_ms: now.wall_ms,
            due: Some(now.mono.plus(t_collect)),
            recorded: false,
        });
        *group.due.get_or_insert_with(|| {
            // A clock that was set back does not make it longer.
            let passed = Duration::from_millis(now.wall_ms.saturating_sub(group.since_ms));
            now.mono.plus(t_collect.saturating_sub(passed))
        })
    }

    /// The time of a group is up: what comes under its key from now on begins another.
    pub(super) fn group_ends(&mut self, stage: StageIx, key: &Arc<str>) {
        let name = self.plan.stage(stage).name.clone();
        let Some(collector) = self.collectors[stage.0].as_mut() else {
            return;
        };
        let part = Part::from_text(key);
        let ended = collector.began.remove(&part);
        if ended.is_some_and(|group| group.recorded) {
            let key = RecordKey::Since(name, part);
            self.append(vec![(key, Change::Delete)], Then::Nothing);
        }
    }

    fn group_change(&mut self, stage: StageIx, key: &Arc<str>) -> Option<(RecordKey, Change)> {
        let is_empty = self.present[stage.0].total() == 0;
        let name = self.plan.stage(stage).name.clone();
        let collector = self.collectors[stage.0].as_mut()?;
        let part = Part::from_text(key);
        let is_hosted = matches!(collector.gathering, Gathering::Hosted(_));
        let is_offered_again = is_hosted && !is_empty && !collector.fired.contains_key(&part);
        let is_gathered = collector.deadlines.contains_key(key);
        let group = collector.began.get_mut(&part)?;
        let record_key = RecordKey::Since(name, part.clone());
        if is_gathered {
            let is_new = !std::mem::replace(&mut group.recorded, true);
            let put = Change::put(Record::Since(group.since_ms));
            return is_new.then_some((record_key, put));
        }
        if is_offered_again {
            return None;
        }
        let was_recorded = group.recorded;
        collector.began.remove(&part);
        was_recorded.then_some((record_key, Change::Delete))
    }

    /// After a restart: groups that were gathered and are no more.
    pub(super) fn forget_groups(&mut self) {
        let mut changes = Vec::new();
        for (ix, collector) in self.collectors.iter_mut().enumerate() {
            let Some(collector) = collector else { continue };
            let name = &self.plan.stages[ix].name;
            let gathered: std::collections::BTreeSet<Part> = collector
                .deadlines
                .keys()
                .map(|key| Part::from_text(key))
                .collect();
            collector.began.retain(|part, _| {
                let stays = gathered.contains(part);
                if !stays {
                    let key = RecordKey::Since(name.clone(), part.clone());
                    changes.push((key, Change::Delete));
                }
                stays
            });
        }
        while !changes.is_empty() {
            let rest = changes.split_off(changes.len().min(FORGET_MAX));
            self.append(std::mem::replace(&mut changes, rest), Then::Nothing);
        }
    }
}

// === impl Unrecorded ===

impl Unrecorded {
    /// Attempts at a task have begun or ended, or its backoff has.
    pub(super) fn note(&mut self, task: TaskNo) {
        self.tasks.insert(task);
    }

    /// A group is gathered, or no more.
    pub(super) fn note_group(&mut self, stage: StageIx, key: Arc<str>) {
        self.groups.insert((stage, key));
    }
}

/// The record of the attempts at a task goes when the task does.
pub(super) fn forget_run(task: &Task) -> Option<(RecordKey, Change)> {
    let key = RecordKey::Run(task.record.id.clone());
    task.run_recorded.then_some((key, Change::Delete))
}
