//! Who gets what next.

use std::sync::Arc;

use super::{Core, Held, Phase, Task, Timer, Worker};
use crate::core::event::{Lease, Time};
use crate::core::ready::{Class, Priority, TaskNo};
use crate::core::tag::LeaseTag;
use crate::id::WorkerId;
use crate::plan::{QueueIx, StageIx, StageKind};

impl Core {
    /// Leases tasks while there is a claimable one and a worker for it.
    pub(super) fn schedule(&mut self) {
        if self.draining || self.adopting_until.is_some() {
            return;
        }
        for group in 0..self.groups.len() {
            while !self.free[group].is_empty() {
                let Some((class, head, worker)) = self.next_assignment(group) else {
                    break;
                };
                if !self.bury_spent(head.no) {
                    self.assign(group, &class, head, &worker);
                }
            }
        }
        self.hedge();
    }

    /// The claimable task of the highest priority for which a worker is free.
    ///
    /// Only the head of each class competes: the tasks behind it can be run by the same workers
    /// and wait for the same queues downstream, so none of them may overtake it.
    /// So do all that not every worker may have, since each of them is for other workers.
    fn next_assignment(&self, group: usize) -> Option<(Class, Priority, WorkerId)> {
        let new = self.next_new(group);
        let begun = self.begun[group]
            .iter()
            .take_while(|priority| new.as_ref().is_none_or(|(_, new, _)| *priority < new))
            .find_map(|priority| {
                let task = self.tasks.get(&priority.no)?;
                let (_, class) = task.class.as_ref()?;
                // One that a worker has adds nothing to what is on its way.
                if task.copies.is_empty() && self.is_gated(class.0, priority.block) {
                    return None;
                }
                let suits = |name: &WorkerId, worker: &Worker| {
                    task.copies.is_empty() || !self.is_awaited(task, name, worker)
                };
                let worker = self.pick_worker(group, class, priority.no, suits)?;
                Some((Arc::clone(class), *priority, worker))
            });
        begun.or(new)
    }

    fn next_new(&self, group: usize) -> Option<(Class, Priority, WorkerId)> {
        // A stage that is gated for a block is gated for every higher one.
        let mut gated: Vec<StageIx> = Vec::new();
        self.ready[group].heads().find_map(|(class, head)| {
            if gated.contains(&class.0) {
                return None;
            }
            if self.is_gated(class.0, head.block) {
                gated.push(class.0);
                return None;
            }
            let worker = self.pick_worker(group, class, head.no, |_, _| true)?;
            Some((Arc::clone(class), head, worker))
        })
    }

    /// Whether a downstream queue is too full for another task of `stage`.
    pub(super) fn is_gated(&self, stage: StageIx, block: u64) -> bool {
        self.plan
            .stage(stage)
            .outputs
            .iter()
            .any(|queue| self.is_full(*queue, block, true))
    }

    /// Whether nothing more of `block` may be on its way into a queue (Q_max).
    ///
    /// What waits there counts, what is being recorded for it, and, for `on_its_way`, one for each
    /// task that is leased by a stage that writes it. A block below all of these passes: the queue
    /// may be full precisely because it waits for that block. Queues of collectors are never full:
    /// a barrier needs the messages behind the ones that it holds.
    pub(super) fn is_full(&self, queue: QueueIx, block: u64, on_its_way: bool) -> bool {
        let writers: &[StageIx] = if on_its_way {
            &self.writers[queue.0]
        } else {
            &[]
        };
        let queue = self.plan.queue(queue);
        queue.readers.iter().any(|reader| {
            if matches!(self.plan.stage(*reader).kind, StageKind::Collector(_)) {
                return false;
            }
            let here = [&self.waiting[reader.0], &self.incoming[reader.0]];
            let counts = here
                .into_iter()
                .chain(writers.iter().map(|stage| &self.leased[stage.0]));
            let (mut total, mut lowest) = (0, None);
            for count in counts {
                total += count.total();
                lowest = lowest.into_iter().chain(count.lowest()).min();
            }
            total >= queue.q_max && lowest.is_some_and(|lowest| block >= lowest)
        })
    }

    /// A free worker that can run `class` and may have the task: not the one that failed it last
    /// if another is free, then the least busy, then the one unused for longest.
    pub(super) fn pick_worker(
        &self,
        group: usize,
        class: &Class,
        no: TaskNo,
        suits: impl Fn(&WorkerId, &Worker) -> bool,
    ) -> Option<WorkerId> {
        let task = self.tasks.get(&no)?;
        let failed_by = task.attempts.last();
        self.candidates(group, class)
            .filter(|(name, worker)| suits(name, worker) && self.may_take(task, name).is_some())
            .min_by_key(|(name, worker)| {
                let failed = failed_by.is_some_and(|attempt| attempt.worker == **name);
                (failed, worker.batches.len(), worker.last_used)
            })
            .map(|(name, _)| name.clone())
    }

    /// What a worker counts as among those that have the same task of `stage`.
    pub(super) fn name_of(&self, stage: StageIx, worker: &WorkerId) -> Option<Arc<str>> {
        let distinct = &self.plan.stage(stage).dispatcher()?.speculation.distinct;
        let labels = &self.workers.get(worker)?.labels;
        distinct.name_of(worker, labels)
    }

    /// What the worker counts as, if it may have the task: nobody of that name has it, has
    /// completed it, or has failed it for good; and where several results are compared, nobody of
    /// its user has it or has completed it.
    pub(super) fn may_take(&self, task: &Task, worker: &WorkerId) -> Option<Arc<str>> {
        let name = self.name_of(task.stage, worker)?;
        let failed = task
            .failed_for_good()
            .any(|by| by == worker || self.name_of(task.stage, by).as_ref() == Some(&name));
        (!failed && !task.is_known_to(worker, &name) && !task.has_voter(worker)).then_some(name)
    }

    /// The free workers that can run `class` and have been heard from lately.
    fn candidates<'a>(
        &'a self,
        group: usize,
        class: &'a Class,
    ) -> impl Iterator<Item = (&'a WorkerId, &'a Worker)> {
        let t_ack = self
            .plan
            .stage(class.0)
            .dispatcher()
            .map(|dispatcher| dispatcher.t_ack);
        self.free[group]
            .iter()
            .filter_map(|name| Some((name, self.workers.get(name)?)))
            .filter(move |(_, worker)| {
                t_ack.is_some_and(|t_ack| worker.heard.until(self.now.mono) <= t_ack)
                    && class.1.met_by(&worker.labels, worker.memory)
            })
    }

    fn assign(&mut self, group: usize, class: &Class, head: Priority, worker: &WorkerId) {
        let plan = Arc::clone(&self.plan);
        let Some(dispatcher) = plan.stage(class.0).dispatcher() else {
            return;
        };
        let copies = dispatcher.speculation.copies;
        let size = if dispatcher.batch <= 1 || copies > 1 {
            1
        } else {
            let free = self.candidates(group, class).count().max(1);
            self.ready[group]
                .class_len(class)
                .div_ceil(free)
                .clamp(1, dispatcher.batch)
        };
        let batch = self.next_batch;
        self.next_batch += 1;
        let expires = self.now.mono.plus(dispatcher.t_ack);
        let mut leases = Vec::with_capacity(size);
        let mut next = Some(head);
        while let Some(task) = next.and_then(|priority| self.tasks.get(&priority.no)) {
            let (no, attempt) = (task.no, task.tried().saturating_add(1));
            let tag = self.tag_for(task, worker, attempt);
            leases.push(Lease {
                stage: class.0,
                task: Arc::clone(&task.record),
                attempt,
                tag,
            });
            self.lease(no, worker, attempt, tag, batch, expires);
            self.counters[class.0.0].leased += 1;
            if leases.len() == size {
                break;
            }
            next = self.ready[group].head_of(class).filter(|priority| {
                let fits = self.tasks.get(&priority.no).is_some_and(|task| {
                    let last = task.attempts.last();
                    // A restart may have left one that nobody is to try again.
                    task.is_possible() && last.is_none_or(|attempt| attempt.worker != *worker)
                });
                fits && !self.is_gated(class.0, priority.block)
            });
        }
        if let Some(worker) = self.workers.get_mut(worker) {
            worker.last_used = batch + 1;
        }
        self.hand_out(worker, leases);
    }

    /// Gives a worker the lease of a task, from now until `expires` unless it is renewed.
    pub(super) fn lease(
        &mut self,
        no: TaskNo,
        worker: &WorkerId,
        attempt: u32,
        tag: LeaseTag,
        batch: u64,
        expires: Time,
    ) {
        let since = self.now.mono;
        let stage = self.tasks.get(&no).map(|task| task.stage);
        let name = stage.and_then(|stage| self.name_of(stage, worker));
        let held = Held {
            worker: worker.clone(),
            name: name.unwrap_or_else(|| worker.clone()),
            attempt,
            tag,
            batch,
            expires,
            since,
            since_wall_ms: self.now.wall_ms,
        };
        self.update(no, |task| {
            if task.copies.is_empty() {
                task.reported.clear();
            } else {
                task.reported.retain(|(by, _)| by != worker);
            }
            task.copies.push(held);
            // While workers are adopted others may come that have it too.
            if task.missing() == 0 && task.is_possible() {
                task.phase = Phase::Leased;
            }
        });
        if let Some(worker) = self.workers.get_mut(worker) {
            worker.batches.entry(batch).or_default().insert(no);
        }
        self.note_free(worker);
        self.timers.insert((expires, Timer::Lease(no, batch)));
    }

    /// Keeps the index of free workers in step with a worker that has changed.
    pub(super) fn note_free(&mut self, name: &WorkerId) {
        let Some(worker) = self.workers.get(name) else {
            return;
        };
        let free = &mut self.free[worker.group];
        if worker.is_free() {
            if !free.contains(name) {
                free.insert(name.clone());
            }
        } else {
            free.remove(name);
        }
    }
}

// === impl Worker ===

impl Worker {
    pub(super) fn is_free(&self) -> bool {
        !self.retired && self.paused.is_none() && self.batches.len() < self.slots
    }
}
