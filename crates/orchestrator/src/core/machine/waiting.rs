//! The reasons for which live tasks wait.

use std::collections::HashMap;
use std::sync::Arc;

use super::Core;
use super::collect::member_without_payload;
use crate::core::ending::millis;
use crate::core::tasks::{Class, Phase, Task};
use crate::core::waiting::{LowerBlock, WaitReason, WorkerLack};
use crate::core::workers::Worker;
use crate::grouping::Member;
use crate::id::WorkerId;
use crate::plan::{Needs, StageIx};

/// Reasons of several tasks. What tasks have in common is found once.
pub(super) struct WaitReasons<'a> {
    core: &'a Core,
    groups: HashMap<(StageIx, Arc<str>), WaitReason>,
    lower: Option<LowerBlock>,
    classes: HashMap<Class, WaitReason>,
    /// Number of workers and messages of groups that may still be looked at.
    room: usize,
}

/// Maximum number of workers and messages of groups that are looked at for the reasons of several tasks. Beyond
/// it, a task gets the reason of the tasks that need the same workers, and a group does not say what it lacks.
const EXAMINED_MAX: usize = 20_000;

impl<'a> WaitReasons<'a> {
    pub(super) fn new(core: &'a Core) -> Self {
        Self {
            core,
            groups: HashMap::new(),
            lower: None,
            classes: HashMap::new(),
            room: EXAMINED_MAX,
        }
    }

    /// The reason of a live task.
    pub(super) fn of(&mut self, task: &Task) -> WaitReason {
        match task.phase() {
            Phase::New | Phase::Recording | Phase::Finishing => WaitReason::Recording,
            Phase::Leased => running(task),
            Phase::Ready if !task.copies().is_empty() => running(task),
            Phase::Ready => self.ready(task),
            Phase::Delayed { until } => {
                let left_ms = millis(self.core.now.mono.until(until));
                match task.attempts().last() {
                    None => WaitReason::PutOff { left_ms },
                    Some(last) => WaitReason::Backoff {
                        failed: task.attempts().len(),
                        left_ms,
                        at_ms: self.core.now.wall_ms.saturating_add(left_ms),
                        last: last.failure.reason.clone(),
                    },
                }
            }
            Phase::Held => self.held(task),
            Phase::Queued => {
                let is_next = task.id().block <= self.core.sequencer.next();
                if let Some(paused) = self.core.stage_paused(task.stage()).filter(|_| is_next) {
                    return paused;
                }
                let lower = self.lower.get_or_insert_with(|| self.core.lower_block());
                WaitReason::LowerBlock {
                    next: self.core.sequencer.next(),
                    state: lower.clone(),
                }
            }
            Phase::Emitting => WaitReason::Sinks,
        }
    }

    fn held(&mut self, task: &Task) -> WaitReason {
        let (core, stage) = (self.core, task.stage());
        let Some(key) = core.collectors.key_of(stage, task.no()) else {
            return WaitReason::Verdict;
        };
        let room = &mut self.room;
        let group = self.groups.entry((stage, Arc::clone(key)));
        group
            .or_insert_with(|| core.group(stage, key, room))
            .clone()
    }

    /// The reason of a task that is claimable.
    fn ready(&mut self, task: &Task) -> WaitReason {
        let core = self.core;
        if core.draining {
            return WaitReason::Draining;
        }
        if let Some(paused) = core.stage_paused(task.stage()) {
            return paused;
        }
        if let Some(until) = core.adopting_until {
            let left_ms = millis(core.now.mono.until(until));
            return WaitReason::Restarting { left_ms };
        }
        let block = task.record().id.block;
        let mut outputs = core.plan.stage(task.stage()).outputs.iter();
        if let Some(queue) = outputs.find(|queue| core.is_full(**queue, block, true)) {
            let queue = core.plan.queue(*queue);
            return WaitReason::QueueFull {
                queue: queue.name.clone(),
                limit: queue.q_max,
            };
        }
        let Some((group, class)) = task.class() else {
            return WaitReason::Turn;
        };
        // Workers differ for a task only after attempts at it, or results of it.
        let differs = !task.attempts().is_empty() || task.is_partially_assigned();
        if let Some(room) = self
            .room
            .checked_sub(core.workers.len())
            .filter(|_| differs)
        {
            self.room = room;
            return core.worker_lack(task, group, class);
        }
        let of_class = self.classes.entry(Arc::clone(class));
        of_class
            .or_insert_with(|| core.worker_lack(task, group, class))
            .clone()
    }
}

impl Core {
    fn stage_paused(&self, stage: StageIx) -> Option<WaitReason> {
        let pause = self.pauses.stage(stage)?;
        Some(WaitReason::StagePaused {
            stage: pause.name.clone(),
            by: pause.by.clone(),
            at_ms: pause.at_ms,
            for_ms: self.now.wall_ms.saturating_sub(pause.at_ms),
        })
    }

    fn group(&self, stage: StageIx, key: &Arc<str>, room: &mut usize) -> WaitReason {
        let has = self.collectors.filed_count(stage, key);
        let lacks = room.checked_sub(has).and_then(|left| {
            *room = left;
            let filed = self.collectors.filed(stage, key);
            let members: Vec<Member> = filed
                .filter_map(|no| self.tasks.get(no))
                .map(|task| member_without_payload(task.record()))
                .collect();
            let plan = self.plan.stage(stage).collector();
            plan.and_then(|plan| plan.strategy.missing(&members))
        });
        WaitReason::Group {
            key: Arc::clone(key),
            has,
            lacks,
        }
    }

    /// The state of the next block to be emitted.
    fn lower_block(&self) -> LowerBlock {
        let next = self.sequencer.next();
        let mut dead = self.dead_about(next);
        if let Some(dead) = dead.find(|dead| dead.task.last >= next) {
            return LowerBlock::Dead {
                task: dead.task.id.to_string().into(),
            };
        }
        match self.tasks_about(next).find(|it| it.record().last >= next) {
            Some(task) => LowerBlock::Live {
                task: task.id().to_string().into(),
            },
            None => match self.pauses.sources().next() {
                Some(pause) => LowerBlock::SourcePaused {
                    source: pause.name.clone(),
                    by: pause.by.clone(),
                },
                None => LowerBlock::NotSubmitted,
            },
        }
    }

    /// The lack of a worker for the task: of the obstacles of the group's workers that could run it, the one that is likely
    /// to pass first.
    fn worker_lack(&self, task: &Task, group: usize, class: &Class) -> WaitReason {
        let workers = self.workers.iter();
        let of_group: Vec<_> = workers.filter(|(_, it)| it.group() == group).collect();
        let suits = |worker: &Worker| class.1.met_by(worker.labels(), worker.memory());
        let suitable = || of_group.iter().filter(|(_, worker)| suits(worker));
        let count = suitable().count();
        let mut found: Option<(u8, WorkerLack)> = None;
        for (name, worker) in suitable() {
            let Some((rank, lack)) = self.obstacle(task, name, worker, count) else {
                return WaitReason::Turn;
            };
            if found.as_ref().is_none_or(|(best, _)| rank < *best) {
                found = Some((rank, lack));
            }
        }
        let offers = of_group.iter().map(|(_, worker)| *worker);
        WaitReason::Worker {
            group: self.layout.groups()[group].clone(),
            lack: found.map_or_else(|| unmet(&class.1, offers), |(_, lack)| lack),
        }
    }

    /// The obstacle that keeps a worker with the task's needs from it, with a rank: the lower, the sooner it is likely to
    /// pass. `None` if there is none.
    fn obstacle(
        &self,
        task: &Task,
        name: &WorkerId,
        worker: &Worker,
        workers: usize,
    ) -> Option<(u8, WorkerLack)> {
        let silent_for = worker.heard().until(self.now.mono);
        let t_ack = self.plan.stage(task.stage()).dispatcher()?.t_ack;
        let worker_name = || Arc::clone(name);
        if self.workers.is_distrusted(name) {
            let worker = worker_name();
            return Some((5, WorkerLack::Distrusted { worker }));
        }
        if self.may_take(task, name).is_none() {
            let failed = task.failed_for_good().any(|by| by == name);
            let worker = worker_name();
            return Some((4, WorkerLack::Excluded { worker, failed }));
        }
        if let Some(pause) = self.workers.drained(name) {
            let (worker, by) = (worker_name(), pause.by.clone());
            return Some((3, WorkerLack::Drained { worker, by }));
        }
        if worker.is_retired() {
            return Some((3, WorkerLack::Leaving { workers }));
        }
        if silent_for > t_ack {
            let for_ms = millis(silent_for);
            let worker = worker_name();
            return Some((2, WorkerLack::Silent { worker, for_ms }));
        }
        if let Some(reason) = worker.paused() {
            let (worker, reason) = (worker_name(), Arc::clone(reason));
            return Some((1, WorkerLack::Paused { worker, reason }));
        }
        (worker.busy() >= worker.slots()).then_some((0, WorkerLack::Busy { workers }))
    }
}

/// The lack of workers none of which meets the needs.
fn unmet<'a>(needs: &Needs, offers: impl Iterator<Item = &'a Worker> + Clone) -> WorkerLack {
    let workers = offers.clone().count();
    if workers == 0 {
        return WorkerLack::NoneJoined;
    }
    let with_labels = offers
        .clone()
        .filter(|it| needs.labels.is_subset(it.labels()));
    if let Some(most) = with_labels.map(Worker::memory).max() {
        let needs = needs.memory;
        return WorkerLack::Memory { needs, most };
    }
    let is_nowhere = |label: &&String| !offers.clone().any(|it| it.labels().contains(*label));
    let nowhere: Vec<String> = needs.labels.iter().filter(is_nowhere).cloned().collect();
    let labels = match nowhere.is_empty() {
        true => needs.labels.iter().cloned().collect(),
        false => nowhere,
    };
    WorkerLack::Labels { labels, workers }
}

fn running(task: &Task) -> WaitReason {
    let held = task.copies().iter();
    WaitReason::Running {
        workers: held.map(|held| held.worker().clone()).collect(),
        results: task.results().len(),
        required: task.results_required(),
    }
}
