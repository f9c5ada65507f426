//! The table of live tasks, and the methods that change them.

#[cfg(debug_assertions)]
mod check;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::{Bound, Index};
use std::sync::Arc;

use proofmill_bus::Seq;

use super::ready::ReadyQueue;
use super::{ActiveLease, Class, Phase, Priority, RunPolicy, Task, TaskNo};
use crate::core::block_count::BlockCount;
use crate::core::ending::EndDetails;
use crate::core::event::Time;
use crate::core::spans::{Spans, Tally};
use crate::id::{Part, TaskId, WorkerId};
use crate::plan::StageIx;
use crate::record::{Attempt, AttemptsInProgress, PartialResult, StartedAttempt, TaskRecord};

/// The live tasks. See the [module](super).
pub(in crate::core) struct TaskTable {
    tasks: HashMap<TaskNo, Task>,
    by_id: HashMap<TaskId, TaskNo>,
    /// Live tasks of each stage, by first block and part.
    in_order: Vec<BTreeMap<(u64, Part), TaskNo>>,
    /// Numbers of live tasks, by the blocks that they are about.
    about: Spans<Tally>,
    next_no: u64,
    /// Claimable tasks that every worker of their class may have; by worker group.
    ready: Vec<ReadyQueue>,
    /// Claimable tasks that not every worker of their class may have (see [`Task::is_partially_assigned`]); by worker
    /// group.
    partially_assigned: Vec<BTreeSet<Priority>>,
    /// Live tasks, by stage.
    present: Vec<BlockCount>,
    /// Live tasks in order of acceptance, by stage.
    by_age: Vec<BTreeSet<TaskNo>>,
    /// Tasks that count against Q_max, by stage.
    waiting: Vec<BlockCount>,
    /// Tasks that workers have, by stage.
    leased: Vec<BlockCount>,
    /// Tasks that may be hedged, by stage and by the start of their oldest lease.
    hedgeable: Vec<BTreeSet<(Time, TaskNo)>>,
    /// Tasks that collectors hold, by stage.
    held: Vec<BlockCount>,
    /// Tasks that wait for the sequencer, by block and part.
    queued: BTreeMap<(u64, Part), TaskNo>,
    /// Live tasks that neither wait for a lower block nor are held by a collector.
    moving: usize,
    /// Tasks whose attempts or backoff have changed since [`TaskTable::take_changed`].
    changed: BTreeSet<TaskNo>,
}

/// A task to insert, from its record in the log.
pub(in crate::core) struct NewTask {
    /// Record of the task, as accepted.
    pub record: TaskRecord,
    /// Stage of the task.
    pub stage: StageIx,
    /// See [`Task::class`].
    pub class: Option<(usize, Class)>,
    /// Policy of its stage.
    pub policy: RunPolicy,
    /// Sequence number of the record in the log.
    pub seq: Seq,
    /// Time of acceptance.
    pub accepted: Time,
    /// Whether the task was in the log at the start.
    pub replayed: bool,
}

/// Facts about a task that the indices depend on.
struct IndexEntry {
    /// The priority, if the task is claimable, and whether some workers of its class may not have it.
    claimable: Option<(bool, Priority)>,
    waits: bool,
    queued: bool,
    is_blocked: bool,
    leased: bool,
    held: bool,
    /// Start of the oldest lease, if the task may be hedged.
    hedgeable: Option<Time>,
}

// === impl TaskTable ===

impl TaskTable {
    /// A table without tasks, for `stages` stages and `groups` worker groups.
    pub(in crate::core) fn new(stages: usize, groups: usize) -> Self {
        Self {
            tasks: HashMap::new(),
            by_id: HashMap::new(),
            in_order: vec![BTreeMap::new(); stages],
            about: Spans::default(),
            next_no: 1,
            ready: (0..groups).map(|_| ReadyQueue::default()).collect(),
            partially_assigned: vec![BTreeSet::new(); groups],
            present: BlockCount::each(stages),
            by_age: vec![BTreeSet::new(); stages],
            waiting: BlockCount::each(stages),
            leased: BlockCount::each(stages),
            hedgeable: vec![BTreeSet::new(); stages],
            held: BlockCount::each(stages),
            queued: BTreeMap::new(),
            moving: 0,
            changed: BTreeSet::new(),
        }
    }

    // Lookup.

    pub(in crate::core) fn get(&self, no: TaskNo) -> Option<&Task> {
        self.tasks.get(&no)
    }

    pub(in crate::core) fn with_id(&self, id: &TaskId) -> Option<&Task> {
        self.tasks.get(self.by_id.get(id)?)
    }

    pub(in crate::core) fn no_of(&self, id: &TaskId) -> Option<TaskNo> {
        self.by_id.get(id).copied()
    }

    pub(in crate::core) fn contains(&self, id: &TaskId) -> bool {
        self.by_id.contains_key(id)
    }

    pub(in crate::core) fn len(&self) -> usize {
        self.tasks.len()
    }

    /// All tasks, in no order.
    pub(in crate::core) fn iter(&self) -> impl Iterator<Item = &Task> {
        self.tasks.values()
    }

    /// The numbers of the tasks for which `keep` holds, in order of acceptance.
    pub(in crate::core) fn select(&self, keep: impl Fn(&Task) -> bool) -> Vec<TaskNo> {
        let kept = self.tasks.values().filter(|task| keep(task));
        let mut numbers: Vec<TaskNo> = kept.map(|task| task.no).collect();
        numbers.sort_unstable();
        numbers
    }

    // Indices.

    /// Tasks of a stage in the order of first block and part, after a place in that order.
    pub(in crate::core) fn in_order(
        &self,
        stage: StageIx,
        after: Option<(u64, &Part)>,
    ) -> impl Iterator<Item = &Task> {
        let from = match after {
            Some((block, part)) => Bound::Excluded((block, part.clone())),
            None => Bound::Unbounded,
        };
        let numbers = self.in_order[stage.0].range((from, Bound::Unbounded));
        numbers.filter_map(|(_, no)| self.get(*no))
    }

    /// Tasks of a stage whose first block is `block`, in the order of parts, after a part.
    pub(in crate::core) fn beginning_at(
        &self,
        stage: StageIx,
        block: u64,
        after: Option<&Part>,
    ) -> impl Iterator<Item = &Task> {
        let from = match after {
            Some(part) => Bound::Excluded((block, part.clone())),
            None => Bound::Included((block, Part::lowest())),
        };
        let numbers = self.in_order[stage.0].range((from, Bound::Unbounded));
        let of_block = numbers.take_while(move |((first, _), _)| *first == block);
        of_block.filter_map(|(_, no)| self.get(*no))
    }

    /// Numbers of live tasks, by the blocks that they are about.
    pub(in crate::core) fn about(&self) -> &Spans<Tally> {
        &self.about
    }

    /// Live tasks of a stage.
    pub(in crate::core) fn present(&self, stage: StageIx) -> &BlockCount {
        &self.present[stage.0]
    }

    /// The live task of a stage that was accepted first.
    pub(in crate::core) fn oldest(&self, stage: StageIx) -> Option<&Task> {
        self.get(*self.by_age[stage.0].first()?)
    }

    /// The live tasks of a stage in the order of acceptance; after a restart, in that of their records.
    pub(in crate::core) fn by_age(&self, stage: StageIx) -> impl Iterator<Item = &Task> {
        let numbers = self.by_age[stage.0].iter();
        numbers.filter_map(|no| self.get(*no))
    }

    /// Tasks of a stage that count against Q_max.
    pub(in crate::core) fn waiting(&self, stage: StageIx) -> &BlockCount {
        &self.waiting[stage.0]
    }

    /// Tasks of a stage that workers have.
    pub(in crate::core) fn leased(&self, stage: StageIx) -> &BlockCount {
        &self.leased[stage.0]
    }

    /// Tasks of a stage that its collector holds.
    pub(in crate::core) fn held(&self, stage: StageIx) -> &BlockCount {
        &self.held[stage.0]
    }

    /// Tasks of a stage that may be hedged, with the start of their oldest lease, earliest first.
    pub(in crate::core) fn hedgeable(
        &self,
        stage: StageIx,
    ) -> impl Iterator<Item = (Time, TaskNo)> + '_ {
        self.hedgeable[stage.0].iter().copied()
    }

    /// The first claimable task of each class of a worker group, in order of priority; only tasks that every
    /// worker of their class may have.
    pub(in crate::core) fn heads(&self, group: usize) -> impl Iterator<Item = (&Class, Priority)> {
        self.ready[group].heads()
    }

    /// The first claimable task of one class, see [`TaskTable::heads`].
    pub(in crate::core) fn head_of(&self, group: usize, class: &Class) -> Option<Priority> {
        self.ready[group].head_of(class)
    }

    /// Number of tasks in a class, see [`TaskTable::heads`].
    pub(in crate::core) fn class_len(&self, group: usize, class: &Class) -> usize {
        self.ready[group].class_len(class)
    }

    /// Claimable tasks of a worker group that not every worker of their class may have, in order of priority.
    pub(in crate::core) fn partially_assigned(
        &self,
        group: usize,
    ) -> impl Iterator<Item = Priority> + '_ {
        self.partially_assigned[group].iter().copied()
    }

    /// First task that waits for the sequencer, by block and part: its first block and its number.
    pub(in crate::core) fn first_queued(&self) -> Option<(u64, TaskNo)> {
        let ((first, _), no) = self.queued.first_key_value()?;
        Some((*first, *no))
    }

    /// Tasks that wait for the sequencer, by block and part: the first block and the last of each.
    pub(in crate::core) fn queued(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.queued.iter().map(|((first, _), no)| {
            let last = self.get(*no).map_or(*first, |task| task.record.last);
            (*first, last)
        })
    }

    /// Whether every task that could move on is claimable: none is leased, delayed, being recorded or being
    /// emitted.
    pub(in crate::core) fn only_claimable_move(&self) -> bool {
        let ready: usize = self.ready.iter().map(ReadyQueue::len).sum();
        let partially_assigned: usize = self.partially_assigned.iter().map(BTreeSet::len).sum();
        self.moving == ready + partially_assigned
    }

    // Changes.

    /// Inserts a task in [`Phase::New`].
    pub(in crate::core) fn insert(&mut self, new: NewTask) -> TaskNo {
        let no = TaskNo(self.next_no);
        self.next_no += 1;
        let NewTask { record, stage, .. } = new;
        self.by_id.insert(record.id.clone(), no);
        let place = (record.id.block, record.id.part.clone());
        self.in_order[stage.0].insert(place, no);
        self.about.add(record.id.block, record.last, record.at_ms);
        self.present[stage.0].add(record.id.block);
        self.by_age[stage.0].insert(no);
        self.moving += 1;
        let task = Task {
            no,
            stage,
            content: record.content(),
            record: Arc::new(record),
            seq: new.seq,
            accepted: new.accepted,
            phase: Phase::New,
            copies: Vec::new(),
            results: BTreeMap::new(),
            policy: new.policy,
            attempts: Vec::new(),
            class: new.class,
            reported: Vec::new(),
            retry_immediately: false,
            unconfirmed: Vec::new(),
            retry_at_ms: None,
            run_recorded: false,
            replayed: new.replayed,
            end_details: EndDetails::default(),
        };
        self.tasks.insert(no, task);
        no
    }

    /// Removes a task, whose copies must have been ended before.
    pub(in crate::core) fn remove(&mut self, id: &TaskId) -> Option<Task> {
        let no = self.by_id.remove(id)?;
        self.set_phase(no, Phase::New);
        let task = self.tasks.remove(&no)?;
        self.present[task.stage.0].remove(id.block);
        self.in_order[task.stage.0].remove(&(id.block, id.part.clone()));
        self.about.remove(id.block, task.record.last);
        self.by_age[task.stage.0].remove(&no);
        self.moving -= 1;
        Some(task)
    }

    /// Sets a task's time of acceptance to now, after a restart.
    pub(in crate::core) fn accept_anew(&mut self, no: TaskNo, now: Time) {
        if let Some(task) = self.tasks.get_mut(&no) {
            task.accepted = now;
        }
    }

    /// Sets the phase and returns the one before. A task that leaves [`Phase::Held`] must be taken out of its
    /// collector.
    pub(in crate::core) fn set_phase(&mut self, no: TaskNo, phase: Phase) -> Option<Phase> {
        self.update(no, |task| std::mem::replace(&mut task.phase, phase))
    }

    /// Gives a worker a copy of the task.
    pub(in crate::core) fn lease(&mut self, no: TaskNo, held: ActiveLease) {
        self.update(no, |task| {
            if task.copies.is_empty() {
                task.reported.clear();
            } else {
                task.reported.retain(|(by, _)| *by != held.worker);
            }
            task.copies.push(held);
            // During the adoption of leases after a restart, further workers may turn out to have the task.
            if task.workers_missing() == 0 && task.can_complete() {
                task.phase = Phase::Leased;
            }
        });
    }

    /// Extends a worker's copy until `expires`. Returns whether the worker has a copy under this attempt
    /// number.
    pub(in crate::core) fn renew(
        &mut self,
        no: TaskNo,
        worker: &WorkerId,
        attempt: u32,
        expires: Time,
    ) -> bool {
        let copies = self.tasks.get_mut(&no).map(|task| task.copies.iter_mut());
        let mut of_worker = copies.into_iter().flatten();
        let held = of_worker.find(|held| held.worker == *worker && held.attempt == attempt);
        held.map(|held| held.expires = expires).is_some()
    }

    /// Notes that a report on a worker's copy waits for a check.
    pub(in crate::core) fn note_report_waits(
        &mut self,
        no: TaskNo,
        worker: &WorkerId,
        attempt: u32,
    ) {
        self.update(no, |task| {
            let mut copies = task.copies.iter_mut();
            let held = copies.find(|held| held.worker == *worker && held.attempt == attempt);
            if let Some(held) = held {
                held.reported = true;
            }
        });
    }

    /// Ends a worker's copy.
    pub(in crate::core) fn end_copy(
        &mut self,
        no: TaskNo,
        worker: &WorkerId,
    ) -> Option<ActiveLease> {
        self.update(no, |task| {
            let at = task.copies.iter().position(|held| held.worker == *worker);
            at.map(|at| task.copies.remove(at))
        })?
    }

    /// Ends all copies and returns them.
    pub(in crate::core) fn end_copies(&mut self, no: TaskNo) -> Vec<ActiveLease> {
        let ended = self.update(no, |task| std::mem::take(&mut task.copies));
        ended.unwrap_or_default()
    }

    /// Adds a result; a second one of the same distinct name is ignored.
    pub(in crate::core) fn add_result(&mut self, no: TaskNo, result: PartialResult) {
        self.update(no, |task| {
            task.results
                .entry(result.distinct_name.clone())
                .or_insert(result);
        });
    }

    /// Sets the attempts after a failure. The task is not claimable until they are recorded.
    pub(in crate::core) fn note_failure(&mut self, no: TaskNo, attempts: Vec<Attempt>) {
        self.update(no, |task| {
            task.attempts = attempts;
            task.phase = Phase::Recording;
        });
    }

    /// Sets the attempts from the log, during replay.
    pub(in crate::core) fn replay_attempts(&mut self, no: TaskNo, attempts: Vec<Attempt>) {
        self.update(no, |task| task.attempts = attempts);
    }

    /// Notes that a worker has itself ended an attempt (failed, completed or released it).
    pub(in crate::core) fn note_reported(&mut self, no: TaskNo, worker: &WorkerId, attempt: u32) {
        if let Some(task) = self.tasks.get_mut(&no) {
            task.reported.push((worker.clone(), attempt));
        }
    }

    /// Makes the next attempt follow the failed one without a backoff.
    pub(in crate::core) fn set_retry_immediately(&mut self, no: TaskNo) {
        if let Some(task) = self.tasks.get_mut(&no) {
            task.retry_immediately = true;
        }
    }

    /// Whether [`TaskTable::set_retry_immediately`] was called since the last call.
    pub(in crate::core) fn take_retry_immediately(&mut self, no: TaskNo) -> bool {
        let task = self.tasks.get_mut(&no);
        task.is_some_and(|task| std::mem::take(&mut task.retry_immediately))
    }

    /// Sets the details of the task's end, before it is recorded.
    pub(in crate::core) fn set_end_details(&mut self, no: TaskNo, end_details: EndDetails) {
        if let Some(task) = self.tasks.get_mut(&no) {
            task.end_details = end_details;
        }
    }

    /// Sets the places that the emitted message went to.
    pub(in crate::core) fn set_places(&mut self, no: TaskNo, places: Vec<String>) {
        if let Some(task) = self.tasks.get_mut(&no) {
            task.end_details.set_places(places);
        }
    }

    // Work under way, and its record in the log.

    /// Takes over the record of work that was under way before a restart.
    pub(in crate::core) fn replay_run(&mut self, no: TaskNo, run: AttemptsInProgress) {
        if let Some(task) = self.tasks.get_mut(&no) {
            task.unconfirmed = run.attempts;
            task.retry_at_ms = run.retry_at_ms;
            task.run_recorded = true;
        }
    }

    /// Takes the time at which a retry was due before a restart, milliseconds since 1970-01-01 UTC; `None`
    /// from the second call on.
    pub(in crate::core) fn take_retry_time(&mut self, no: TaskNo) -> Option<u64> {
        self.tasks.get_mut(&no)?.retry_at_ms.take()
    }

    /// Removes those unconfirmed attempts from before a restart for which `keep` does not hold, and returns them;
    /// marks the others as [`StartedAttempt::orphaned`].
    pub(in crate::core) fn settle_unconfirmed(
        &mut self,
        no: TaskNo,
        keep: impl Fn(&StartedAttempt) -> bool,
    ) -> Vec<StartedAttempt> {
        let Some(task) = self.tasks.get_mut(&no) else {
            return Vec::new();
        };
        let unconfirmed = std::mem::take(&mut task.unconfirmed);
        let (open, settled): (Vec<StartedAttempt>, Vec<StartedAttempt>) =
            unconfirmed.into_iter().partition(keep);
        let orphaned = open.into_iter().map(|begun| StartedAttempt {
            orphaned: true,
            ..begun
        });
        task.unconfirmed = orphaned.collect();
        self.changed.insert(no);
        settled
    }

    /// Removes an attempt from the unconfirmed ones: its worker has sent a message about it. Returns the time
    /// of its beginning, milliseconds since 1970-01-01 UTC, if it was one of them.
    pub(in crate::core) fn confirm_attempt(
        &mut self,
        no: TaskNo,
        worker: &WorkerId,
        attempt: u32,
    ) -> Option<u64> {
        let task = self.tasks.get_mut(&no)?;
        let mut unconfirmed = task.unconfirmed.iter();
        let found =
            unconfirmed.position(|begun| begun.worker == *worker && begun.attempt == attempt);
        let begun = task.unconfirmed.remove(found?);
        self.changed.insert(no);
        Some(begun.at_ms)
    }

    /// Sets the wall-clock time at which a worker's copy began, under an earlier leader.
    pub(in crate::core) fn note_begun(&mut self, no: TaskNo, worker: &WorkerId, begun_ms: u64) {
        let copies = self.tasks.get_mut(&no).map(|task| task.copies.iter_mut());
        let mut of_worker = copies.into_iter().flatten();
        if let Some(held) = of_worker.find(|held| held.worker == *worker) {
            held.since_wall_ms = begun_ms;
        }
    }

    /// Sets whether the log holds a record of the task's attempts, or will once pending appends are accepted.
    pub(in crate::core) fn set_run_recorded(&mut self, no: TaskNo, recorded: bool) {
        if let Some(task) = self.tasks.get_mut(&no) {
            task.run_recorded = recorded;
        }
    }

    /// Whether the attempts or the backoff of any task have changed.
    pub(in crate::core) fn has_changed(&self) -> bool {
        !self.changed.is_empty()
    }

    /// Takes the tasks whose attempts or backoff have changed since the last call.
    pub(in crate::core) fn take_changed(&mut self) -> BTreeSet<TaskNo> {
        std::mem::take(&mut self.changed)
    }

    // Upkeep of the indices.

    /// Changes a task. Every change of a task's phase, copies, results or attempts goes through here, which
    /// keeps the indices in step.
    fn update<T>(&mut self, no: TaskNo, change: impl FnOnce(&mut Task) -> T) -> Option<T> {
        let task = self.tasks.get_mut(&no)?;
        let before = task.index_entry();
        let work = (task.copies.len(), task.waits_for_backoff());
        let changed = change(task);
        let after = task.index_entry();
        if work != (task.copies.len(), task.waits_for_backoff()) {
            self.changed.insert(no);
        }
        self.index_claimable(no, before.claimable, after.claimable);
        self.index_counts(no, &before, &after);
        Some(changed)
    }

    fn index_claimable(
        &mut self,
        no: TaskNo,
        before: Option<(bool, Priority)>,
        after: Option<(bool, Priority)>,
    ) {
        let class = self.tasks.get(&no).and_then(|task| task.class.as_ref());
        let Some((group, class)) = class.filter(|_| before != after) else {
            return;
        };
        match before {
            Some((false, priority)) => self.ready[*group].remove(class, &priority),
            Some((true, priority)) => {
                self.partially_assigned[*group].remove(&priority);
            }
            None => {}
        }
        match after {
            Some((false, priority)) => self.ready[*group].insert(class, priority),
            Some((true, priority)) => {
                self.partially_assigned[*group].insert(priority);
            }
            None => {}
        }
    }

    fn index_counts(&mut self, no: TaskNo, before: &IndexEntry, after: &IndexEntry) {
        let Some(task) = self.tasks.get(&no) else {
            return;
        };
        let (stage, block) = (task.stage.0, task.record.id.block);
        match (before.waits, after.waits) {
            (true, false) => self.waiting[stage].remove(block),
            (false, true) => self.waiting[stage].add(block),
            _ => {}
        }
        if before.queued != after.queued {
            let place = (block, task.record.id.part.clone());
            match after.queued {
                true => self.queued.insert(place, no),
                false => self.queued.remove(&place),
            };
        }
        match (before.is_blocked, after.is_blocked) {
            (true, false) => self.moving += 1,
            (false, true) => self.moving -= 1,
            _ => {}
        }
        if before.leased != after.leased {
            self.about
                .count_leased(block, task.record.last, after.leased);
            match after.leased {
                true => self.leased[stage].add(block),
                false => self.leased[stage].remove(block),
            }
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
            (true, false) => self.held[stage].remove(block),
            (false, true) => self.held[stage].add(block),
            _ => {}
        }
    }
}

impl Index<TaskNo> for TaskTable {
    type Output = Task;

    fn index(&self, no: TaskNo) -> &Task {
        &self.tasks[&no]
    }
}

// === impl Task ===

impl Task {
    fn index_entry(&self) -> IndexEntry {
        let ready = self.phase == Phase::Ready;
        let oldest = self.copies.iter().map(|held| held.since).min();
        IndexEntry {
            claimable: ready.then(|| (self.is_partially_assigned(), self.priority())),
            waits: self.waits(),
            queued: self.phase == Phase::Queued,
            is_blocked: self.phase.is_blocked(),
            leased: !self.copies.is_empty(),
            held: self.phase == Phase::Held,
            hedgeable: oldest.filter(|_| self.is_hedgeable()),
        }
    }
}
