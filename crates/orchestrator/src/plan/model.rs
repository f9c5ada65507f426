//! The types of a plan.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::collector::StrategyFactory;

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
    /// Every queue that a stage reads.
    pub queues: Vec<QueuePlan>,
    /// For stages that no path leads from to the sequencer, finished task ids are remembered for
    /// this many blocks below the newest one.
    pub retain_blocks: u64,
    /// How long a block may take, where that is counted.
    pub deadline: Option<Deadline>,
}

/// How long a block may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline {
    /// From its first accepted message until the sequencer has emitted it, or, without one, until
    /// nothing of it is left.
    pub slot: Duration,
    /// Whether what is left of a block that has missed its deadline goes to the dead-letter queue.
    /// Without effect where a sequencer waits for the block.
    pub drop_missed: bool,
}

/// A queue: who reads it, who writes it.
#[derive(Clone, Debug)]
pub struct QueuePlan {
    /// The queue's name.
    pub name: Arc<str>,
    /// Every reader gets every message.
    pub readers: Vec<StageIx>,
    /// Whether messages of different writers must be told apart by their part.
    pub many_writers: bool,
    /// Waiting tasks at which producers wait.
    pub q_max: usize,
}

/// A stage: what it reads and writes, and what kind it is.
#[derive(Clone, Debug)]
pub struct StagePlan {
    /// The stage's name.
    pub name: Arc<str>,
    /// Queues read. A dispatcher and a sequencer read one.
    pub inputs: Vec<QueueIx>,
    /// Queues written; each output goes to every one.
    pub outputs: Vec<QueueIx>,
    /// What the stage does.
    pub kind: StageKind,
}

/// What a stage does with its tasks.
#[derive(Clone, Debug)]
pub enum StageKind {
    /// Hands them to workers.
    Dispatcher(DispatcherPlan),
    /// Gathers them into groups.
    Collector(CollectorPlan),
    /// Emits them in block order.
    Sequencer {
        /// The first block to emit.
        start: u64,
    },
}

/// How the tasks of a dispatcher stage are leased and retried.
#[derive(Clone, Debug)]
pub struct DispatcherPlan {
    /// The worker group whose members may run this stage's tasks.
    pub group: Arc<str>,
    /// What a worker must offer, unless the task says otherwise.
    pub needs: Needs,
    /// A lease ends this long after it was given or last renewed (T_ack).
    pub t_ack: Duration,
    /// Retries after the first attempt (R_max).
    pub r_max: u32,
    /// How long to wait before each retry.
    pub backoff: Backoff,
    /// Tasks given to a worker in one assignment, at most; one where `speculation` asks for copies.
    pub batch: usize,
    /// How many workers get the same task.
    pub speculation: Speculation,
}

/// How many workers get the same task, and what becomes of their results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Speculation {
    /// Workers that a task is given to, at least 1, as soon as each is free.
    pub copies: usize,
    /// Results that complete a task, from 1 to `copies`. One goes on as it is; of several, a group
    /// does, in order of [`Distinct`]'s names.
    pub accept: usize,
    /// What the workers of one task must differ in.
    pub distinct: Distinct,
    /// When one more worker gets a task that takes long.
    pub hedge: Option<Hedge>,
}

/// What the workers that have the same task must differ in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Distinct {
    /// Their names.
    #[default]
    Worker,
    /// Their label that begins so; a worker without one is given no task of the stage. Of several
    /// such labels the first in order counts.
    Label(Arc<str>),
}

/// When a task is given to one more worker: the lease has lasted longer than `percentile` of the
/// stage's latest runs and longer than `min`, and nothing that waits could be run instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hedge {
    /// From 1 to 99.
    pub percentile: u32,
    /// No lease shorter than this is hedged.
    pub min: Duration,
}

/// What becomes of a message that comes to a collector after the group that it belongs to was emitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Late {
    /// It goes to the dead-letter queue.
    #[default]
    Dead,
    /// It is passed on alone, as a group of one.
    Emit,
    /// It is consumed without effect.
    Skip,
}

/// How a collector stage groups its messages.
#[derive(Clone, Debug)]
pub struct CollectorPlan {
    /// Makes the strategy; called once when the core starts.
    pub strategy: Arc<dyn StrategyFactory>,
    /// The strategy's name and settings, in an encoding that no release changes: what tells plans
    /// apart, beside the fields below.
    pub settings: Arc<str>,
    /// JSON pointer to the grouping field, where the strategy groups by one.
    pub group_by: Option<Arc<str>>,
    /// A group is given up, or emitted as it is, this long after its first message (T_collect).
    pub t_collect: Option<Duration>,
    /// What becomes of a message that comes too late for its group.
    pub late: Late,
}

/// What a worker must offer to run a task.
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
    /// Fraction of the wait that is drawn at random, both ways: 0.2 means ±20 %.
    pub jitter: f64,
}

// === impl Plan ===

impl Plan {
    /// The name of the lease that whoever does `what` for the workflow holds.
    pub(crate) fn lease(&self, what: &str) -> String {
        format!("{}.{what}", self.workflow)
    }

    /// See [`Plan::lease`].
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

    /// The stage at `ix`. Indices come from this plan only.
    pub fn stage(&self, ix: StageIx) -> &StagePlan {
        &self.stages[ix.0]
    }

    /// The queue at `ix`. Indices come from this plan only.
    pub fn queue(&self, ix: QueueIx) -> &QueuePlan {
        &self.queues[ix.0]
    }

    /// Whether a collector reads the queue: its messages become part of a larger record.
    pub fn is_collected(&self, queue: QueueIx) -> bool {
        let mut readers = self.queue(queue).readers.iter();
        readers.any(|reader| self.stage(*reader).collector().is_some())
    }

    /// The sequencer, and the first block that it emits.
    pub fn sequencer(&self) -> Option<(StageIx, u64)> {
        self.stages
            .iter()
            .enumerate()
            .find_map(|(ix, stage)| match stage.kind {
                StageKind::Sequencer { start } => Some((StageIx(ix), start)),
                _ => None,
            })
    }

    /// For each stage, whether its work ends up at the sequencer.
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
    /// One worker, one result.
    fn default() -> Self {
        Self {
            copies: 1,
            accept: 1,
            distinct: Distinct::Worker,
            hedge: None,
        }
    }
}

// === impl Distinct ===

impl Distinct {
    /// What a worker counts as; `None` if it can be given no copy.
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
    /// The wait before retry number `retry` (from 1). `draw` is uniform over all of `u64`: the
    /// core derives it from the task and the attempt, so that a run can be repeated.
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
