//! The types of a plan.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::grouping::StrategyFactory;

/// Index of a stage in [`Plan::stages`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct StageIx(pub usize);

/// Index of a queue in [`Plan::queues`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct QueueIx(pub usize);

/// A checked workflow, compiled for the core.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The workflow's name.
    pub workflow: Arc<str>,
    /// Dispatcher and collector stages, and the sequencer.
    pub stages: Vec<StagePlan>,
    /// Every queue of the workflow.
    pub queues: Vec<QueuePlan>,
    /// Sources of the workflow, which are no stages: the core knows their messages only.
    pub sources: Vec<SourcePlan>,
    /// Number of blocks below the newest one for which ids of finished tasks are kept, for stages
    /// without a path to the sequencer.
    pub retain_blocks: u64,
    /// The time limit for each block; `None` if it is not measured.
    pub deadline: Option<Deadline>,
    /// Whether a stage cuts blocks into parts (`fan_out`). Not part of the digest: only answers to queries depend on it.
    pub cuts_blocks: bool,
}

/// The time limit for each block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline {
    /// Time from a block's first accepted message until the sequencer has emitted the block, or,
    /// without a sequencer, until no task of the block is left.
    pub slot: Duration,
    /// Whether the remaining tasks of a block that has missed its deadline go to the dead-letter
    /// queue. Without effect if a sequencer waits for the block.
    pub drop_missed: bool,
}

/// A source of messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourcePlan {
    /// The source's name.
    pub name: Arc<str>,
    /// The queue that it writes.
    pub output: QueueIx,
    /// Whether its messages are submitted from outside, under the names of their producers.
    pub takes_submissions: bool,
}

/// A queue, its readers and its limits.
#[derive(Clone, Debug)]
pub struct QueuePlan {
    /// The queue's name.
    pub name: Arc<str>,
    /// Stages that read the queue; each gets every message.
    pub readers: Vec<StageIx>,
    /// Whether several stages write the queue, so that a message's part must name its writer.
    pub many_writers: bool,
    /// Number of waiting tasks from which producers wait.
    pub q_max: usize,
}

/// A stage: its queues, kind and settings.
#[derive(Clone, Debug)]
pub struct StagePlan {
    /// The stage's name.
    pub name: Arc<str>,
    /// Queues read; exactly one for a dispatcher and the sequencer.
    pub inputs: Vec<QueueIx>,
    /// Queues written; each gets every output.
    pub outputs: Vec<QueueIx>,
    /// Kind and settings of the stage.
    pub kind: StageKind,
}

/// Kind and settings of a stage.
#[derive(Clone, Debug)]
pub enum StageKind {
    /// Gives its tasks to workers.
    Dispatcher(DispatcherPlan),
    /// Gathers its messages into groups.
    Collector(CollectorPlan),
    /// Emits its messages in block order.
    Sequencer {
        /// The first block to emit.
        start: u64,
    },
}

/// Leases and retries of a dispatcher stage's tasks.
#[derive(Clone, Debug)]
pub struct DispatcherPlan {
    /// The worker group whose members may run this stage's tasks.
    pub group: Arc<str>,
    /// Capabilities required of a worker, unless the task states its own.
    pub needs: Needs,
    /// Lease duration: the time after a lease was given or last renewed at which it expires
    /// (T_ack).
    pub t_ack: Duration,
    /// Retries after the first attempt (R_max).
    pub r_max: u32,
    /// Waits before retries.
    pub backoff: Backoff,
    /// Maximum number of tasks in one assignment to a worker; 1 if `speculation` requires several
    /// copies.
    pub batch: usize,
    /// Redundant execution of each task.
    pub speculation: Speculation,
}

/// Redundant execution: number of workers that get the same task, and results that complete it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Speculation {
    /// Number of workers that each task is given to, at least 1, as they become free.
    pub copies: usize,
    /// Number of results that complete a task, from 1 to `copies`. A single result is passed on as
    /// it is, several as a group, in order of the names that [`Distinct`] gives.
    pub accept: usize,
    /// The property in which the workers of one task must differ.
    pub distinct: Distinct,
    /// Rule for giving a slow task to one more worker; never done if absent.
    pub hedge: Option<Hedge>,
}

/// The property in which the workers of one task must differ.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Distinct {
    /// The worker's name.
    #[default]
    Worker,
    /// The worker's label with this prefix; of several, the first in order counts. A worker without
    /// such a label gets no task of the stage.
    Label(Arc<str>),
}

/// Rule for giving a task to one more worker: the lease has lasted longer than `percentile` of the
/// stage's latest runs and longer than `min`, and no waiting task could be run instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hedge {
    /// Percentile, from 1 to 99.
    pub percentile: u32,
    /// Shortest lease that may be hedged.
    pub min: Duration,
}

/// Treatment of a message that reaches a collector after the group that it belongs to was emitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Late {
    /// The message goes to the dead-letter queue.
    #[default]
    Dead,
    /// The message is passed on alone, as a group of one.
    Emit,
    /// The message is consumed without effect.
    Skip,
}

/// Grouping of a collector stage's messages.
#[derive(Clone, Debug)]
pub struct CollectorPlan {
    /// Factory of the strategy; called once when the core starts.
    pub strategy: Arc<dyn StrategyFactory>,
    /// The strategy's name and settings in a stable encoding, which is part of the plan's digest.
    pub settings: Arc<str>,
    /// JSON pointer to the grouping field, if the strategy groups by one.
    pub group_by: Option<Arc<str>>,
    /// Time after a group's first message at which the incomplete group is given up or emitted
    /// (T_collect); `None` for no limit.
    pub t_collect: Option<Duration>,
    /// Treatment of a message that arrives after its group was emitted.
    pub late: Late,
}

/// Capabilities required of a worker to run a task.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Needs {
    /// Labels that the worker must have.
    pub labels: BTreeSet<String>,
    /// Bytes of memory that the worker must offer.
    pub memory: u64,
}

/// Exponential backoff with jitter.
#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    /// Wait before the first retry.
    pub initial: Duration,
    /// Longest wait.
    pub max: Duration,
    /// Growth from one retry to the next, at least 1.
    pub factor: f64,
    /// Random share of the wait, in both directions: 0.2 means ±20 %.
    pub jitter: f64,
}

// === impl Plan ===

impl Plan {
    /// The name of the lease that the process with the function `what` for the workflow holds.
    pub(crate) fn lease(&self, what: &str) -> String {
        format!("{}.{what}", self.workflow)
    }

    /// The function of the leader, for [`Plan::lease`].
    pub(crate) const LEADER: &str = "leader";

    /// The stage called `name`.
    pub fn stage_named(&self, name: &str) -> Option<StageIx> {
        self.stages
            .iter()
            .position(|stage| &*stage.name == name)
            .map(StageIx)
    }

    /// The queue called `name`.
    pub fn queue_named(&self, name: &str) -> Option<QueueIx> {
        self.queues
            .iter()
            .position(|queue| &*queue.name == name)
            .map(QueueIx)
    }

    /// The stage at `ix`, which must come from this plan.
    pub fn stage(&self, ix: StageIx) -> &StagePlan {
        &self.stages[ix.0]
    }

    /// The queue at `ix`, which must come from this plan.
    pub fn queue(&self, ix: QueueIx) -> &QueuePlan {
        &self.queues[ix.0]
    }

    /// Whether a collector reads the queue, so that its messages become part of a larger record.
    pub fn is_collected(&self, queue: QueueIx) -> bool {
        let mut readers = self.queue(queue).readers.iter();
        readers.any(|reader| self.stage(*reader).collector().is_some())
    }

    /// The sequencer's index, and the first block that it emits.
    pub fn sequencer(&self) -> Option<(StageIx, u64)> {
        self.stages
            .iter()
            .enumerate()
            .find_map(|(ix, stage)| match stage.kind {
                StageKind::Sequencer { start } => Some((StageIx(ix), start)),
                _ => None,
            })
    }

    /// The stages in the order of the graph: each after all that write what it reads; of several, first those that
    /// come first in the plan.
    pub fn in_order(&self) -> Vec<StageIx> {
        let mut order: Vec<StageIx> = Vec::with_capacity(self.stages.len());
        loop {
            let follows = |writer: &StagePlan, reader: &StagePlan| {
                writer.outputs.iter().any(|it| reader.inputs.contains(it))
            };
            let left: Vec<StageIx> = (0..self.stages.len())
                .map(StageIx)
                .filter(|stage| !order.contains(stage))
                .collect();
            let is_free = |stage: &&StageIx| {
                let mut others = left.iter().filter(|other| other != stage);
                !others.any(|other| follows(self.stage(*other), self.stage(**stage)))
            };
            // A checked workflow has no cycle; of one, the first stage would do.
            match left.iter().find(is_free).or_else(|| left.first()) {
                Some(next) => order.push(*next),
                None => return order,
            }
        }
    }

    /// For each stage, whether a path leads from it to the sequencer.
    pub fn leads_to_sequencer(&self) -> Vec<bool> {
        let mut leads: Vec<bool> = self
            .stages
            .iter()
            .map(|stage| matches!(stage.kind, StageKind::Sequencer { .. }))
            .collect();
        loop {
            let before = leads.clone();
            for (ix, stage) in self.stages.iter().enumerate() {
                leads[ix] |= stage.outputs.iter().any(|queue| {
                    self.queue(*queue)
                        .readers
                        .iter()
                        .any(|reader| before[reader.0])
                });
            }
            if leads == before {
                return leads;
            }
        }
    }
}

// === impl StagePlan ===

impl StagePlan {
    /// The dispatcher's part of the plan, if this is a dispatcher.
    pub fn dispatcher(&self) -> Option<&DispatcherPlan> {
        match &self.kind {
            StageKind::Dispatcher(plan) => Some(plan),
            _ => None,
        }
    }

    /// The collector's part of the plan, if this is a collector.
    pub fn collector(&self) -> Option<&CollectorPlan> {
        match &self.kind {
            StageKind::Collector(plan) => Some(plan),
            _ => None,
        }
    }
}

// === impl Speculation ===

impl Default for Speculation {
    /// One worker and one result, without hedging.
    fn default() -> Self {
        Self {
            copies: 1,
            accept: 1,
            distinct: Distinct::Worker,
            hedge: None,
        }
    }
}

// === impl Speculation ===

impl Speculation {
    /// Whether no two workers ever have a task at a time.
    pub const fn is_single(&self) -> bool {
        self.copies <= 1 && self.hedge.is_none()
    }
}

// === impl Distinct ===

impl Distinct {
    /// The name by which a worker is distinguished from others with the same task; `None` if it can
    /// be given no copy.
    pub fn name_of(&self, worker: &Arc<str>, labels: &BTreeSet<String>) -> Option<Arc<str>> {
        match self {
            Self::Worker => Some(worker.clone()),
            Self::Label(prefix) => labels
                .iter()
                .find(|label| label.starts_with(&**prefix))
                .map(|label| label.as_str().into()),
        }
    }
}

// === impl Needs ===

impl Needs {
    /// Whether a worker with `labels` and `memory` bytes can run a task with these needs.
    pub fn met_by(&self, labels: &BTreeSet<String>, memory: u64) -> bool {
        self.memory <= memory && self.labels.is_subset(labels)
    }
}

// === impl Backoff ===

impl Backoff {
    /// The wait before retry number `retry` (from 1). `draw` is uniform over `u64`; the core
    /// derives it from the task and the attempt, so that a run can be reproduced.
    pub fn delay(&self, retry: u32, draw: u64) -> Duration {
        let exponent = i32::try_from(retry.saturating_sub(1)).unwrap_or(i32::MAX);
        let grown = self.initial.as_secs_f64() * self.factor.powi(exponent);
        let capped = grown.min(self.max.as_secs_f64());
        let unit = (draw as f64 / u64::MAX as f64) * 2.0 - 1.0;
        let jittered = capped * (1.0 + self.jitter * unit);
        Duration::try_from_secs_f64(jittered.max(0.0)).unwrap_or(self.max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backoff_grows_to_its_maximum_within_its_jitter() {
        let backoff = Backoff {
            initial: Duration::from_secs(1),
            max: Duration::from_secs(10),
            factor: 2.0,
            jitter: 0.2,
        };
        for (retry, expected) in [
            (1, 1.0),
            (2, 2.0),
            (3, 4.0),
            (4, 8.0),
            (5, 10.0),
            (4000, 10.0),
        ] {
            let low = backoff.delay(retry, 0).as_secs_f64();
            let high = backoff.delay(retry, u64::MAX).as_secs_f64();
            assert!((low - expected * 0.8).abs() < 1e-6, "retry {retry}: {low}");
            assert!(
                (high - expected * 1.2).abs() < 1e-6,
                "retry {retry}: {high}"
            );
        }
    }

    #[test]
    fn needs_are_met_by_a_worker_that_has_them_all() {
        let needs = Needs {
            labels: ["gpu".into()].into(),
            memory: 8,
        };
        assert!(needs.met_by(&["gpu".into(), "cpu".into()].into(), 8));
        assert!(!needs.met_by(&["cpu".into()].into(), 8));
        assert!(!needs.met_by(&["gpu".into()].into(), 7));
    }
}
