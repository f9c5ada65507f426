//! Scaling: the work left and the workers that are there, for each pool.

use std::time::Duration;

use super::Core;
use super::worker::WorkerState;
use crate::core::event::Time;
use crate::core::scaling::{BLOCKED_RUNS, INTERVAL, PoolInput, RUN_PERCENTILE, TASK, Work};
use crate::core::timers::Timer;
use crate::plan::{DispatcherPlan, StageIx};

/// Most deadlines that are looked at one by one: the earliest. Later work counts as due with the last of them.
const DEADLINES_MAX: usize = 256;

/// Tasks of the stages before a stage that must have ended before the number of its own tasks for each of them is
/// believed; until then it is 1.
const RATIO_MIN: u64 = 8;

/// Most tasks of a stage that one task of the stages before it is taken to lead to.
const RATIO_MAX: u64 = 10_000;

/// A deadline: all work on blocks up to a block is due at a time.
struct Horizon {
    /// The last block.
    last: u64,
    /// The block whose deadline it is, and the time left; `None` without deadlines.
    deadline: Option<(u64, Duration)>,
}

/// Work of a stage.
struct StageLoad {
    /// Tasks up to each horizon's last block, live and to come, in thousandths.
    tasks: Vec<u64>,
    run: Duration,
    is_measured: bool,
    /// Duration of the runs that follow on the longest way from this stage to the end.
    tail: Duration,
}

impl Core {
    /// Computes the wanted number of workers of each pool, and sets the timer for the next time.
    pub(super) fn scale(&mut self) {
        if !self.scaling.is_on() {
            return;
        }
        let horizons = self.horizons();
        let loads = self.stage_loads(&horizons);
        let mut inputs: Vec<PoolInput> = Vec::new();
        inputs.resize_with(self.scaling.plans().count(), PoolInput::default);
        for (ix, load) in loads.iter().enumerate() {
            let stage = StageIx(ix);
            let pool = self.scaling.pool_of_stage(stage);
            let dispatcher = self.plan.stage(stage).dispatcher();
            if let (Some(pool), Some(dispatcher)) = (pool, dispatcher) {
                let within = self.scaling.plans().nth(pool).map(|plan| plan.within);
                let within = within.unwrap_or_default();
                add_work(&mut inputs[pool].work, &horizons, load, dispatcher, within);
            }
        }
        self.add_workers(&mut inputs, &loads);
        self.scaling.evaluate(self.now.mono, inputs);
        let due = self.now.mono.plus(INTERVAL);
        self.timers.set(due, Timer::Scaling);
    }

    /// The deadlines, by block. The last horizon is that of all blocks.
    fn horizons(&self) -> Vec<Horizon> {
        let length = self.plan.deadline.map(|deadline| deadline.slot);
        let mut horizons = Vec::new();
        let mut last = 0;
        for (first, slot) in self.slots.iter().take(DEADLINES_MAX) {
            last = slot.record().last.max(last);
            let left = self.now.mono.until(slot.due());
            // A block that is late should be done within as much time as it had.
            let left = match left.is_zero() {
                true => length.unwrap_or_default(),
                false => left,
            };
            horizons.push(Horizon {
                last,
                deadline: Some((first, left)),
            });
        }
        let rest = horizons.last().and_then(|last| last.deadline);
        let rest = rest.map(|(block, left)| (block, length.unwrap_or_default().max(left)));
        horizons.push(Horizon {
            last: u64::MAX,
            deadline: rest.or_else(|| Some((self.sequencer.next(), length?))),
        });
        horizons
    }

    /// The work of each stage: its live tasks, and those that live tasks of the stages before it will lead to.
    fn stage_loads(&mut self, horizons: &[Horizon]) -> Vec<StageLoad> {
        let ends: Vec<u64> = horizons.iter().map(|horizon| horizon.last).collect();
        let stages = (0..self.layout.stages()).map(StageIx);
        let mut loads: Vec<StageLoad> = Vec::with_capacity(self.layout.stages());
        for stage in stages {
            let measured = self.speculation.percentile(stage, RUN_PERCENTILE);
            let (run, is_measured) = match self.plan.stage(stage).dispatcher() {
                Some(_) => self.scaling.run_of(stage, measured),
                None => (Duration::ZERO, false),
            };
            let live = self.tasks.present(stage).up_to(&ends);
            loads.push(StageLoad {
                tasks: live.into_iter().map(|live| live as u64 * TASK).collect(),
                run,
                is_measured,
                tail: Duration::ZERO,
            });
        }
        for stage in self.scaling.order() {
            self.add_coming(*stage, &mut loads);
        }
        for stage in self.scaling.order().iter().rev() {
            let after = loads[stage.0].run + loads[stage.0].tail;
            let inputs = self.plan.stage(*stage).inputs.iter();
            for writer in inputs.flat_map(|queue| self.layout.writers(*queue)) {
                loads[writer.0].tail = loads[writer.0].tail.max(after);
            }
        }
        loads
    }

    /// Adds the tasks that will come of the tasks of the stages before a stage, in whole tasks for each horizon, so
    /// that a group that is not complete yet asks for nobody.
    fn add_coming(&self, stage: StageIx, loads: &mut [StageLoad]) {
        let inputs = self.plan.stage(stage).inputs.iter();
        let mut before: Vec<StageIx> = inputs
            .flat_map(|queue| self.layout.writers(*queue).iter().copied())
            .collect();
        before.sort_unstable();
        before.dedup();
        if before.is_empty() {
            return;
        }
        let ended = before.iter().map(|stage| {
            let counters = self.counts.of(*stage);
            counters.completed.saturating_add(counters.grouped)
        });
        let ended = ended.fold(0, u64::saturating_add);
        let accepted = self.counts.of(stage).accepted;
        let (accepted, ended) = match ended >= RATIO_MIN {
            true => (accepted.min(ended.saturating_mul(RATIO_MAX)), ended),
            false => (1, 1),
        };
        for horizon in 0..loads[stage.0].tasks.len() {
            let tasks = before.iter().map(|before| loads[before.0].tasks[horizon]);
            let tasks = tasks.fold(0, u64::saturating_add);
            let coming = u128::from(tasks) * u128::from(accepted) / u128::from(ended);
            let coming = u64::try_from(coming).unwrap_or(u64::MAX) / TASK * TASK;
            let tasks = &mut loads[stage.0].tasks[horizon];
            *tasks = tasks.saturating_add(coming);
        }
    }

    /// Adds the workers of each pool, and the assignments that have lasted too long.
    fn add_workers(&self, inputs: &mut [PoolInput], loads: &[StageLoad]) {
        for (name, worker) in self.workers.iter() {
            let group = &self.layout.groups()[worker.group()];
            let Some(pool) = self.scaling.pool_of_worker(group, worker.labels()) else {
                continue;
            };
            // A worker with tasks can be given others once it has ended them.
            let state = self.worker_state(name, worker);
            if matches!(state, WorkerState::Idle | WorkerState::Working) {
                inputs[pool].present += 1;
            }
            let is_overlong = |since: Time, stage: StageIx| {
                let load = &loads[stage.0];
                let age = since.until(self.now.mono);
                load.is_measured && age > load.run.saturating_mul(BLOCKED_RUNS)
            };
            // The tasks of a batch, one assignment, have the same stage and began at the same time.
            let mut last = None;
            for (task, held) in self.leases_of(name, worker) {
                if last.replace(held.batch()) == Some(held.batch()) {
                    continue;
                }
                if is_overlong(held.since(), task.stage()) {
                    inputs[pool].blocked += 1;
                } else if let Some(pool) = self.scaling.pool_of_stage(task.stage()) {
                    inputs[pool].busy += 1;
                }
            }
        }
    }
}

/// Adds a stage's work to that of its pool: what is due with each horizon, and not with one before.
fn add_work(
    work: &mut Vec<Work>,
    horizons: &[Horizon],
    load: &StageLoad,
    dispatcher: &DispatcherPlan,
    within: Duration,
) {
    let mut before = 0;
    for (horizon, tasks) in horizons.iter().zip(&load.tasks) {
        let due = tasks.saturating_sub(before);
        before = before.max(*tasks);
        if due == 0 {
            continue;
        }
        // A batch is one assignment; a task that several workers run is as many.
        let copies = dispatcher.speculation.copies.max(1) as u64;
        let runs = due.saturating_mul(copies) / dispatcher.batch.max(1) as u64;
        work.push(Work {
            left: horizon
                .deadline
                .map_or(within, |(_, left)| left.saturating_sub(load.tail)),
            block: horizon.deadline.map(|(block, _)| block),
            runs: runs.max(1),
            run: load.run,
        });
    }
}
