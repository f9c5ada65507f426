//! The workers that have joined: offers, assignments, and the index of free workers.
//!
//! Assignments are numbered in the order in which they are given. A worker has as many slots as it runs
//! assignments at once. [`Workers`] keeps the index of workers with a free slot in step with every change.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use super::event::Time;
use super::tasks::TaskNo;
use super::usage::Usage;
use crate::conversation::WorkerJoin;
use crate::id::WorkerId;
use crate::principal::quorum_id;
use crate::record::PauseRecord;
use crate::traces::AttemptEnd;

/// The workers, by name.
pub(super) struct Workers {
    workers: BTreeMap<WorkerId, Worker>,
    /// Workers with room for another assignment, by worker group.
    free: Vec<BTreeSet<WorkerId>>,
    next_batch: u64,
    /// Reason for the distrust of each user whose worker has sent a false result, by the identity that counts
    /// in a quorum.
    distrusted: BTreeMap<Arc<str>, Arc<str>>,
    /// Workers that an operator drains, as the log has them; some may not have joined.
    drained: BTreeMap<WorkerId, PauseRecord>,
}

/// A worker that has joined.
pub(super) struct Worker {
    group: usize,
    labels: BTreeSet<String>,
    memory: u64,
    slots: usize,
    retired: bool,
    paused: Option<Arc<str>>,
    is_distrusted: bool,
    is_drained: bool,
    /// Tasks of the worker, by assignment.
    batches: BTreeMap<u64, BTreeSet<TaskNo>>,
    heard: Time,
    last_used: u64,
    usage: Usage,
}

// === impl Workers ===

impl Workers {
    /// No workers, for `groups` worker groups.
    pub(super) fn new(groups: usize) -> Self {
        Self {
            workers: BTreeMap::new(),
            free: vec![BTreeSet::new(); groups],
            next_batch: 0,
            distrusted: BTreeMap::new(),
            drained: BTreeMap::new(),
        }
    }

    pub(super) fn get(&self, name: &WorkerId) -> Option<&Worker> {
        self.workers.get(name)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&WorkerId, &Worker)> {
        self.workers.iter()
    }

    /// The workers after one, by name.
    pub(super) fn after(
        &self,
        name: Option<&WorkerId>,
    ) -> impl Iterator<Item = (&WorkerId, &Worker)> {
        let from = name.map_or(Bound::Unbounded, Bound::Excluded);
        self.workers.range::<WorkerId, _>((from, Bound::Unbounded))
    }

    pub(super) fn len(&self) -> usize {
        self.workers.len()
    }

    /// Workers of a group with room for another assignment, by name.
    pub(super) fn free(&self, group: usize) -> impl Iterator<Item = (&WorkerId, &Worker)> {
        let free = self.free[group].iter();
        free.filter_map(|name| Some((name, self.workers.get(name)?)))
    }

    pub(super) fn has_free(&self, group: usize) -> bool {
        !self.free[group].is_empty()
    }

    /// Adds a worker to a group, or replaces its offer. A worker that was known keeps its tasks.
    pub(super) fn join(&mut self, join: WorkerJoin, group: usize, now: Time) {
        let before = self.workers.remove(&join.worker);
        if let Some(before) = &before {
            self.free[before.group].remove(&join.worker);
        }
        let (batches, last_used, usage) = match before {
            Some(worker) => (worker.batches, worker.last_used, worker.usage),
            None => (BTreeMap::new(), 0, Usage::new(now)),
        };
        let worker = Worker {
            group,
            labels: join.labels,
            memory: join.memory,
            slots: join.slots,
            retired: false,
            paused: None,
            is_distrusted: self.is_distrusted(&join.worker),
            is_drained: self.drained.contains_key(&join.worker),
            batches,
            heard: now,
            last_used,
            usage,
        };
        self.workers.insert(join.worker.clone(), worker);
        self.change(&join.worker, |_| {});
    }

    pub(super) fn remove(&mut self, name: &WorkerId) {
        if let Some(worker) = self.workers.remove(name) {
            self.free[worker.group].remove(name);
        }
    }

    /// Marks a worker as taking no new tasks.
    pub(super) fn retire(&mut self, name: &WorkerId) {
        self.change(name, |worker| worker.retired = true);
    }

    /// Notes a message from a worker.
    pub(super) fn hear(&mut self, name: &WorkerId, now: Time) {
        if let Some(worker) = self.workers.get_mut(name) {
            worker.heard = now;
        }
    }

    /// Applies a worker's heartbeat. Returns whether the worker is known.
    pub(super) fn beat(
        &mut self,
        name: &WorkerId,
        now: Time,
        retired: bool,
        paused: Option<Arc<str>>,
    ) -> bool {
        self.change(name, |worker| {
            worker.heard = now;
            worker.retired = retired;
            worker.paused = paused;
        })
    }

    /// Distrusts a worker and every other one of its user: none is free again, under whatever name it joins.
    /// Returns the user's workers that have joined.
    pub(super) fn distrust(&mut self, name: &WorkerId, why: Arc<str>) -> Vec<WorkerId> {
        let user = quorum_id(name);
        if !self.distrusted.contains_key(user) {
            self.distrusted.insert(user.into(), why);
        }
        let of_user = self.workers.keys().filter(|name| quorum_id(name) == user);
        let of_user: Vec<WorkerId> = of_user.cloned().collect();
        for name in &of_user {
            self.change(name, |worker| worker.is_distrusted = true);
        }
        of_user
    }

    /// Whether a worker, or another one of its user, has sent a false result.
    pub(super) fn is_distrusted(&self, name: &WorkerId) -> bool {
        self.distrusted.contains_key(quorum_id(name))
    }

    /// The distrusted users with the reason for each, by name.
    pub(super) fn distrusted(&self) -> impl Iterator<Item = (&Arc<str>, &Arc<str>)> {
        self.distrusted.iter()
    }

    /// Drains a worker: it is not free until the drain ends.
    pub(super) fn drain(&mut self, pause: PauseRecord) {
        let name = pause.name.clone();
        self.drained.insert(name.clone(), pause);
        self.change(&name, |worker| worker.is_drained = true);
    }

    /// Ends the drains of the matching workers.
    pub(super) fn undrain(&mut self, is_meant: impl Fn(&WorkerId) -> bool) {
        let ended = self.drained.keys().filter(|name| is_meant(name));
        for name in ended.cloned().collect::<Vec<WorkerId>>() {
            self.drained.remove(&name);
            self.change(&name, |worker| worker.is_drained = false);
        }
    }

    /// Drain of a worker.
    pub(super) fn drained(&self, name: &str) -> Option<&PauseRecord> {
        self.drained.get(name)
    }

    /// Number of drained workers.
    pub(super) fn drained_count(&self) -> usize {
        self.drained.len()
    }

    /// The drains, by name of the worker.
    pub(super) fn drains(&self) -> impl Iterator<Item = &PauseRecord> {
        self.drained.values()
    }

    /// The number for a new assignment.
    pub(super) fn begin_batch(&mut self) -> u64 {
        let batch = self.next_batch;
        self.next_batch += 1;
        batch
    }

    /// Adds a task to a worker's assignment.
    pub(super) fn give(&mut self, name: &WorkerId, batch: u64, no: TaskNo, now: Time) {
        self.change(name, |worker| {
            worker.batches.entry(batch).or_default().insert(no);
            worker.usage.note(true, now);
        });
    }

    /// Removes a task, whose attempt has ended, from a worker's assignment.
    pub(super) fn take(
        &mut self,
        name: &WorkerId,
        batch: u64,
        no: TaskNo,
        end: &AttemptEnd,
        now: Time,
    ) {
        self.change(name, |worker| {
            worker.usage.count(end);
            if let Some(tasks) = worker.batches.get_mut(&batch) {
                tasks.remove(&no);
                if tasks.is_empty() {
                    worker.batches.remove(&batch);
                }
            }
            worker.usage.note(!worker.batches.is_empty(), now);
        });
    }

    /// Notes that the scheduler has chosen a worker for an assignment: among equals, the worker chosen
    /// longest ago is chosen next.
    pub(super) fn note_used(&mut self, name: &WorkerId, batch: u64) {
        if let Some(worker) = self.workers.get_mut(name) {
            worker.last_used = batch + 1;
        }
    }

    /// Changes a worker and updates the index of free workers. Returns whether the worker is known.
    fn change(&mut self, name: &WorkerId, change: impl FnOnce(&mut Worker)) -> bool {
        let Some(worker) = self.workers.get_mut(name) else {
            return false;
        };
        change(worker);
        let free = &mut self.free[worker.group];
        if !worker.is_free() {
            free.remove(name);
        } else if !free.contains(name) {
            free.insert(name.clone());
        }
        true
    }

    /// `has` tells whether a task lists a copy of a worker in an assignment.
    #[cfg(debug_assertions)]
    pub(super) fn check(&self, has: impl Fn(TaskNo, &WorkerId, u64) -> bool) -> Result<(), String> {
        for (name, worker) in &self.workers {
            if worker.is_distrusted != self.is_distrusted(name) {
                return Err(format!("worker {name}: the distrust of its user is off"));
            }
            if worker.is_drained != self.drained.contains_key(name) {
                return Err(format!("worker {name}: its drain is off"));
            }
            if self.free[worker.group].contains(name) != worker.is_free() {
                return Err(format!("worker {name}: the index of free workers is off"));
            }
            for (batch, tasks) in &worker.batches {
                if tasks.is_empty() || !tasks.iter().all(|no| has(*no, name, *batch)) {
                    return Err(format!(
                        "worker {name}: batch {batch} lists what it has not"
                    ));
                }
            }
        }
        let free = self.free.iter().map(BTreeSet::len).sum::<usize>();
        match free <= self.workers.len() {
            true => Ok(()),
            false => Err("an unknown worker is free".to_owned()),
        }
    }
}

// === impl Worker ===

impl Worker {
    /// Number of the worker's group.
    pub(super) fn group(&self) -> usize {
        self.group
    }

    pub(super) fn labels(&self) -> &BTreeSet<String> {
        &self.labels
    }

    /// Memory that the worker offers, bytes.
    pub(super) fn memory(&self) -> u64 {
        self.memory
    }

    /// Maximum number of concurrent assignments.
    pub(super) fn slots(&self) -> usize {
        self.slots
    }

    /// Number of assignments under way.
    pub(super) fn busy(&self) -> usize {
        self.batches.len()
    }

    /// Tasks of the worker, in the order of its assignments.
    pub(super) fn tasks(&self) -> impl Iterator<Item = TaskNo> + '_ {
        self.batches.values().flatten().copied()
    }

    pub(super) fn is_retired(&self) -> bool {
        self.retired
    }

    /// Reason for the worker's pause; `None` if it takes tasks.
    pub(super) fn paused(&self) -> Option<&Arc<str>> {
        self.paused.as_ref()
    }

    /// Time of the worker's last message.
    pub(super) fn heard(&self) -> Time {
        self.heard
    }

    /// Use that is made of the worker.
    pub(super) fn usage(&self) -> &Usage {
        &self.usage
    }

    /// Rank of the last assignment for which the scheduler chose this worker; 0 if there was none.
    pub(super) fn last_used(&self) -> u64 {
        self.last_used
    }

    fn is_free(&self) -> bool {
        !self.retired
            && self.paused.is_none()
            && !self.is_distrusted
            && !self.is_drained
            && self.batches.len() < self.slots
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn join(slots: usize) -> WorkerJoin {
        WorkerJoin {
            worker: "w".into(),
            group: "g".into(),
            labels: BTreeSet::new(),
            memory: 0,
            slots,
        }
    }

    #[test]
    fn a_worker_is_free_while_it_has_a_slot_and_takes_tasks() {
        let (name, no) = (WorkerId::from("w"), TaskNo::new(1));
        let mut workers = Workers::new(1);
        workers.join(join(1), 0, Time(0));
        assert!(workers.has_free(0));
        let batch = workers.begin_batch();
        workers.give(&name, batch, no, Time(0));
        assert!(!workers.has_free(0));
        // The worker joins again, with its leases and another slot.
        workers.join(join(2), 0, Time(1));
        assert!(workers.has_free(0));
        assert!(workers.beat(&name, Time(2), false, Some("no disk".into())));
        assert!(!workers.has_free(0));
        assert!(workers.beat(&name, Time(3), false, None));
        workers.retire(&name);
        assert!(!workers.has_free(0));
        let holds = |task, worker: &WorkerId, of| (task, worker, of) == (no, &name, batch);
        assert_eq!(workers.check(holds), Ok(()));
        workers.take(&name, batch, no, &AttemptEnd::Completed, Time(3));
        let usage = workers.get(&name).map(Worker::usage);
        assert_eq!(usage.map(Usage::completed), Some(1));
        assert_eq!(workers.get(&name).map(Worker::busy), Some(0));
        assert_eq!(workers.distrust(&name, "a lie".into()).len(), 1);
        assert!(!workers.has_free(0));
        workers.remove(&name);
        workers.join(join(1), 0, Time(4));
        assert!(!workers.has_free(0));
        assert_eq!(workers.check(holds), Ok(()));
        workers.remove(&name);
        assert!(!workers.beat(&name, Time(4), false, None));
    }
}
