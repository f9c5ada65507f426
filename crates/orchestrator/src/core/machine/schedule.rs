//! Assignment of claimable tasks to free workers.

use std::sync::Arc;

use super::Core;
use crate::conversation::Lease;
use crate::core::event::Time;
use crate::core::tag::LeaseTag;
use crate::core::tasks::{ActiveLease, Class, Priority, Task, TaskNo};
use crate::core::timers::Timer;
use crate::core::workers::Worker;
use crate::id::WorkerId;
use crate::plan::{QueueIx, StageIx, StageKind};

impl Core {
    /// Leases tasks while there is a claimable one and a free worker for it.
    pub(super) fn schedule(&mut self) {
        if self.draining || self.adopting_until.is_some() {
            return;
        }
        // A lease in one group makes room in the queue that it comes from, for which another group's tasks may wait.
        while (0..self.layout.groups().len()).any(|group| self.schedule_group(group)) {}
        self.hedge();
    }

    /// Leases tasks of one group. Returns whether anything changed.
    fn schedule_group(&mut self, group: usize) -> bool {
        let mut has_changed = false;
        while self.workers.has_free(group) {
            let Some((class, head, worker)) = self.next_assignment(group) else {
                break;
            };
            if !self.dead_letter_if_hopeless(head.no()) {
                self.assign(group, &class, head, &worker);
            }
            has_changed = true;
        }
        has_changed
    }

    /// The claimable task of the highest priority for which a worker is free.
    ///
    /// Only the head of each class competes: the tasks behind it can be run by the same workers and wait for
    /// the same queues downstream, so none of them may overtake it. Tasks that not every worker of their
    /// class may have all compete, because each of them is for different workers.
    fn next_assignment(&self, group: usize) -> Option<(Class, Priority, WorkerId)> {
        let new = self.next_new(group);
        let partially_assigned = self
            .tasks
            .partially_assigned(group)
            .take_while(|priority| new.as_ref().is_none_or(|(_, new, _)| priority < new))
            .find_map(|priority| {
                let task = self.tasks.get(priority.no())?;
                let (_, class) = task.class()?;
                // A further copy of a leased task adds nothing to the downstream queues.
                let is_gated = || self.is_gated(class.0, priority.block());
                if self.pauses.has_stage(class.0) || task.copies().is_empty() && is_gated() {
                    return None;
                }
                let suits = |name: &WorkerId, worker: &Worker| {
                    task.copies().is_empty() || !self.is_awaited(task, name, worker)
                };
                let worker = self.pick_worker(group, class, priority.no(), suits)?;
                Some((Arc::clone(class), priority, worker))
            });
        partially_assigned.or(new)
    }

    fn next_new(&self, group: usize) -> Option<(Class, Priority, WorkerId)> {
        // A stage that is gated for a block is gated for every higher one.
        let mut gated: Vec<StageIx> = Vec::new();
        self.tasks.heads(group).find_map(|(class, head)| {
            if gated.contains(&class.0) {
                return None;
            }
            if self.is_gated(class.0, head.block()) {
                gated.push(class.0);
                return None;
            }
            let worker = self.pick_worker(group, class, head.no(), |_, _| true)?;
            Some((Arc::clone(class), head, worker))
        })
    }

    /// Whether an operator has paused `stage`, or a downstream queue is too full for another task of it.
    pub(super) fn is_gated(&self, stage: StageIx, block: u64) -> bool {
        let mut outputs = self.plan.stage(stage).outputs.iter();
        self.pauses.has_stage(stage) || outputs.any(|queue| self.is_full(*queue, block, true))
    }

    /// Whether a queue is too full (Q_max) for another message of `block`.
    ///
    /// The count includes the tasks waiting there, those being recorded for the queue and, with `on_its_way`,
    /// one for each leased task of a stage that writes it. A block below all of these is always admitted: the
    /// queue may be full precisely because it waits for that block. Queues of collectors are never full: a
    /// barrier needs the messages behind the ones that it holds.
    pub(super) fn is_full(&self, queue: QueueIx, block: u64, on_its_way: bool) -> bool {
        let writers: &[StageIx] = if on_its_way {
            self.layout.writers(queue)
        } else {
            &[]
        };
        let queue = self.plan.queue(queue);
        queue.readers.iter().any(|reader| {
            if matches!(self.plan.stage(*reader).kind, StageKind::Collector(_)) {
                return false;
            }
            let here = [self.tasks.waiting(*reader), self.appends.incoming(*reader)];
            let counts = here
                .into_iter()
                .chain(writers.iter().map(|stage| self.tasks.leased(*stage)));
            let (mut total, mut lowest) = (0, None);
            for count in counts {
                total += count.total();
                lowest = lowest.into_iter().chain(count.lowest()).min();
            }
            total >= queue.q_max && lowest.is_some_and(|lowest| block >= lowest)
        })
    }

    /// A free worker that can run `class` and may have the task. Preferred are, in this order: a worker that
    /// did not fail it last, the least busy one, and the one chosen longest ago.
    pub(super) fn pick_worker(
        &self,
        group: usize,
        class: &Class,
        no: TaskNo,
        suits: impl Fn(&WorkerId, &Worker) -> bool,
    ) -> Option<WorkerId> {
        let task = self.tasks.get(no)?;
        let failed_by = task.attempts().last();
        self.candidates(group, class)
            .filter(|(name, worker)| suits(name, worker) && self.may_take(task, name).is_some())
            .min_by_key(|(name, worker)| {
                let failed = failed_by.is_some_and(|attempt| attempt.worker == **name);
                (failed, worker.busy(), worker.last_used())
            })
            .map(|(name, _)| name.clone())
    }

    /// Name of a worker by the `distinct` setting of `stage`; `None` if the worker is unknown or lacks one.
    pub(super) fn distinct_name_of(&self, stage: StageIx, worker: &WorkerId) -> Option<Arc<str>> {
        let distinct = &self.plan.stage(stage).dispatcher()?.speculation.distinct;
        distinct.name_of(worker, self.workers.get(worker)?.labels())
    }

    /// Distinct name of the worker, if it may have the task. It may not if it is distrusted; if a worker of the same name
    /// has the task, has completed it, or has failed it for good; nor, if several results are compared, if a
    /// worker of the same user has it or has completed it.
    pub(super) fn may_take(&self, task: &Task, worker: &WorkerId) -> Option<Arc<str>> {
        if self.workers.is_distrusted(worker) {
            return None;
        }
        let name = self.distinct_name_of(task.stage(), worker)?;
        let failed = task.failed_for_good().any(|by| {
            by == worker || self.distinct_name_of(task.stage(), by).as_ref() == Some(&name)
        });
        (!failed && !task.is_known_to(worker, &name) && !task.has_worker_of_user(worker))
            .then_some(name)
    }

    /// Free workers that can run `class` and have sent a message within T_ack.
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
        self.workers.free(group).filter(move |(_, worker)| {
            t_ack.is_some_and(|t_ack| worker.heard().until(self.now.mono) <= t_ack)
                && class.1.met_by(worker.labels(), worker.memory())
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
            self.tasks
                .class_len(group, class)
                .div_ceil(free)
                .clamp(1, dispatcher.batch)
        };
        let batch = self.workers.begin_batch();
        let expires = self.now.mono.plus(dispatcher.t_ack);
        let mut leases = Vec::with_capacity(size);
        let mut next = Some(head);
        while let Some(task) = next.and_then(|priority| self.tasks.get(priority.no())) {
            let (no, attempt) = (task.no(), task.failed_count().saturating_add(1));
            let tag = self.tag_for(task, worker, attempt);
            leases.push(Lease {
                stage: class.0,
                task: Arc::clone(task.record()),
                attempt,
                tag,
            });
            self.lease(no, worker, attempt, tag, batch, expires);
            self.counts.add(class.0, |of| &mut of.leased);
            if leases.len() == size {
                break;
            }
            next = self.tasks.head_of(group, class).filter(|priority| {
                let fits = self.tasks.get(priority.no()).is_some_and(|task| {
                    let last = task.attempts().last();
                    // After a restart, a task may be left that cannot be completed any more.
                    task.can_complete() && last.is_none_or(|attempt| attempt.worker != *worker)
                });
                fits && !self.is_gated(class.0, priority.block())
            });
        }
        self.workers.note_used(worker, batch);
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
        let stage = self.tasks.get(no).map(|task| task.stage());
        let name = stage.and_then(|stage| self.distinct_name_of(stage, worker));
        let name = name.unwrap_or_else(|| worker.clone());
        let held = ActiveLease::new(worker.clone(), name, attempt, tag).in_batch(batch);
        let held = held.lasting(self.now.mono, self.now.wall_ms, expires);
        self.tasks.lease(no, held);
        self.report_begun(no);
        self.workers.give(worker, batch, no, self.now.mono);
        self.timers.set(expires, Timer::Lease(no, batch));
    }
}
