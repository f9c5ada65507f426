//! (o) Results and failures come from workers that were given the task, and quorums from different users.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proofmill_orchestrator::conversation::Lease;
use proofmill_orchestrator::id::TaskId;
use proofmill_orchestrator::principal::quorum_id;
use proofmill_orchestrator::record::{EndKind, Record, RecordKey};

use crate::checks::ensure;
use crate::plans::Scene;

/// All leases that any coordinator has given.
#[derive(Default)]
pub(super) struct Given {
    leases: BTreeSet<(TaskId, u32, Arc<str>, [u8; 32])>,
    /// Digest of the content that each task carries, or carried last.
    contents: BTreeMap<TaskId, [u8; 32]>,
    /// Workers whose results are kept, by task.
    results: BTreeMap<TaskId, Vec<Arc<str>>>,
}

/// Whether the worker belongs to the group, according to its name.
pub(super) fn is_of_group(worker: &str, group: &str) -> bool {
    let address = worker.rsplit_once('@').map(|(_, address)| address);
    address.and_then(|address| address.split('.').next()) == Some(group)
}

impl Given {
    pub(super) fn note(&mut self, worker: &Arc<str>, lease: &Lease) {
        let (id, content) = (lease.task.id.clone(), lease.task.content());
        self.leases
            .insert((id, lease.attempt, worker.clone(), content));
    }

    fn was_given(&self, id: &TaskId, attempt: u32, worker: &Arc<str>) -> bool {
        self.contents.get(id).is_some_and(|content| {
            let lease = (id.clone(), attempt, worker.clone(), *content);
            self.leases.contains(&lease)
        })
    }

    /// Whether the worker was given the task in any attempt.
    fn was_ever_given(&self, id: &TaskId, worker: &Arc<str>) -> bool {
        let from = (id.clone(), 0, Arc::from(""), [0; 32]);
        let of_task = self.leases.range(from..).take_while(|(of, ..)| of == id);
        of_task.into_iter().any(|(_, _, by, _)| by == worker)
    }

    /// Checks a batch that has become durable.
    pub(super) fn check(
        &mut self,
        scene: &Scene,
        puts: &[(RecordKey, Record)],
        deletes: &BTreeSet<RecordKey>,
    ) -> Result<(), String> {
        for (key, record) in puts {
            match (key, record) {
                (RecordKey::Attempts(id), Record::Attempts(attempts)) => {
                    let Some(last) = attempts.last() else {
                        continue;
                    };
                    ensure!(
                        self.was_ever_given(id, &last.worker),
                        "(o) an attempt of {} at {id} has failed, which it was never given",
                        last.worker
                    );
                }
                (RecordKey::PartialResult(id, _), Record::PartialResult(part)) => {
                    ensure!(
                        self.was_given(id, part.attempt, &part.worker),
                        "(o) a result of {} for {id}#{} was kept, which it was not given",
                        part.worker,
                        part.attempt
                    );
                    let results = self.results.entry(id.clone()).or_default();
                    results.push(part.worker.clone());
                }
                (RecordKey::Done(id), Record::Done(done)) => {
                    if let EndKind::Completed { worker, attempt } = &done.end {
                        self.check_completed(id, *attempt, worker)?;
                    }
                }
                _ => {}
            }
        }
        for key in deletes {
            if let RecordKey::Task(id) = key {
                self.results.remove(id);
            }
        }
        for (key, record) in puts {
            if let (RecordKey::Task(id), Record::Task(task)) = (key, record) {
                ensure!(
                    is_entrance(scene, &task.queue)
                        || puts
                            .iter()
                            .any(|(key, _)| matches!(key, RecordKey::Done(_)))
                        || deletes.contains(&RecordKey::Dead(id.clone())),
                    "(o) {id} came of nothing"
                );
                self.contents.insert(id.clone(), task.content());
            }
        }
        Ok(())
    }

    fn check_completed(&self, id: &TaskId, attempt: u32, worker: &Arc<str>) -> Result<(), String> {
        ensure!(
            self.was_given(id, attempt, worker),
            "(o) {worker} has completed {id}#{attempt}, which it was not given"
        );
        let results = self.results.get(id).into_iter().flatten();
        let voters: Vec<&str> = results
            .chain([worker])
            .map(|worker| quorum_id(worker))
            .collect();
        let users: BTreeSet<&str> = voters.iter().copied().collect();
        ensure!(
            users.len() == voters.len(),
            "(o) {id} was completed by a quorum of {voters:?}"
        );
        Ok(())
    }
}

/// Whether no stage writes the queue.
pub(super) fn is_entrance(scene: &Scene, queue: &str) -> bool {
    let ix = scene.plan.queue_named(queue);
    let mut stages = scene.plan.stages.iter();
    ix.is_some_and(|ix| !stages.any(|stage| stage.outputs.contains(&ix)))
}
