//! The table of live tasks, and the verbs by which they change.

#[cfg(debug_assertions)]
mod check;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Index;
use std::sync::Arc;

use proofmill_bus::Seq;

use super::ready::ReadyQueue;
use super::{Class, Held, Phase, Priority, Task, TaskNo, Terms};
use crate::core::block_count::BlockCount;
use crate::core::ending::Ending;
use crate::core::event::Time;
use crate::id::{Part, TaskId, WorkerId};
use crate::plan::StageIx;
use crate::record::{Attempt, Begun, PartRecord, RunRecord, TaskRecord};

/// The live tasks. See the [module](super).
pub(in crate::core) struct TaskTable {
    tasks: HashMap<TaskNo, Task>,
    by_id: HashMap<TaskId, TaskNo>,
    next_no: u64,
    /// By worker group.
    ready: Vec<ReadyQueue>,
    /// By worker group: claimable tasks that not every worker of their class may have, see
    /// [`Task::is_begun`].
    begun: Vec<BTreeSet<Priority>>,
    /// By stage, as are those that follow: live tasks,
    present: Vec<BlockCount>,
    /// those that count against Q_max,
    waiting: Vec<BlockCount>,
    /// those that workers have,
    leased: Vec<BlockCount>,
    /// those that may be hedged, by the start of their oldest lease,
    hedgeable: Vec<BTreeSet<(Time, TaskNo)>>,
    /// and those that collectors hold.
    held: Vec<usize>,
    /// Those that wait for the sequencer, by block and part.
    queued: BTreeMap<(u64, Part), TaskNo>,
    /// Live tasks that neither wait for a lower block nor are held by a collector.
    moving: usize,
    /// Tasks whose attempts or backoff have changed since [`TaskTable::take_changed`].
    changed: BTreeSet<TaskNo>,
}

/// A task as the log has it.
pub(in crate::core) struct NewTask {
    /// The record, as accepted.
    pub record: TaskRecord,
    /// Its stage.
    pub stage: StageIx,
    /// See [`Task::class`].
    pub class: Option<(usize, Class)>,
    /// How its stage has it run.
    pub terms: Terms,
    /// The place of its record in the log.
    pub seq: Seq,
    /// When it was accepted.
    pub accepted: Time,
    /// Whether it was in the log at the start.
    pub replayed: bool,
}

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

// === impl TaskTable ===

impl TaskTable {
    /// A table without tasks, for so many stages and worker groups.
    pub(in crate::core) fn new(stages: usize, groups: usize) -> Self {
        Self {
            tasks: HashMap::new(),
            by_id: HashMap::new(),
            next_no: 1,
            ready: (0..groups).map(|_| ReadyQueue::default()).collect(),
            begun: vec![BTreeSet::new(); groups],
            present: BlockCount::each(stages),
            waiting: BlockCount::each(stages),
            leased: BlockCount::each(stages),
            hedgeable: vec![BTreeSet::new(); stages],
            held: vec![0; stages],
            queued: BTreeMap::new(),
            moving: 0,
            changed: BTreeSet::new(),
        }
    }

    // What there is.

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

    // How they stand.

    /// Live tasks of a stage.
    pub(in crate::core) fn present(&self, stage: StageIx) -> &BlockCount {
        &self.present[stage.0]
    }

    /// Those that count against Q_max.
    pub(in crate::core) fn waiting(&self, stage: StageIx) -> &BlockCount {
        &self.waiting[stage.0]
    }

    /// Those that workers have.
    pub(in crate::core) fn leased(&self, stage: StageIx) -> &BlockCount {
        &self.leased[stage.0]
    }

    /// Number of a stage's tasks that its collector holds.
    pub(in crate::core) fn held(&self, stage: StageIx) -> usize {
        self.held[stage.0]
    }

    /// Those that may be hedged, with the start of their oldest lease, earliest first.
    pub(in crate::core) fn hedgeable(
        &self,
        stage: StageIx,
    ) -> impl Iterator<Item = (Time, TaskNo)> + '_ {
        self.hedgeable[stage.0].iter().copied()
    }

    /// Of a worker group: the first claimable task of each class, in order of priority, of those that
    /// every worker of their class may have.
    pub(in crate::core) fn heads(&self, group: usize) -> impl Iterator<Item = (&Class, Priority)> {
        self.ready[group].heads()
    }

    /// As [`TaskTable::heads`], of one class.
    pub(in crate::core) fn head_of(&self, group: usize, class: &Class) -> Option<Priority> {
        self.ready[group].head_of(class)
    }

    /// Number of tasks in this class, see [`TaskTable::heads`].
    pub(in crate::core) fn class_len(&self, group: usize, class: &Class) -> usize {
        self.ready[group].class_len(class)
    }

    /// Of a worker group: claimable tasks that not every worker of their class may have, in order of
    /// priority.
    pub(in crate::core) fn begun(&self, group: usize) -> impl Iterator<Item = Priority> + '_ {
        self.begun[group].iter().copied()
    }

    /// The first task that waits for the sequencer, by block and part: its first block and its number.
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

    /// Whether every task that could move on is claimable: none is leased, delayed, being recorded or
    /// emitted.
    pub(in crate::core) fn only_claimable_move(&self) -> bool {
        let ready: usize = self.ready.iter().map(ReadyQueue::len).sum();
        let begun: usize = self.begun.iter().map(BTreeSet::len).sum();
        self.moving == ready + begun
    }

    // What happens to them.

    /// A task begins its life, in [`Phase::New`].
    pub(in crate::core) fn insert(&mut self, new: NewTask) -> TaskNo {
        let no = TaskNo(self.next_no);
        self.next_no += 1;
        let NewTask { record, stage, .. } = new;
        self.by_id.insert(record.id.clone(), no);
        self.present[stage.0].add(record.id.block);
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
            terms: new.terms,
            attempts: Vec::new(),
            class: new.class,
            reported: Vec::new(),
            at_once: false,
            lost: Vec::new(),
            retry_at_ms: None,
            run_recorded: false,
            replayed: new.replayed,
            ending: Ending::default(),
        };
        self.tasks.insert(no, task);
        no
    }

    /// A task ends its life. Its copies have been ended before.
    pub(in crate::core) fn remove(&mut self, id: &TaskId) -> Option<Task> {
        let no = self.by_id.remove(id)?;
        self.set_phase(no, Phase::New);
        let task = self.tasks.remove(&no)?;
        self.present[task.stage.0].remove(id.block);
        self.moving -= 1;
        Some(task)
    }

    /// After a restart: a task has been accepted now.
    pub(in crate::core) fn accept_anew(&mut self, no: TaskNo, now: Time) {
        if let Some(task) = self.tasks.get_mut(&no) {
            task.accepted = now;
        }
    }

    /// Returns the phase before: one that leaves [`Phase::Held`] is to leave its collector too.
    pub(in crate::core) fn set_phase(&mut self, no: TaskNo, phase: Phase) -> Option<Phase> {
        self.update(no, |task| std::mem::replace(&mut task.phase, phase))
    }

    /// A worker gets a copy.
    pub(in crate::core) fn lease(&mut self, no: TaskNo, held: Held) {
        self.update(no, |task| {
            if task.copies.is_empty() {
                task.reported.clear();
            } else {
                task.reported.retain(|(by, _)| *by != held.worker);
            }
            task.copies.push(held);
            // While workers are adopted others may come that have it too.
            if task.missing() == 0 && task.is_possible() {
                task.phase = Phase::Leased;
            }
        });
    }

    /// A worker's copy lasts until `expires`. Returns whether it has one of this attempt.
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

    /// A worker has its copy no more.
    pub(in crate::core) fn end_copy(&mut self, no: TaskNo, worker: &WorkerId) -> Option<Held> {
        self.update(no, |task| {
            let at = task.copies.iter().position(|held| held.worker == *worker);
            at.map(|at| task.copies.remove(at))
        })?
    }

    /// Nobody has a copy any more: returns those that some had.
    pub(in crate::core) fn end_copies(&mut self, no: TaskNo) -> Vec<Held> {
        let ended = self.update(no, |task| std::mem::take(&mut task.copies));
        ended.unwrap_or_default()
    }

    /// One of the results that it takes; the first of each name counts.
    pub(in crate::core) fn add_result(&mut self, no: TaskNo, result: PartRecord) {
        self.update(no, |task| {
            task.results.entry(result.name.clone()).or_insert(result);
        });
    }

    /// An attempt has failed: the task is not claimable until these attempts are recorded.
    pub(in crate::core) fn note_failure(&mut self, no: TaskNo, attempts: Vec<Attempt>) {
        self.update(no, |task| {
            task.attempts = attempts;
            task.phase = Phase::Recording;
        });
    }

    /// The log has these attempts.
    pub(in crate::core) fn replay_attempts(&mut self, no: TaskNo, attempts: Vec<Attempt>) {
        self.update(no, |task| task.attempts = attempts);
    }

    /// A worker has ended an attempt by its own word.
    pub(in crate::core) fn note_reported(&mut self, no: TaskNo, worker: &WorkerId, attempt: u32) {
        if let Some(task) = self.tasks.get_mut(&no) {
            task.reported.push((worker.clone(), attempt));
        }
    }

    /// The attempt that will be recorded as failed is followed by another without a wait.
    pub(in crate::core) fn retry_at_once(&mut self, no: TaskNo) {
        if let Some(task) = self.tasks.get_mut(&no) {
            task.at_once = true;
        }
    }

    /// Whether [`TaskTable::retry_at_once`] was called since this was asked last.
    pub(in crate::core) fn take_at_once(&mut self, no: TaskNo) -> bool {
        let task = self.tasks.get_mut(&no);
        task.is_some_and(|task| std::mem::take(&mut task.at_once))
    }

    /// What is known of its end before that is recorded.
    pub(in crate::core) fn set_ending(&mut self, no: TaskNo, ending: Ending) {
        if let Some(task) = self.tasks.get_mut(&no) {
            task.ending = ending;
        }
    }

    /// Where an emission has gone.
    pub(in crate::core) fn set_places(&mut self, no: TaskNo, places: Vec<String>) {
        if let Some(task) = self.tasks.get_mut(&no) {
            task.ending.set_places(places);
        }
    }

    // Their work under way, and what the log has of it.

    /// The log has this of the work that was under way.
    pub(in crate::core) fn replay_run(&mut self, no: TaskNo, run: RunRecord) {
        if let Some(task) = self.tasks.get_mut(&no) {
            task.lost = run.begun;
            task.retry_at_ms = run.retry_at_ms;
            task.run_recorded = true;
        }
    }

    /// When a retry was due before a restart, milliseconds since 1970-01-01 UTC: asked once.
    pub(in crate::core) fn take_retry_time(&mut self, no: TaskNo) -> Option<u64> {
        self.tasks.get_mut(&no)?.retry_at_ms.take()
    }

    /// Splits off those attempts from before a restart for which `keep` does not hold; the others stay
    /// lost, as [`Begun::orphaned`]. Returns those that were split off.
    pub(in crate::core) fn settle_lost(
        &mut self,
        no: TaskNo,
        keep: impl Fn(&Begun) -> bool,
    ) -> Vec<Begun> {
        let Some(task) = self.tasks.get_mut(&no) else {
            return Vec::new();
        };
        let lost = std::mem::take(&mut task.lost);
        let (open, settled): (Vec<Begun>, Vec<Begun>) = lost.into_iter().partition(keep);
        let orphaned = open.into_iter().map(|begun| Begun {
            orphaned: true,
            ..begun
        });
        task.lost = orphaned.collect();
        self.changed.insert(no);
        settled
    }

    /// A worker speaks of an attempt from before a restart: it is not lost.
    pub(in crate::core) fn found_again(&mut self, no: TaskNo, worker: &WorkerId, attempt: u32) {
        let Some(task) = self.tasks.get_mut(&no) else {
            return;
        };
        let mut lost = task.lost.iter();
        let found = lost.position(|begun| begun.worker == *worker && begun.attempt == attempt);
        if let Some(at) = found {
            task.lost.remove(at);
            self.changed.insert(no);
        }
    }

    /// Whether the log holds a record of its attempts, or is about to.
    pub(in crate::core) fn set_run_recorded(&mut self, no: TaskNo, recorded: bool) {
        if let Some(task) = self.tasks.get_mut(&no) {
            task.run_recorded = recorded;
        }
    }

    /// Whether there are tasks whose attempts or backoff have changed.
    pub(in crate::core) fn has_changed(&self) -> bool {
        !self.changed.is_empty()
    }

    /// The tasks whose attempts or backoff have changed since this was asked last.
    pub(in crate::core) fn take_changed(&mut self) -> BTreeSet<TaskNo> {
        std::mem::take(&mut self.changed)
    }

    // The indices.

    /// The one place where a task's phase, copies, results and attempts change: keeps every index in
    /// step.
    fn update<T>(&mut self, no: TaskNo, change: impl FnOnce(&mut Task) -> T) -> Option<T> {
        let task = self.tasks.get_mut(&no)?;
        let before = task.standing();
        let work = (task.copies.len(), task.waits_for_backoff());
        let changed = change(task);
        let after = task.standing();
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
                self.begun[*group].remove(&priority);
            }
            None => {}
        }
        match after {
            Some((false, priority)) => self.ready[*group].insert(class, priority),
            Some((true, priority)) => {
                self.begun[*group].insert(priority);
            }
            None => {}
        }
    }

    fn index_counts(&mut self, no: TaskNo, before: &Standing, after: &Standing) {
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
            (true, false) => self.held[stage] -= 1,
            (false, true) => self.held[stage] += 1,
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
    fn standing(&self) -> Standing {
        let ready = self.phase == Phase::Ready;
        let oldest = self.copies.iter().map(|held| held.since).min();
        Standing {
            claimable: ready.then(|| (self.is_begun(), self.priority())),
            waits: self.waits(),
            queued: self.phase == Phase::Queued,
            rests: self.phase.rests(),
            leased: !self.copies.is_empty(),
            held: self.phase == Phase::Held,
            hedgeable: oldest.filter(|_| self.is_hedgeable()),
        }
    }
}
