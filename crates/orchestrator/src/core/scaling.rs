//! Scaling: the number of workers that each pool should have.
//!
//! Every two seconds the machine says, for each pool, what work is left and which workers are there. The number
//! needed follows from the work left and its deadlines (`demand`), and is no lower than the number that was busy on
//! average (`average`): with much time until the deadlines, too few workers would do for long, then too many be
//! needed, and so on for ever. The number wanted follows the needed one up at once and down slowly (`damping`), within
//! the pool's floor and ceiling. Workers that a pool has lacked for long are asked
//! of its fallback pool (`shortage`). Nothing here starts or stops a worker, and nothing here affects which worker
//! gets which task: an autoscaler outside reads the numbers.
//!
//! The state is soft. After a failover no fewer workers than there are stay wanted until `hold` has passed, so that a
//! new leader, who knows no history, sends nobody away.

mod average;
mod damping;
mod demand;
mod shortage;
mod view;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use self::average::Average;
use self::damping::Damping;
pub(super) use self::demand::{Demand, TASK, Work, demand};
use self::shortage::Shortage;
use self::view::Cause;
pub use self::view::PoolStatus;
use super::ending::millis;
use super::event::Time;
use super::layout::Layout;
use crate::plan::{Plan, PoolPlan, StageIx};

/// Time between two evaluations.
pub(super) const INTERVAL: Duration = Duration::from_secs(2);

/// Percentile of the durations of a stage's runs with which work is counted.
pub(super) const RUN_PERCENTILE: u32 = 95;

/// A lease that has lasted for this many usual runs blocks its worker: what the worker will still do is unknown.
pub(super) const BLOCKED_RUNS: u32 = 4;

/// The pools, and what was last wanted of each.
pub(super) struct Scaling {
    pools: Vec<Pool>,
    /// Pool that is to run the tasks of each stage; `None` for stages without workers, or without pools.
    pool_of_stage: Vec<Option<usize>>,
    /// Stages in the order of the flow: a stage comes after all those that it gets messages from.
    order: Vec<StageIx>,
    /// Duration of a run by which each stage's work is counted; `None` before enough runs are known.
    runs: Vec<Option<Duration>>,
    /// End of the time after a failover in which no fewer workers than there are become wanted.
    grace_until: Option<Time>,
}

/// A pool with its memory.
struct Pool {
    plan: PoolPlan,
    busy: Average,
    damping: Damping,
    shortage: Shortage,
    status: PoolStatus,
}

/// Facts about a pool at an evaluation.
#[derive(Default)]
pub(super) struct PoolInput {
    /// Work left, in any order.
    pub work: Vec<Work>,
    /// Workers that can be given tasks, now or when they have ended theirs.
    pub present: u64,
    /// Assignments of the pool's workers that have lasted for [`BLOCKED_RUNS`] usual runs.
    pub blocked: u64,
    /// Other assignments of tasks that the pool is to run, its fallback's workers included.
    pub busy: u64,
}

// === impl Scaling ===

impl Scaling {
    /// No work and no workers, for these pools of a plan.
    pub(super) fn new(pools: &[PoolPlan], plan: &Plan, layout: &Layout) -> Self {
        let is_fallback = |ix: usize| pools.iter().any(|pool| pool.fallback == Some(ix));
        let pool_of_stage = plan.stages.iter().map(|stage| {
            let dispatcher = stage.dispatcher()?;
            let suits = |pool: &PoolPlan| {
                pool.labels.is_empty() || dispatcher.needs.labels.is_subset(&pool.labels)
            };
            let of_group = || {
                let all = pools.iter().enumerate();
                all.filter(|(_, pool)| pool.group == dispatcher.group)
            };
            let mut suitable = of_group().filter(|(ix, pool)| suits(pool) && !is_fallback(*ix));
            let found = suitable.next().or_else(|| of_group().next());
            found.map(|(ix, _)| ix)
        });
        let pool = |plan: &PoolPlan| Pool {
            status: PoolStatus::of(plan, pools),
            plan: plan.clone(),
            busy: Average::default(),
            damping: Damping::default(),
            shortage: Shortage::default(),
        };
        Self {
            pool_of_stage: pool_of_stage.collect(),
            pools: pools.iter().map(pool).collect(),
            order: order_of_flow(plan, layout),
            runs: vec![None; plan.stages.len()],
            grace_until: None,
        }
    }

    /// Whether there are pools.
    pub(super) fn is_on(&self) -> bool {
        !self.pools.is_empty()
    }

    /// Keeps those wanted who are there, until each pool's `hold` has passed from now on.
    pub(super) fn begin_grace(&mut self, now: Time) {
        let holds = self.pools.iter().map(|pool| pool.plan.hold);
        self.grace_until = holds.max().map(|hold| now.plus(hold));
    }

    /// The pools' plans.
    pub(super) fn plans(&self) -> impl Iterator<Item = &PoolPlan> {
        self.pools.iter().map(|pool| &pool.plan)
    }

    /// Pool that is to run a stage's tasks.
    pub(super) fn pool_of_stage(&self, stage: StageIx) -> Option<usize> {
        self.pool_of_stage[stage.0]
    }

    /// Pool that a worker belongs to: of those whose labels it has, the one with the most.
    pub(super) fn pool_of_worker(&self, group: &str, labels: &BTreeSet<String>) -> Option<usize> {
        let pools = self.plans().enumerate();
        let fits = pools.filter(|(_, pool)| *pool.group == *group && pool.labels.is_subset(labels));
        // The first of several with as many labels.
        fits.min_by_key(|(_, pool)| std::cmp::Reverse(pool.labels.len()))
            .map(|(ix, _)| ix)
    }

    /// Stages in the order of the flow.
    pub(super) fn order(&self) -> &[StageIx] {
        &self.order
    }

    /// Notes the measured percentile of a stage's runs, and returns the duration to count with and whether it was
    /// measured. It follows the measurements only when they have moved away from it, so that their noise does not show.
    pub(super) fn run_of(
        &mut self,
        stage: StageIx,
        measured: Option<Duration>,
    ) -> (Duration, bool) {
        let used = &mut self.runs[stage.0];
        if let Some(measured) = measured
            && used.is_none_or(|used| measured > used * 9 / 8 || measured < used * 3 / 4)
        {
            *used = Some(measured);
        }
        let estimate = || {
            let pool = self.pool_of_stage[stage.0].map(|ix| &self.pools[ix].plan);
            pool.map_or(Duration::ZERO, |pool| pool.estimate)
        };
        self.runs[stage.0].map_or_else(|| (estimate(), false), |used| (used, true))
    }

    /// Computes the wanted number of each pool; `inputs` are in the order of the pools.
    pub(super) fn evaluate(&mut self, now: Time, inputs: Vec<PoolInput>) {
        let is_grace = self.grace_until.is_some_and(|until| now < until);
        let mut asked = vec![0_u64; self.pools.len()];
        // Pools with a fallback first: they ask the others.
        let (first, second): (Vec<_>, Vec<_>) = inputs
            .into_iter()
            .enumerate()
            .partition(|(ix, _)| self.pools[*ix].plan.fallback.is_some());
        for (ix, input) in first.into_iter().chain(second) {
            let pool = &mut self.pools[ix];
            let handed_on = pool.evaluate(now, input, asked[ix], is_grace);
            if let Some(fallback) = pool.plan.fallback {
                asked[fallback] += handed_on;
            }
        }
    }

    /// The number last wanted of each pool, and the reason.
    pub(super) fn status(&self) -> Vec<PoolStatus> {
        self.pools.iter().map(|pool| pool.status.clone()).collect()
    }
}

// === impl Pool ===

impl Pool {
    /// Returns the number of workers to ask of the fallback pool.
    fn evaluate(&mut self, now: Time, input: PoolInput, asked: u64, is_grace: bool) -> u64 {
        let plan = &self.plan;
        let Demand {
            assignments,
            tasks,
            run,
            left,
            block,
        } = demand(input.work);
        let blocked = input.blocked.div_ceil(plan.slots);
        let busy = self
            .busy
            .update(now, input.busy, plan.hold)
            .div_ceil(plan.slots);
        let due = assignments.div_ceil(plan.slots);
        let needed = due.max(busy) + blocked + asked;
        let kept = if is_grace { input.present } else { 0 };
        let damped = self.damping.update(now, needed.max(kept), plan.hold);
        let wanted = damped.max(plan.min).min(plan.max);
        // What the ceiling cuts off cannot be had either.
        let missing = damped.max(plan.min).saturating_sub(input.present);
        let is_lacking = self.shortage.update(now, missing > 0, plan.fallback_after);
        let handed_on = match plan.fallback {
            Some(_) if is_lacking => missing,
            _ => 0,
        };
        let status = &mut self.status;
        status.present = input.present;
        status.wanted = wanted;
        status.needed = needed;
        status.tasks = tasks;
        status.run_ms = millis(run);
        status.left_ms = (assignments > 0).then(|| millis(left));
        status.block = block;
        status.blocked = blocked;
        status.asked = asked;
        status.handed_on = handed_on;
        status.missing_ms = millis(self.shortage.lasting());
        let cause = if needed < damped && kept == damped {
            Cause::Kept
        } else if needed < damped {
            Cause::Held { hold: plan.hold }
        } else if due < busy {
            Cause::Busy { busy }
        } else {
            Cause::Needed
        };
        status.explain(cause);
        handed_on
    }
}

/// Stages sorted so that each comes after all those that it gets messages from. Workflows have no cycles; of a plan
/// that has one, its stages come last.
fn order_of_flow(plan: &Plan, layout: &Layout) -> Vec<StageIx> {
    let mut order: Vec<StageIx> = Vec::with_capacity(plan.stages.len());
    let mut left: Vec<StageIx> = (0..plan.stages.len()).map(StageIx).collect();
    while !left.is_empty() {
        let is_ready = |stage: &StageIx| {
            let mut inputs = plan.stage(*stage).inputs.iter();
            inputs.all(|queue| layout.writers(*queue).iter().all(|it| order.contains(it)))
        };
        let (ready, rest): (Vec<_>, Vec<_>) = left.into_iter().partition(is_ready);
        if ready.is_empty() {
            order.extend(rest);
            break;
        }
        order.extend(ready);
        left = rest;
    }
    order
}

/// Name of a pool's fallback pool.
fn fallback_name(plan: &PoolPlan, pools: &[PoolPlan]) -> Option<Arc<str>> {
    Some(pools.get(plan.fallback?)?.name.clone())
}

#[cfg(test)]
mod tests;
