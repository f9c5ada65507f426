//! Steps of blocks that are cut into parts: the types of the answer to a query, and the times of the parts that
//! have ended.
//!
//! A step of a block is a stage that has, had or will have tasks of that block. The times are kept for plans with a
//! stage that cuts blocks into parts, and for a block as long as marks of its tasks are.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::durations::Durations;
use crate::id::{Part, TaskId, WorkerId};
use crate::plan::StageIx;
use crate::record::DoneRecord;

/// Maximum number of blocks in an answer: the lowest in work.
pub const STEP_BLOCKS_MAX: usize = 8;

/// Numbers of a stage's tasks, of all blocks or of one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageCounts {
    /// Tasks that no worker has and that wait for a worker, for their backoff, or for their turn.
    pub waiting: usize,
    /// Tasks that at least one worker has.
    pub leased: usize,
    /// Messages that a collector holds in unfinished groups.
    pub held: usize,
    /// Dead letters.
    pub dead: usize,
}

/// The lowest blocks in work, and their steps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepsView {
    /// Blocks with live tasks or dead letters, in order; at most [`STEP_BLOCKS_MAX`].
    pub blocks: Vec<BlockSteps>,
    /// Whether higher blocks are in work, too.
    pub has_more: bool,
}

/// A block in work: its steps, in the order of the workflow's graph.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockSteps {
    /// The block: the first of those that its tasks span.
    pub block: u64,
    /// One step for each stage.
    pub steps: Vec<Step>,
    /// Place in `steps` of the step that the later ones wait for: the first with tasks or dead letters. Messages that a
    /// collector holds wait for others, so a collector that only holds some is passed over if another step has work.
    pub critical: Option<usize>,
}

/// A step of a block. Times are milliseconds since 1970-01-01 UTC, durations milliseconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Stage.
    pub stage: Arc<str>,
    /// `dispatcher`, `collector` or `sequencer`.
    pub kind: Cow<'static, str>,
    /// The block's tasks at the stage.
    pub counts: StageCounts,
    /// Live tasks: those of `counts`, and those whose end is being recorded or that are being emitted.
    pub live: usize,
    /// Tasks that have ended, as far as their marks are kept.
    pub done: usize,
    /// Acceptance of the first task that is known; `None` before there is one.
    pub began_ms: Option<u64>,
    /// End of the latest task that has ended; `None` while there is none.
    pub ended_ms: Option<u64>,
    /// Median of the times that workers had the parts that they completed, to 1/32.
    pub median_ms: Option<u64>,
    /// The part of them that took longest.
    pub slowest: Option<SlowestPart>,
    /// The part that a worker has had for longest.
    pub oldest: Option<OldestPart>,
}

/// The part that took longest of those that workers completed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlowestPart {
    /// The part.
    pub part: Part,
    /// Time from the assignment that led to the result to the end.
    pub took_ms: u64,
}

/// A part that a worker has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OldestPart {
    /// The part.
    pub part: Part,
    /// The worker.
    pub worker: WorkerId,
    /// Beginning of the lease.
    pub since_ms: u64,
}

/// Times of the ended tasks, by stage and block. None are kept unless the plan cuts blocks into parts.
pub(super) struct Steps(Option<Vec<BTreeMap<u64, StepTimes>>>);

/// Times of the ended tasks of a block at a stage.
#[derive(Clone, Debug, Default)]
pub(super) struct StepTimes {
    began_ms: Option<u64>,
    ended_ms: Option<u64>,
    durations: Durations,
    slowest: Option<SlowestPart>,
}

// === impl Steps ===

impl Steps {
    /// No times, for `stages` stages; `is_kept`: whether times will be kept.
    pub(super) fn new(stages: usize, is_kept: bool) -> Self {
        Self(is_kept.then(|| vec![BTreeMap::new(); stages]))
    }

    /// Whether times are kept.
    pub(super) fn is_kept(&self) -> bool {
        self.0.is_some()
    }

    /// Notes the end of a task.
    pub(super) fn note_done(&mut self, stage: StageIx, id: &TaskId, done: &DoneRecord) {
        if let Some(by_block) = self.0.as_mut().and_then(|it| it.get_mut(stage.0)) {
            by_block.entry(id.block).or_default().note(&id.part, done);
        }
    }

    /// Forgets the times of a block at a stage.
    pub(super) fn forget(&mut self, stage: StageIx, block: u64) {
        if let Some(by_block) = self.0.as_mut().and_then(|it| it.get_mut(stage.0)) {
            by_block.remove(&block);
        }
    }

    /// The times of a block at a stage; those of no task if there are none.
    pub(super) fn times(&self, stage: StageIx, block: u64) -> StepTimes {
        let by_block = self.0.as_ref().and_then(|it| it.get(stage.0));
        let times = by_block.and_then(|it| it.get(&block));
        times.cloned().unwrap_or_default()
    }
}

#[cfg(debug_assertions)]
impl Steps {
    /// `has_marks` tells whether there are marks of a block at a stage.
    pub(super) fn check(&self, has_marks: impl Fn(StageIx, u64) -> bool) -> Result<(), String> {
        for (ix, by_block) in self.0.iter().flatten().enumerate() {
            let mut blocks = by_block.keys();
            if let Some(block) = blocks.find(|block| !has_marks(StageIx(ix), **block)) {
                return Err(format!(
                    "stage {ix}: times of block {block} are kept for no mark"
                ));
            }
        }
        Ok(())
    }
}

// === impl StepTimes ===

impl StepTimes {
    fn note(&mut self, part: &Part, done: &DoneRecord) {
        self.ended_ms = self.ended_ms.max(Some(done.at_ms));
        let Some(timeline) = &done.timeline else {
            return;
        };
        self.note_began(timeline.accepted_ms);
        // Only workers take time; others wait.
        let Some(begun_ms) = timeline.begun_ms else {
            return;
        };
        let took_ms = done.at_ms.saturating_sub(begun_ms);
        self.durations.add(took_ms);
        if self.slowest.as_ref().is_none_or(|it| it.took_ms < took_ms) {
            let part = part.clone();
            self.slowest = Some(SlowestPart { part, took_ms });
        }
    }

    /// Notes the acceptance of a task.
    pub(super) fn note_began(&mut self, at_ms: u64) {
        self.began_ms = Some(self.began_ms.map_or(at_ms, |before| before.min(at_ms)));
    }

    /// The step with these times.
    pub(super) fn into_step(
        self,
        (stage, kind): (Arc<str>, Cow<'static, str>),
        (counts, live, done): (StageCounts, usize, usize),
        oldest: Option<OldestPart>,
    ) -> Step {
        Step {
            stage,
            kind,
            counts,
            live,
            done,
            began_ms: self.began_ms,
            ended_ms: self.ended_ms,
            median_ms: self.durations.median(),
            slowest: self.slowest,
            oldest,
        }
    }
}
