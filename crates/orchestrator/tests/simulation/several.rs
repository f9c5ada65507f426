//! Several workers with one task, and deadlines: checks by an observer of the log.

use std::collections::BTreeSet;
use std::sync::Arc;

use proofmill_orchestrator::core::TaskView;
use proofmill_orchestrator::payload::Payload;
use proofmill_orchestrator::plan::{DispatcherPlan, Distinct};
use proofmill_orchestrator::principal::quorum_id;
use proofmill_orchestrator::record::{EndKind, Record, RecordKey};

use crate::checks::{Monitor, ensure};
use crate::plans::Scene;

/// Whether several results are compared, and another worker of the same user has the task or has completed
/// it.
pub(super) fn has_worker_of_user(
    plan: &DispatcherPlan,
    view: &TaskView,
    worker: &Arc<str>,
) -> bool {
    let holders = view.workers.iter().map(|(holder, _)| holder);
    let mut others = holders.chain(&view.result_workers);
    plan.speculation.accept > 1
        && others.any(|other| other != worker && quorum_id(other) == quorum_id(worker))
}

impl Monitor {
    /// Distinct name of a worker; `None` if it is unknown or lacks the label.
    fn distinct_name_of(&self, plan: &DispatcherPlan, worker: &Arc<str>) -> Option<Arc<str>> {
        let known = self.workers.get(worker);
        match &plan.speculation.distinct {
            Distinct::Worker => Some(worker.clone()),
            Distinct::Label(prefix) => {
                let label = known?.labels.iter().find(|l| l.starts_with(&**prefix))?;
                Some(label.as_str().into())
            }
        }
    }

    /// Whether a worker could be given one more copy.
    pub(super) fn may_take(
        &self,
        plan: &DispatcherPlan,
        view: &TaskView,
        worker: &Arc<str>,
    ) -> bool {
        let Some(name) = self.distinct_name_of(plan, worker) else {
            return false;
        };
        let is_same = |other: &Arc<str>| {
            other == worker || self.distinct_name_of(plan, other).as_ref() == Some(&name)
        };
        let failed = view
            .attempts
            .iter()
            .any(|a| a.failure.permanent && is_same(&a.worker));
        let has = view.workers.iter().any(|(other, _)| is_same(other));
        !failed && !has && !view.results.contains(&name) && !has_worker_of_user(plan, view, worker)
    }

    /// (k) No two copies are with the same worker, or with the same label.
    pub(super) fn check_copies(
        &self,
        plan: &DispatcherPlan,
        view: &TaskView,
    ) -> Result<(), String> {
        let id = &view.record.id;
        let most = plan.speculation.copies + usize::from(plan.speculation.hedge.is_some());
        ensure!(
            view.workers.len() <= most && view.results.len() < plan.speculation.accept,
            "(k) {id} is with {:?}, results are {:?}",
            view.workers,
            view.results
        );
        let names = view
            .workers
            .iter()
            .filter_map(|(w, _)| self.distinct_name_of(plan, w));
        let all: Vec<Arc<str>> = names.chain(view.results.iter().cloned()).collect();
        let different: BTreeSet<&Arc<str>> = all.iter().collect();
        ensure!(
            different.len() == all.len(),
            "(k) {id} is twice with the same: {all:?}"
        );
        Ok(())
    }

    /// (k) A task that takes several results has the required number, from different workers, and each is
    /// kept until then.
    pub(super) fn check_results(
        &mut self,
        scene: &Scene,
        puts: &[(RecordKey, Record)],
        deletes: &BTreeSet<RecordKey>,
    ) -> Result<(), String> {
        for (key, record) in puts {
            if let (RecordKey::PartialResult(id, _), Record::PartialResult(part)) = (key, record) {
                let new = self
                    .parts
                    .entry(id.clone())
                    .or_default()
                    .insert(part.distinct_name.clone());
                ensure!(new, "(k) {} has completed {id} twice", part.distinct_name);
            }
        }
        for key in deletes {
            let RecordKey::Task(id) = key else { continue };
            let parts = self.parts.remove(id).unwrap_or_default();
            let deleted = deletes
                .iter()
                .filter(|key| matches!(key, RecordKey::PartialResult(of, _) if of == id))
                .count();
            ensure!(
                deleted == parts.len(),
                "(k) results of {id} were left behind"
            );
            let stage = scene
                .plan
                .stage_named(&id.stage)
                .map(|ix| scene.plan.stage(ix));
            let Some(plan) = stage.and_then(|stage| stage.dispatcher()) else {
                continue;
            };
            let done = puts.iter().any(|(key, record)| match (key, record) {
                (RecordKey::Done(of), Record::Done(done)) => {
                    of == id && matches!(done.end, EndKind::Completed { .. })
                }
                _ => false,
            });
            if !done || plan.speculation.accept == 1 {
                continue;
            }
            let accept = plan.speculation.accept;
            ensure!(
                deleted + 1 == accept,
                "(k) {id} ended with {deleted} results before its last, of {accept}"
            );
            self.several += 1;
            for (key, record) in puts {
                let (RecordKey::Task(_), Record::Task(task)) = (key, record) else {
                    continue;
                };
                let Payload::Group { members, .. } = &task.payload else {
                    return Err(format!("(k) {id} takes {accept} and passed one on"));
                };
                let names: BTreeSet<&Arc<str>> = members.iter().map(|(name, _)| name).collect();
                let sorted = members.is_sorted_by(|(a, _), (b, _)| a < b);
                ensure!(
                    names.len() == accept && sorted && parts.iter().all(|p| names.contains(p)),
                    "(k) {id} passed on {names:?}, {accept} were to be"
                );
            }
        }
        Ok(())
    }

    /// (l) A block's deadline is counted from its first message until no task of it is left.
    pub(super) fn check_slots(
        &mut self,
        scene: &Scene,
        puts: &[(RecordKey, Record)],
        deletes: &BTreeSet<RecordKey>,
    ) -> Result<(), String> {
        for key in deletes {
            let RecordKey::Slot(first) = key else {
                continue;
            };
            let open = self.slots.remove(first);
            ensure!(open, "(l) the slot of block {first} ended twice");
            match scene.plan.sequencer() {
                Some(_) => ensure!(
                    *first < self.cursor,
                    "(l) the slot of block {first} ended before it was emitted"
                ),
                None => ensure!(
                    !self.live.iter().any(|id| id.block == *first),
                    "(l) the slot of block {first} ended while it lives"
                ),
            }
        }
        for (key, record) in puts {
            let (RecordKey::Slot(first), Record::Slot(slot)) = (key, record) else {
                continue;
            };
            let new = self.slots.insert(*first);
            ensure!(
                new != slot.missed,
                "(l) the slot of block {first} was opened twice, or missed unopened"
            );
            self.missed += u64::from(slot.missed);
        }
        Ok(())
    }
}
