//! Hedging: one more worker for a task that takes longer than its stage's tasks usually do.

use std::sync::Arc;
use std::time::Duration;

use super::Core;
use crate::conversation::Lease;
use crate::core::event::Time;
use crate::core::tasks::{Class, Task, TaskNo};
use crate::core::timers::Timer;
use crate::core::workers::Worker;
use crate::id::WorkerId;
use crate::plan::StageIx;
use crate::record::TaskOutcome;

impl Core {
    /// Gives overdue tasks to workers that are free after all claimable tasks have been assigned, lowest
    /// block first.
    pub(super) fn hedge(&mut self) {
        let plan = Arc::clone(&self.plan);
        for (ix, stage_plan) in plan.stages.iter().enumerate() {
            let stage = StageIx(ix);
            let Some(hedge) = stage_plan.dispatcher().and_then(|of| of.speculation.hedge) else {
                continue;
            };
            if self.pauses.has_stage(stage) || self.tasks.hedgeable(stage).next().is_none() {
                continue;
            }
            let Some(limit) = self.speculation.limit(stage, &hedge) else {
                continue;
            };
            for no in self.overdue(stage, limit) {
                if let Some(worker) = self.pick_hedge(no) {
                    self.assign_hedge(no, &worker);
                }
            }
            self.set_hedge_timer(stage, limit);
        }
    }

    /// Tasks whose oldest lease has lasted for `limit` or longer, in order of priority.
    fn overdue(&self, stage: StageIx, limit: Duration) -> Vec<TaskNo> {
        let hedgeable = self.tasks.hedgeable(stage);
        let overdue = hedgeable.take_while(|(since, _)| since.plus(limit) <= self.now.mono);
        let tasks = overdue.filter_map(|(_, no)| self.tasks.get(no));
        let of_free = tasks.filter(|task| {
            let class = task.class();
            class.is_some_and(|(group, _)| self.workers.has_free(group))
        });
        let mut ordered: Vec<_> = of_free.map(|task| (task.priority(), task.no())).collect();
        ordered.sort_unstable();
        ordered.into_iter().map(|(_, no)| no).collect()
    }

    fn pick_hedge(&self, no: TaskNo) -> Option<WorkerId> {
        let task = self.tasks.get(no)?;
        let (group, class) = task.class()?;
        self.pick_worker(group, class, no, |name, worker| {
            !self.is_awaited(task, name, worker)
        })
    }

    /// Whether a task of a lower block that the worker could run is waiting, for example for room downstream.
    /// The worker is then kept for that task rather than given a task that others already have.
    pub(super) fn is_awaited(&self, task: &Task, name: &WorkerId, worker: &Worker) -> bool {
        let (stage, block) = (task.stage(), task.id().block);
        let could =
            |class: &Class| class.0 == stage && class.1.met_by(worker.labels(), worker.memory());
        let mut new = self.tasks.heads(worker.group());
        let partially_assigned = self.tasks.partially_assigned(worker.group());
        let mut partially_assigned = partially_assigned
            .take_while(|priority| priority.block() < block)
            .filter_map(|priority| self.tasks.get(priority.no()))
            .filter(|task| task.copies().is_empty() && self.may_take(task, name).is_some());
        new.any(|(class, head)| head.block() < block && could(class))
            || partially_assigned.any(|task| task.class().is_some_and(|(_, class)| could(class)))
    }

    fn assign_hedge(&mut self, no: TaskNo, worker: &WorkerId) {
        let Some(task) = self.tasks.get(no) else {
            return;
        };
        let (stage, attempt) = (task.stage(), task.failed_count().saturating_add(1));
        let lease = Lease {
            stage,
            task: Arc::clone(task.record()),
            attempt,
            tag: self.tag_for(task, worker, attempt),
        };
        self.counts.add(stage, |of| &mut of.hedged);
        self.assign_one(no, worker, lease);
    }

    /// Sets a timer for the time at which the next task becomes overdue.
    fn set_hedge_timer(&mut self, stage: StageIx, limit: Duration) {
        let hedgeable = self.tasks.hedgeable(stage);
        let mut overdue = hedgeable.map(|(since, _)| since.plus(limit));
        let next = overdue.find(|due| *due > self.now.mono);
        let Some(change) = self.speculation.set_next_due(stage, next) else {
            return;
        };
        if let Some(before) = change.cancel {
            self.timers.cancel(before, Timer::Hedge(stage));
        }
        if let Some(due) = change.set {
            self.timers.set(due, Timer::Hedge(stage));
        }
    }

    /// Recalls from the history how long tasks took. Without it nothing is hedged after a restart until another task of the stage
    /// has been run, which a silent worker with the last task of a group can keep from happening.
    pub(super) fn recall_runs(&mut self) {
        for end in self.history.ends_replayed() {
            let (TaskOutcome::Completed { .. }, Some(begun_ms)) = (&end.outcome, end.begun_ms)
            else {
                continue;
            };
            if let Some(stage) = self.layout.stage_of(&end.task) {
                let took = Duration::from_millis(end.ended_ms.saturating_sub(begun_ms));
                self.speculation.note_run(stage, Some(took));
            }
        }
    }

    /// Assigns one task to one worker.
    fn assign_one(&mut self, no: TaskNo, worker: &WorkerId, lease: Lease) {
        let stage = lease.stage;
        let t_ack = self.plan.stage(stage).dispatcher().map(|of| of.t_ack);
        let expires: Time = self.now.mono.plus(t_ack.unwrap_or_default());
        let batch = self.workers.begin_batch();
        self.lease(no, worker, lease.attempt, lease.tag, batch, expires);
        self.counts.add(stage, |of| &mut of.leased);
        self.workers.note_used(worker, batch);
        self.hand_out(worker, vec![lease]);
    }
}
