//! Hedging: one more worker for a task that takes longer than its stage's tasks usually do.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use super::{Core, Task, Timer, Worker};
use crate::core::event::{Lease, Time};
use crate::core::ready::{Class, TaskNo};
use crate::id::WorkerId;
use crate::plan::{Hedge, StageIx};

/// Runs remembered of each stage.
const HISTORY: usize = 256;

/// Runs from which on a percentile says something.
const HISTORY_MIN: usize = 8;

/// How long the latest runs of a stage took.
#[derive(Clone, Default)]
pub(super) struct History {
    recent: VecDeque<Duration>,
    sorted: Vec<Duration>,
}

impl Core {
    /// Gives overdue tasks to workers that are still free after all that is claimable has been
    /// given out, lowest block first.
    pub(super) fn hedge(&mut self) {
        let plan = Arc::clone(&self.plan);
        for (ix, stage) in plan.stages.iter().enumerate() {
            let Some(hedge) = stage.dispatcher().and_then(|of| of.speculation.hedge) else {
                continue;
            };
            if self.hedgeable[ix].is_empty() {
                continue;
            }
            let Some(limit) = self.history[ix].limit(&hedge) else {
                continue;
            };
            for no in self.overdue(ix, limit) {
                if let Some(worker) = self.pick_hedge(no) {
                    self.assign_hedge(no, &worker);
                }
            }
            self.watch(StageIx(ix), limit);
        }
    }

    /// Tasks whose oldest lease has lasted for `limit`, in order of priority.
    fn overdue(&self, stage: usize, limit: Duration) -> Vec<TaskNo> {
        let overdue = self.hedgeable[stage]
            .iter()
            .take_while(|(since, _)| since.plus(limit) <= self.now.mono);
        let tasks = overdue.filter_map(|(_, no)| self.tasks.get(no));
        let of_free = tasks.filter(|task| {
            let group = task.class.as_ref().map(|(group, _)| *group);
            group.is_some_and(|group| !self.free[group].is_empty())
        });
        let mut ordered: Vec<_> = of_free.map(|task| (task.priority(), task.no)).collect();
        ordered.sort_unstable();
        ordered.into_iter().map(|(_, no)| no).collect()
    }

    fn pick_hedge(&self, no: TaskNo) -> Option<WorkerId> {
        let task = self.tasks.get(&no)?;
        let (group, class) = task.class.as_ref()?;
        self.pick_worker(*group, class, no, |name, worker| {
            !self.is_awaited(task, name, worker)
        })
    }

    /// Whether a task of a lower block waits, for room downstream say, that the worker could run:
    /// it is kept for that one, rather than given what others have already.
    pub(super) fn is_awaited(&self, task: &Task, name: &WorkerId, worker: &Worker) -> bool {
        let block = task.record.id.block;
        let could =
            |class: &Class| class.0 == task.stage && class.1.met_by(&worker.labels, worker.memory);
        let mut new = self.ready[worker.group].heads();
        let mut begun = self.begun[worker.group]
            .iter()
            .take_while(|priority| priority.block < block)
            .filter_map(|priority| self.tasks.get(&priority.no))
            .filter(|task| task.copies.is_empty() && self.may_take(task, name).is_some());
        new.any(|(class, head)| head.block < block && could(class))
            || begun.any(|task| task.class.as_ref().is_some_and(|(_, class)| could(class)))
    }

    fn assign_hedge(&mut self, no: TaskNo, worker: &WorkerId) {
        let Some(task) = self.tasks.get(&no) else {
            return;
        };
        let (stage, attempt) = (task.stage, task.tried().saturating_add(1));
        let lease = Lease {
            stage,
            task: Arc::clone(&task.record),
            attempt,
            tag: self.tag_for(task, worker, attempt),
        };
        self.counters[stage.0].hedged += 1;
        self.assign_one(no, worker, lease);
    }

    /// Asks to be woken when the next task becomes overdue.
    fn watch(&mut self, stage: StageIx, limit: Duration) {
        let index = &self.hedgeable[stage.0];
        let next = index
            .iter()
            .map(|(since, _)| since.plus(limit))
            .find(|due| *due > self.now.mono);
        if self.hedge_due[stage.0] == next {
            return;
        }
        if let Some(before) = self.hedge_due[stage.0].take() {
            self.timers.remove(&(before, Timer::Hedge(stage)));
        }
        if let Some(due) = next {
            self.timers.insert((due, Timer::Hedge(stage)));
            self.hedge_due[stage.0] = Some(due);
        }
    }

    /// One task for one worker.
    pub(super) fn assign_one(&mut self, no: TaskNo, worker: &WorkerId, lease: Lease) {
        let stage = lease.stage;
        let t_ack = self.plan.stage(stage).dispatcher().map(|of| of.t_ack);
        let expires: Time = self.now.mono.plus(t_ack.unwrap_or_default());
        let batch = self.next_batch;
        self.next_batch += 1;
        self.lease(no, worker, lease.attempt, lease.tag, batch, expires);
        self.counters[stage.0].leased += 1;
        if let Some(worker) = self.workers.get_mut(worker) {
            worker.last_used = batch + 1;
        }
        self.hand_out(worker, vec![lease]);
    }
}

// === impl History ===

impl History {
    /// Another run; `None` if nobody knows how long it took.
    pub(super) fn note(&mut self, took: Option<Duration>) {
        let Some(took) = took else { return };
        if self.recent.len() == HISTORY
            && let Some(oldest) = self.recent.pop_front()
        {
            let at = self.sorted.partition_point(|other| *other < oldest);
            self.sorted.remove(at);
        }
        self.recent.push_back(took);
        let at = self.sorted.partition_point(|other| *other < took);
        self.sorted.insert(at, took);
    }

    /// How long a lease may last before its task is hedged, once enough is known (nearest rank).
    fn limit(&self, hedge: &Hedge) -> Option<Duration> {
        if self.sorted.len() < HISTORY_MIN {
            return None;
        }
        let rank = (self.sorted.len() * hedge.percentile as usize).div_ceil(100);
        let at = rank.clamp(1, self.sorted.len()) - 1;
        Some(self.sorted[at].max(hedge.min))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_the_percentile_of_the_latest_runs_and_at_least_the_minimum() {
        let ms = Duration::from_millis;
        let hedge = |percentile, min| Hedge {
            percentile,
            min: ms(min),
        };
        let mut history = History::default();
        for run in 1..8 {
            history.note(Some(ms(run)));
        }
        assert_eq!(history.limit(&hedge(50, 1)), None);
        for run in 8..=1_000 {
            history.note(Some(ms(run)));
        }
        // 745 to 1000 are left.
        assert_eq!(history.limit(&hedge(50, 1)), Some(ms(872)));
        assert_eq!(history.limit(&hedge(99, 1)), Some(ms(998)));
        assert_eq!(history.limit(&hedge(50, 2_000)), Some(ms(2_000)));
    }
}
