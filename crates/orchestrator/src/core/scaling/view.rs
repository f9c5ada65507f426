//! State of a pool, as users see it.

use std::sync::Arc;
use std::time::Duration;

use proofmill_workflow::format_duration;
use serde::{Deserialize, Serialize};

use super::fallback_name;
use crate::plan::PoolPlan;

/// A pool of workers: how many there are, how many it should have, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolStatus {
    /// Name of the pool.
    pub pool: Arc<str>,
    /// Worker group of the pool's workers.
    pub group: Arc<str>,
    /// Workers of the pool that can be given tasks, now or when they have ended theirs: not those that are leaving,
    /// paused, drained, distrusted or silent.
    pub present: u64,
    /// Workers that the pool should have.
    pub wanted: u64,
    /// Workers that the work of this moment needs, before damping, floor and ceiling.
    pub needed: u64,
    /// Fewest workers wanted.
    pub min: u64,
    /// Most workers wanted.
    pub max: u64,
    /// Runs left: of live tasks, and of those that will come of them.
    pub tasks: u64,
    /// Duration of a run that they are counted with, milliseconds; the longest of the pool's stages that have work.
    pub run_ms: u64,
    /// Time left of the work that decides, milliseconds; `None` without work.
    pub left_ms: Option<u64>,
    /// Block whose deadline that is; `None` without deadlines.
    pub block: Option<u64>,
    /// Workers that are blocked by a lease which has lasted unusually long.
    pub blocked: u64,
    /// Workers that this pool is asked for in place of others.
    pub asked: u64,
    /// Pool that stands in for this one.
    pub fallback: Option<Arc<str>>,
    /// Workers that the fallback pool is asked for in place of this one.
    pub handed_on: u64,
    /// Time that workers have been missing, milliseconds, up to the time after which the fallback pool is asked; it
    /// goes down while none is missing.
    pub missing_ms: u64,
    /// Reason for the wanted number, in words.
    pub why: String,
}

/// Reason for which a pool's damped number is what it is.
pub(super) enum Cause {
    /// So many are needed now.
    Needed,
    /// So many were needed within this time.
    Held {
        /// The time.
        hold: Duration,
    },
    /// The deadlines need fewer; so many were busy on average.
    Busy {
        /// The average.
        busy: u64,
    },
    /// So many are there after a failover.
    Kept,
}

// === impl PoolStatus ===

impl PoolStatus {
    /// A pool without work and workers.
    pub(super) fn of(plan: &PoolPlan, pools: &[PoolPlan]) -> Self {
        Self {
            pool: plan.name.clone(),
            group: plan.group.clone(),
            present: 0,
            wanted: plan.min,
            needed: 0,
            min: plan.min,
            max: plan.max,
            tasks: 0,
            run_ms: 0,
            left_ms: None,
            block: None,
            blocked: 0,
            asked: 0,
            fallback: fallback_name(plan, pools),
            handed_on: 0,
            missing_ms: 0,
            why: "no work".to_owned(),
        }
    }

    /// Sets the reason in words.
    pub(super) fn explain(&mut self, cause: Cause) {
        let mut parts = Vec::new();
        if self.tasks > 0 {
            let runs = if self.tasks == 1 { "run" } else { "runs" };
            let left = self.left_ms.map_or_else(String::new, shown);
            let deadline = match self.block {
                Some(block) => format!("the deadline of block {block} is in {left}"),
                None => format!("to be done within {left}"),
            };
            parts.push(format!(
                "{} {runs} left, {} each: {deadline}",
                self.tasks,
                shown(self.run_ms)
            ));
        }
        if self.blocked > 0 {
            parts.push(format!("{} blocked by an overlong lease", self.blocked));
        }
        if self.asked > 0 {
            parts.push(format!("{} in place of other pools", self.asked));
        }
        if parts.is_empty() {
            parts.push("no work".to_owned());
        }
        match cause {
            Cause::Needed => {}
            Cause::Held { hold } => {
                let hold = format_duration(hold);
                parts.push(format!(
                    "{} suffice, and more were needed in the last {hold}",
                    self.needed
                ));
            }
            Cause::Busy { busy } => parts.push(format!("{busy} have been busy on average")),
            Cause::Kept => parts.push("those present are kept after a failover".to_owned()),
        }
        if self.wanted == self.min && self.needed < self.min {
            parts.push(format!("at least {}", self.min));
        }
        if self.wanted == self.max && self.needed > self.max {
            parts.push(format!(
                "{} are needed, and {} are the limit",
                self.needed, self.max
            ));
        }
        if let (Some(fallback), 1..) = (&self.fallback, self.handed_on) {
            parts.push(format!("{} asked of {fallback} instead", self.handed_on));
        }
        self.why = parts.join("; ");
    }
}

/// A duration in the largest unit of which there are at least two, such as `90 s`.
fn shown(ms: u64) -> String {
    match ms {
        0..2_000 => format!("{ms} ms"),
        2_000..120_000 => format!("{} s", ms / 1_000),
        120_000..7_200_000 => format!("{} min", ms / 60_000),
        _ => format!("{} h", ms / 3_600_000),
    }
}
