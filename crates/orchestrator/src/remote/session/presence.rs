//! Signs of life of a client's workers whose events wait behind a call; each further attempt at the call carries them.

use std::collections::{BTreeMap, VecDeque};

use crate::conversation::{LeaseRef, RoleEvent, WorkerEvent, WorkerJoin};
use crate::id::WorkerId;

/// The joins of a client's workers, and their heartbeats that are not in a call yet. Each heartbeat also names the leases of its
/// worker's queued results and releases, which the leader does not know of yet. A worker that has left has a heartbeat too if
/// it has some.
pub(super) fn of(
    workers: &BTreeMap<WorkerId, WorkerJoin>,
    queued: &VecDeque<RoleEvent>,
) -> Vec<WorkerEvent> {
    let mut reported: BTreeMap<&WorkerId, Vec<LeaseRef>> = BTreeMap::new();
    let mut beats = Vec::new();
    for event in queued {
        match event {
            RoleEvent::Worker(event @ (WorkerEvent::Complete(_) | WorkerEvent::Release { .. })) => {
                let lease = event.reported_lease().cloned();
                reported.entry(event.worker()).or_default().extend(lease);
            }
            RoleEvent::Worker(beat)
                if beat.is_heartbeat() && workers.contains_key(beat.worker()) =>
            {
                beats.push(beat.clone());
            }
            _ => {}
        }
    }
    for beat in &mut beats {
        if let WorkerEvent::Heartbeat {
            worker, running, ..
        } = beat
        {
            running.extend(reported.remove(&*worker).unwrap_or_default());
        }
    }
    // Others send a heartbeat soon, which says whether they take tasks.
    reported.retain(|worker, _| !workers.contains_key(*worker));
    let left = reported
        .into_iter()
        .map(|(worker, running)| WorkerEvent::Heartbeat {
            worker: worker.clone(),
            running,
            retired: true,
            paused: None,
        });
    let joins = workers.values().cloned().map(WorkerEvent::Join);
    joins.chain(beats).chain(left).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::core::LeaseTag;
    use crate::id::{Part, TaskId};

    fn lease(block: u64) -> LeaseRef {
        LeaseRef {
            task: TaskId {
                stage: "prove".into(),
                block,
                part: Part::whole(),
            },
            attempt: 1,
            tag: LeaseTag::from_bytes([0; 16]),
        }
    }

    fn release(worker: &str, block: u64) -> RoleEvent {
        let (worker, lease) = (worker.into(), lease(block));
        WorkerEvent::Release { worker, lease }.into()
    }

    fn beat(worker: &str, block: u64) -> RoleEvent {
        let heartbeat = WorkerEvent::Heartbeat {
            worker: worker.into(),
            running: vec![lease(block)],
            retired: false,
            paused: None,
        };
        heartbeat.into()
    }

    /// Such as `a joins`, or `a 1 2 false` for a heartbeat with these blocks of a worker that is not retired.
    fn text(event: &WorkerEvent) -> String {
        match event {
            WorkerEvent::Join(join) => format!("{} joins", join.worker),
            WorkerEvent::Heartbeat {
                worker,
                running,
                retired,
                ..
            } => {
                let blocks = running.iter().map(|lease| lease.task.block.to_string());
                let blocks: Vec<String> = blocks.collect();
                format!("{worker} {} {retired}", blocks.join(" "))
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn heartbeats_name_what_is_queued_and_those_that_left_have_one_if_they_need_it() {
        let join = |worker: &str| WorkerJoin {
            worker: worker.into(),
            group: "prove".into(),
            labels: BTreeSet::new(),
            memory: 0,
            slots: 1,
        };
        let workers = ["a", "drains"].map(|worker| (worker.into(), join(worker)));
        let leave = WorkerEvent::Leave {
            worker: "left".into(),
        };
        let queued = [
            release("a", 1),
            beat("a", 2),
            release("drains", 3),
            beat("left", 4),
            release("left", 5),
            leave.into(),
        ];
        let told = of(&workers.into(), &queued.into());
        let told: Vec<String> = told.iter().map(text).collect();
        assert_eq!(
            told,
            ["a joins", "drains joins", "a 2 1 false", "left 5 true"]
        );
    }
}
