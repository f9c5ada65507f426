//! Consistency check of the parts, within and between each other, for tests and builds with debug assertions.

use super::Core;
use super::waiting::WaitReasons;
use crate::core::tasks::{Phase, Task};
use crate::core::timers::Timer;
use crate::core::waiting::WaitReason;
use crate::plan::StageKind;

impl Core {
    /// Recomputes every part's indices, compares the parts' data about the same tasks, and reports the first
    /// difference.
    #[doc(hidden)]
    pub fn check(&self) -> Result<(), String> {
        self.tasks.check()?;
        self.workers.check(|no, worker, batch| {
            let mut copies = self.tasks.get(no).into_iter().flat_map(Task::copies);
            copies.any(|held| held.worker() == worker && held.batch() == batch)
        })?;
        self.collectors.check(|stage, no| {
            let task = self.tasks.get(no);
            task.is_some_and(|task| task.stage() == stage && task.phase() == Phase::Held)
        })?;
        self.dead.check(|id| self.layout.stage_of(id))?;
        self.marks.check()?;
        self.steps
            .check(|stage, block| self.marks.count(stage, block) > 0)?;
        self.speculation
            .check(|due, stage| self.timers.is_set(due, Timer::Hedge(stage)))?;
        if self.started && self.scaling.is_on() && !self.timers.is_set_at_all(&Timer::Scaling) {
            return Err("nothing wakes the computation of wanted workers".to_owned());
        }
        self.progress
            .check(|due| self.timers.is_set(due, Timer::Begun))?;
        self.submissions.check()?;
        self.sources.check()?;
        self.history.check()?;
        let tasks = || self.tasks.iter();
        self.slots
            .check(|first, last| tasks().filter(|task| is_about(task, first, last)).count())?;
        self.appends.check()?;
        self.hosts.check()?;
        self.sequencer.check()?;
        for no in self.sequencer.emitting() {
            let task = self.tasks.get(no);
            if task.is_none_or(|task| task.phase() != Phase::Emitting) {
                return Err(format!("{no:?} is listed as emitting"));
            }
        }
        let waits = !self.dead.all_decided() || !self.submissions.none_deferred();
        if self.appends.is_empty() && waits {
            return Err("something waits for an append, but none is on its way".to_owned());
        }
        let mut reasons = WaitReasons::new(self);
        for task in self.tasks.iter() {
            self.check_task(task)
                .and_then(|()| check_reason(task, &mut reasons))
                .map_err(|what| format!("task {}: {what}", task.id()))?;
        }
        Ok(())
    }

    fn check_task(&self, task: &Task) -> Result<(), String> {
        if self.dead.contains(task.id()) {
            return Err("it is live and dead".to_owned());
        }
        for held in task.copies() {
            let timer = Timer::Lease(task.no(), held.batch());
            if !self.timers.is_set_at_all(&timer) {
                return Err("a lease has no end".to_owned());
            }
        }
        let kind = &self.plan.stage(task.stage()).kind;
        match task.phase() {
            Phase::Delayed { until } if !self.timers.is_set(until, Timer::Wake(task.no())) => {
                Err("it is delayed and nothing wakes it".to_owned())
            }
            Phase::Queued | Phase::Emitting if !matches!(kind, StageKind::Sequencer { .. }) => {
                Err("it waits for its turn where there is none".to_owned())
            }
            Phase::Recording | Phase::Finishing if self.appends.is_empty() => {
                Err("it waits for an append that is not on its way".to_owned())
            }
            _ => Ok(()),
        }
    }
}

/// A task that nothing keeps is leased at once, so none waits for its turn between two events.
fn check_reason(task: &Task, reasons: &mut WaitReasons<'_>) -> Result<(), String> {
    let is_claimable = task.phase() == Phase::Ready && task.copies().is_empty();
    match is_claimable && reasons.of(task) == WaitReason::Turn {
        true => Err("it is claimable, and a worker that may run it is free".to_owned()),
        false => Ok(()),
    }
}

/// Whether a task is about one of the blocks from `first` to `last`.
fn is_about(task: &Task, first: u64, last: u64) -> bool {
    task.id().block <= last && task.record().last >= first
}
