//! Numbers for monitoring.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::Core;
use super::waiting::WaitReasons;
use super::worker::WorkerState;
use crate::core::measures::{GroupMeasure, Measures, OldestMeasure, WaitMeasure};
use crate::plan::{StageIx, StageKind};

/// Most classes of tasks whose reason is looked for; those of further classes count as `other`. Producers may name any
/// labels, and each set of needs is a class.
const CLASSES_MAX: usize = 64;

impl Core {
    /// Numbers for monitoring. The time that this takes grows with the number of workers, of stages, and of kinds of
    /// needs up to a limit, not with the number of tasks.
    pub fn measures(&self) -> Measures {
        let stages = (0..self.layout.stages()).map(StageIx);
        Measures {
            groups: self.group_measures(),
            waiting: self.wait_measures(),
            oldest: stages
                .filter_map(|stage| self.oldest_measure(stage))
                .collect(),
        }
    }

    fn group_measures(&self) -> Vec<GroupMeasure> {
        let groups = self.layout.groups().iter();
        let groups = groups.map(|name| GroupMeasure::new(name.clone(), Vec::new()));
        let mut groups: Vec<GroupMeasure> = groups.collect();
        for stage in &self.plan.stages {
            let group = stage.dispatcher().map(|plan| &plan.group);
            if let Some(group) = group.and_then(|group| self.layout.group_named(group)) {
                groups[group].stages.push(stage.name.clone());
            }
        }
        for (name, worker) in self.workers.iter() {
            let group = &mut groups[worker.group()];
            let count = match self.worker_state(name, worker) {
                WorkerState::Distrusted => &mut group.distrusted,
                WorkerState::Leaving => &mut group.leaving,
                WorkerState::Silent => &mut group.silent,
                counted => {
                    group.slots += worker.slots();
                    group.slots_busy += worker.busy();
                    match counted {
                        WorkerState::Paused => &mut group.paused,
                        WorkerState::Idle => &mut group.idle,
                        _ => &mut group.working,
                    }
                }
            };
            *count += 1;
        }
        groups
    }

    /// Claimable tasks have the reason of the first task of their class: the others of the class wait behind it.
    fn wait_measures(&self) -> Vec<WaitMeasure> {
        let mut counts: BTreeMap<(StageIx, Cow<'static, str>), usize> = BTreeMap::new();
        let mut claimable = vec![0; self.layout.stages()];
        let mut reasons = WaitReasons::new(self);
        let mut classes = 0;
        for group in 0..self.layout.groups().len() {
            for (class, head) in self.tasks.heads(group) {
                classes += 1;
                let stage = class.0;
                let tasks = self.tasks.class_len(group, class);
                let first = self.tasks.get(head.no()).filter(|_| classes <= CLASSES_MAX);
                let reason = first.map_or("other", |task| reasons.of(task).name());
                *counts.entry((stage, Cow::Borrowed(reason))).or_default() += tasks;
                claimable[stage.0] += tasks;
            }
        }
        for (ix, plan) in self.plan.stages.iter().enumerate() {
            let stage = StageIx(ix);
            // What waits and is not claimable for all waits for another attempt, its turn, or a lower block.
            let waiting = self.tasks.waiting(stage).total();
            let others = waiting.saturating_sub(claimable[ix]);
            let reason = match plan.kind {
                StageKind::Dispatcher(_) => "retry",
                StageKind::Collector(_) => "put_off",
                StageKind::Sequencer { .. } => "lower_block",
            };
            *counts.entry((stage, Cow::Borrowed(reason))).or_default() += others;
            let held = self.tasks.held(stage).total();
            *counts.entry((stage, Cow::Borrowed("group"))).or_default() += held;
        }
        let counts = counts.into_iter().filter(|(_, tasks)| *tasks > 0);
        let measures = counts.map(|((stage, reason), tasks)| WaitMeasure {
            stage: Arc::clone(self.layout.name(stage)),
            reason,
            tasks,
        });
        measures.collect()
    }

    fn oldest_measure(&self, stage: StageIx) -> Option<OldestMeasure> {
        let oldest = self.tasks.oldest(stage)?;
        let record = oldest.record();
        Some(OldestMeasure {
            stage: Arc::clone(self.layout.name(stage)),
            lowest_block: self.tasks.present(stage).lowest()?,
            oldest_block: record.id.block,
            oldest_age_ms: self.now.wall_ms.saturating_sub(record.at_ms),
        })
    }
}
