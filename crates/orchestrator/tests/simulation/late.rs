//! (p) Messages that are passed on arrive: every message that a result or a group brings to a reader becomes
//! a task, a dead letter or a mark of its own, late or not.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proofmill_orchestrator::conversation::WorkerResult;
use proofmill_orchestrator::id::{Part, TaskId};
use proofmill_orchestrator::plan::StagePlan;
use proofmill_orchestrator::record::{EndKind, Record, RecordKey};

use crate::checks::{Monitor, ensure};
use crate::plans::Scene;

/// Results that were reported, and records of messages.
#[derive(Default)]
pub(super) struct Passed {
    /// Positions of the messages in a result, by task, attempt and worker.
    results: BTreeMap<(TaskId, u32, Arc<str>), Vec<Option<usize>>>,
    /// Tasks that were live, dead or finished at any time.
    known: BTreeSet<TaskId>,
    /// Tasks that an operator has dropped and that have not been submitted since.
    dropped: BTreeSet<TaskId>,
}

// === impl Passed ===

impl Passed {
    pub(super) fn hears(&mut self, complete: &WorkerResult) {
        let elements = complete.outputs.iter().map(|output| output.element);
        let lease = &complete.lease;
        let key = (lease.task.clone(), lease.attempt, complete.worker.clone());
        self.results.insert(key, elements.collect());
    }

    /// Whether the mark of a task may be removed because a dropped task is submitted again.
    pub(super) fn is_revived(&mut self, id: &TaskId, puts: &[(RecordKey, Record)]) -> bool {
        let comes = |key: &RecordKey| match key {
            RecordKey::Task(of) | RecordKey::Dead(of) => of == id,
            _ => false,
        };
        self.dropped.contains(id)
            && puts.iter().any(|(key, _)| comes(key))
            && self.dropped.remove(id)
    }

    pub(super) fn is_dropped(&self, id: &TaskId) -> bool {
        self.dropped.contains(id)
    }

    fn note(&mut self, puts: &[(RecordKey, Record)]) {
        for (key, record) in puts {
            if let RecordKey::Task(id) | RecordKey::Dead(id) | RecordKey::Done(id) = key {
                self.known.insert(id.clone());
            }
            if let (RecordKey::Done(id), Record::Done(done)) = (key, record)
                && done.end == EndKind::Dropped
            {
                self.dropped.insert(id.clone());
            }
        }
    }

    /// Checks that the messages of `part` that `stage` writes are known at each of their readers.
    fn check_readers(
        &self,
        scene: &Scene,
        stage: &StagePlan,
        part: &Part,
        is_known: impl Fn(&str, &Part) -> bool,
    ) -> Result<(), String> {
        for queue in &stage.outputs {
            let queue = scene.plan.queue(*queue);
            let of_writer = match queue.many_writers {
                true => part.of(&stage.name),
                false => part.clone(),
            };
            for reader in &queue.readers {
                let reader = scene.plan.stage(*reader);
                let part = match reader.inputs.len() > 1 {
                    true => of_writer.of(&queue.name),
                    false => of_writer.clone(),
                };
                let (from, to) = (&stage.name, &reader.name);
                ensure!(
                    is_known(to, &part),
                    "(p) what {from} passed on to {to} as {part} has vanished"
                );
            }
        }
        Ok(())
    }

    fn check(&self, scene: &Scene, key: &RecordKey, record: &Record) -> Result<(), String> {
        let stage_of = |name: &str| scene.plan.stage_named(name).map(|ix| scene.plan.stage(ix));
        let known_about = |block: u64| {
            move |stage: &str, part: &Part| {
                self.known.contains(&TaskId {
                    stage: stage.into(),
                    block,
                    part: part.clone(),
                })
            }
        };
        match (key, record) {
            (RecordKey::Done(id), Record::Done(done)) => {
                let Some(stage) = stage_of(&id.stage) else {
                    return Ok(());
                };
                match &done.end {
                    EndKind::Completed { worker, attempt } => {
                        let of = (id.clone(), *attempt, worker.clone());
                        let Some(elements) = self.results.get(&of) else {
                            return Err(format!(
                                "(p) {worker} brought no result of {id}#{attempt}"
                            ));
                        };
                        elements.iter().try_for_each(|element| {
                            let part = match element {
                                Some(index) => id.part.element(*index),
                                None => id.part.clone(),
                            };
                            self.check_readers(scene, stage, &part, known_about(id.block))
                        })
                    }
                    EndKind::Late { passed_on, .. } if *passed_on => {
                        let part = id.part.of("late");
                        self.check_readers(scene, stage, &part, known_about(id.block))
                    }
                    _ => Ok(()),
                }
            }
            // The record of a group does not have the group's first block.
            (RecordKey::Group(stage, part), Record::Group(_)) => match stage_of(stage) {
                Some(stage) => {
                    let is_known = |stage: &str, part: &Part| {
                        let mut known = self.known.iter();
                        known.any(|id| *id.stage == *stage && id.part == *part)
                    };
                    self.check_readers(scene, stage, part, is_known)
                }
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }
}

impl Monitor {
    /// Checks a batch that has become durable.
    pub(super) fn check_passed(
        &mut self,
        scene: &Scene,
        puts: &[(RecordKey, Record)],
    ) -> Result<(), String> {
        self.passed.note(puts);
        puts.iter()
            .try_for_each(|(key, record)| self.passed.check(scene, key, record))
    }
}
