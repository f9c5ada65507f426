//! Numbers of a stage's tasks, and the steps of blocks that are cut into parts.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::Core;
use crate::core::steps::{BlockSteps, OldestPart, STEP_BLOCKS_MAX, StageCounts, Step, StepsView};
use crate::plan::{StageIx, StageKind};

/// Maximum number of leases that are looked at for the parts that workers have.
const LEASES_EXAMINED_MAX: usize = 4096;

/// Maximum number of a stage's tasks that are looked at, oldest first, for the beginnings of steps.
const TASKS_EXAMINED_MAX: usize = 256;

/// Values by stage and block.
type ByStep<T> = BTreeMap<(StageIx, u64), T>;

impl Core {
    /// Numbers of a stage's tasks, of all blocks or of those that begin with one.
    pub(super) fn stage_counts(&self, stage: StageIx, block: Option<u64>) -> StageCounts {
        StageCounts {
            waiting: self.tasks.waiting(stage).of(block),
            leased: self.tasks.leased(stage).of(block),
            held: self.tasks.held(stage).of(block),
            dead: self.dead.count(stage).of(block),
        }
    }

    /// Kind of a stage, in a word.
    pub(super) fn stage_kind(&self, stage: StageIx) -> Cow<'static, str> {
        Cow::Borrowed(match self.plan.stage(stage).kind {
            StageKind::Dispatcher(_) => "dispatcher",
            StageKind::Collector(_) => "collector",
            StageKind::Sequencer { .. } => "sequencer",
        })
    }

    /// The steps of the lowest blocks in work; of none unless the plan cuts blocks into parts.
    pub(super) fn steps(&self) -> StepsView {
        if !self.steps.is_kept() {
            return StepsView::default();
        }
        let (blocks, has_more) = self.blocks_in_work();
        let mut oldest = self.oldest_parts(&blocks);
        let began = self.beginnings(&blocks);
        let order = self.plan.in_order();
        let blocks = blocks.into_iter().map(|block| {
            let steps = order.iter().map(|stage| {
                let at = (*stage, block);
                self.step(at, oldest.remove(&at), began.get(&at).copied())
            });
            let steps: Vec<Step> = steps.collect();
            let critical = critical(&steps);
            BlockSteps {
                block,
                steps,
                critical,
            }
        });
        StepsView {
            blocks: blocks.collect(),
            has_more,
        }
    }

    /// The lowest blocks of live tasks and of dead letters, and whether there are more.
    ///
    /// Dead letters about blocks that were emitted hold nothing up. Where nothing is emitted nobody waits for a dead letter
    /// either, and blocks of live tasks come first.
    fn blocks_in_work(&self) -> (BTreeSet<u64>, bool) {
        let emits = self.plan.sequencer().is_some();
        let first = if emits { self.sequencer.cursor() } else { 0 };
        let (mut live, mut dead) = (BTreeSet::new(), BTreeSet::new());
        for stage in (0..self.layout.stages()).map(StageIx) {
            live.extend(self.tasks.present(stage).blocks().take(STEP_BLOCKS_MAX + 1));
            let letters = self.dead.count(stage).blocks_from(first);
            dead.extend(letters.take(STEP_BLOCKS_MAX + 1));
        }
        let all: BTreeSet<u64> = live.union(&dead).copied().collect();
        let has_more = all.len() > STEP_BLOCKS_MAX;
        let preferred = if emits { all } else { live };
        let mut blocks: BTreeSet<u64> = preferred.into_iter().take(STEP_BLOCKS_MAX).collect();
        for block in dead {
            if blocks.len() == STEP_BLOCKS_MAX {
                break;
            }
            blocks.insert(block);
        }
        (blocks, has_more)
    }

    fn step(
        &self,
        (stage, block): (StageIx, u64),
        oldest: Option<OldestPart>,
        began_ms: Option<u64>,
    ) -> Step {
        let mut times = self.steps.times(stage, block);
        if let Some(at_ms) = began_ms {
            times.note_began(at_ms);
        }
        let counts = self.stage_counts(stage, Some(block));
        let live = self.tasks.present(stage).of(Some(block));
        let done = self.marks.count(stage, block);
        let name = self.layout.name(stage).clone();
        times.into_step((name, self.stage_kind(stage)), (counts, live, done), oldest)
    }

    /// For each stage and block the part that a worker has had for longest.
    fn oldest_parts(&self, blocks: &BTreeSet<u64>) -> ByStep<OldestPart> {
        let mut oldest: ByStep<OldestPart> = BTreeMap::new();
        let workers = self.workers.iter();
        let leases = workers.flat_map(|(name, worker)| self.leases_of(name, worker));
        for (task, held) in leases.take(LEASES_EXAMINED_MAX) {
            let block = task.id().block;
            if !blocks.contains(&block) {
                continue;
            }
            let since_ms = held.since_wall_ms();
            let before = oldest.get(&(task.stage(), block));
            // Of leases of the same age, that of the first part: workers are in no order.
            let is_older =
                before.is_none_or(|it| (since_ms, &task.id().part) < (it.since_ms, &it.part));
            if is_older {
                let part = OldestPart {
                    part: task.id().part.clone(),
                    worker: held.worker().clone(),
                    since_ms,
                };
                oldest.insert((task.stage(), block), part);
            }
        }
        oldest
    }

    /// For each stage and block the acceptance of the first live task.
    fn beginnings(&self, blocks: &BTreeSet<u64>) -> ByStep<u64> {
        let mut began: ByStep<u64> = BTreeMap::new();
        for stage in (0..self.layout.stages()).map(StageIx) {
            for task in self.tasks.by_age(stage).take(TASKS_EXAMINED_MAX) {
                let at_ms = task.record().at_ms;
                let first = began.entry((stage, task.id().block)).or_insert(at_ms);
                *first = at_ms.min(*first);
            }
            for block in blocks {
                // A block whose tasks are all newer than those that were looked at.
                let mut tasks = self.tasks.beginning_at(stage, *block, None);
                if let (false, Some(task)) = (began.contains_key(&(stage, *block)), tasks.next()) {
                    began.insert((stage, *block), task.record().at_ms);
                }
            }
        }
        began
    }
}

/// See [`BlockSteps::critical`].
fn critical(steps: &[Step]) -> Option<usize> {
    let works = |step: &Step| step.live > step.counts.held || step.counts.dead > 0;
    let first = steps.iter().position(works);
    first.or_else(|| steps.iter().position(|step| step.live > 0))
}
