//! Who gets what next.

use std::sync::Arc;

use super::event::{Action, Lease, Time};
use super::ready::{Class, Priority, TaskNo};
use super::state::{Core, Held, Phase, Timer, Worker};
use crate::id::WorkerId;
use crate::plan::{StageIx, StageKind};

impl Core {
    /// Leases tasks while there is a claimable one and a worker for it.
    pub(super) fn schedule(&mut self) {
        if self.draining || self.adopting_until.is_some() {
            return;
        }
        for group in 0..self.groups.len() {
            while !self.ready[group].is_empty() {
                let Some((class, head, worker)) = self.next_assignment(group) else { break };
                self.assign(group, &class, head, &worker);
            }
        }
    }

    /// The claimable task of the highest priority for which a worker is free.
    ///
    /// Only the head of each class competes: the tasks behind it can be run by the same workers
    /// and wait for the same queues downstream, so none of them may overtake it.
    fn next_assignment(&self, group: usize) -> Option<(Class, Priority, WorkerId)> {
        let mut heads: Vec<(&Class, Priority)> = self.ready[group].heads().collect();
        heads.sort_unstable_by_key(|(_, priority)| *priority);
        heads.into_iter().find_map(|(class, head)| {
            if self.is_gated(class.0, head.block) {
                return None;
            }
            let worker = self.pick_worker(group, class, head.no)?;
            Some((class.clone(), head, worker))
        })
    }

    /// Whether a downstream queue is too full for another task of `stage`.
    ///
    /// A block below everything that waits there and below all that is on its way passes: the
    /// queue may be full precisely because it waits for that block.
    fn is_gated(&self, stage: StageIx, block: u64) -> bool {
        let on_its_way = &self.leased[stage.0];
        self.plan.stage(stage).outputs.iter().any(|queue| {
            let queue = self.plan.queue(*queue);
            queue.readers.iter().any(|reader| {
                if matches!(self.plan.stage(*reader).kind, StageKind::Collector(_)) {
                    return false;
                }
                let waiting = &self.waiting[reader.0];
                let lowest = waiting.lowest().into_iter().chain(on_its_way.lowest()).min();
                waiting.total() + on_its_way.total() >= queue.q_max
                    && lowest.is_some_and(|lowest| block >= lowest)
            })
        })
    }

    /// A free worker that can run `class`: not the one that failed the task last if another is
    /// free, then the least busy, then the one unused for longest.
    fn pick_worker(&self, group: usize, class: &Class, no: TaskNo) -> Option<WorkerId> {
        let failed_by = self.tasks.get(&no).and_then(|task| task.attempts.last());
        let t_ack = self.plan.stage(class.0).dispatcher()?.t_ack;
        self.workers
            .iter()
            .filter(|(_, worker)| {
                worker.group == group
                    && worker.is_free()
                    && worker.heard.until(self.now.mono) <= t_ack
                    && class.1.met_by(&worker.labels, worker.memory)
            })
            .min_by_key(|(name, worker)| {
                let failed = failed_by.is_some_and(|attempt| attempt.worker == **name);
                (failed, worker.batches.len(), worker.last_used)
            })
            .map(|(name, _)| name.clone())
    }

    fn assign(&mut self, group: usize, class: &Class, head: Priority, worker: &WorkerId) {
        let Some(dispatcher) = self.plan.stage(class.0).dispatcher().cloned() else { return };
        let size = if dispatcher.batch <= 1 {
            1
        } else {
            let free = self.workers.values().filter(|worker| worker.group == group);
            let free = free.filter(|worker| worker.is_free()).count().max(1);
            self.ready[group].class_len(class).div_ceil(free).clamp(1, dispatcher.batch)
        };
        let mut chosen = vec![head.no];
        if size > 1 {
            let rest: Vec<Priority> = self.ready[group].of_class(class).skip(1).collect();
            let passes = |priority: &Priority| !self.is_gated(class.0, priority.block);
            chosen.extend(
                rest.iter().take_while(|task| passes(task)).take(size - 1).map(|task| task.no),
            );
        }
        let batch = self.next_batch;
        self.next_batch += 1;
        let now = self.now.mono;
        let expires = now.plus(dispatcher.t_ack);
        let mut leases = Vec::with_capacity(chosen.len());
        for no in chosen {
            let Some(task) = self.tasks.get(&no) else { continue };
            let attempt = u32::try_from(task.attempts.len()).unwrap_or(u32::MAX).saturating_add(1);
            leases.push(Lease { stage: class.0, task: Arc::clone(&task.record), attempt });
            self.lease(no, worker, attempt, batch, expires);
            self.counters[class.0.0].leased += 1;
        }
        if let Some(worker) = self.workers.get_mut(worker) {
            worker.last_used = batch + 1;
        }
        self.actions.push(Action::Assign { worker: worker.clone(), leases });
    }

    /// Gives a worker the lease of a task, from now until `expires` unless it is renewed.
    pub(super) fn lease(
        &mut self,
        no: TaskNo,
        worker: &WorkerId,
        attempt: u32,
        batch: u64,
        expires: Time,
    ) {
        let since = self.now.mono;
        let held = Held { worker: worker.clone(), attempt, batch, expires, since };
        self.set_phase(no, Phase::Leased(held));
        if let Some(worker) = self.workers.get_mut(worker) {
            worker.batches.entry(batch).or_default().insert(no);
        }
        self.timers.insert((expires, Timer::Lease(no, attempt)));
    }
}

// === impl Worker ===

impl Worker {
    fn is_free(&self) -> bool {
        !self.retired && self.batches.len() < self.slots
    }
}
