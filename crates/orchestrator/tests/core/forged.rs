//! Results, failures and releases of leases that a worker was not given.

use std::sync::Arc;
use std::time::Duration;

use proofmill_orchestrator::conversation::{
    LeaseRef, Output, WorkerEvent, WorkerFailure, WorkerResult,
};
use proofmill_orchestrator::core::LeaseTag;
use proofmill_orchestrator::payload::Payload;
use proofmill_orchestrator::plan::{DispatcherPlan, Distinct, Speculation};
use proofmill_orchestrator::principal::worker_name;
use proofmill_orchestrator::record::Failure;

use crate::support::{Draft, Mill, dispatcher, id};

fn mill() -> Mill {
    let mut mill = Draft::default()
        .work("prove", "in", &["proofs"])
        .work("verify", "proofs", &["out"])
        .sequence("out")
        .mill();
    mill.join("honest", 1);
    mill
}

fn result(worker: &str, lease: LeaseRef) -> WorkerEvent {
    WorkerEvent::Complete(WorkerResult {
        worker: worker.into(),
        lease,
        outputs: vec![Output {
            element: None,
            payload: Payload::json("\"forged\""),
            grouping: Vec::new(),
        }],
        ran: Duration::ZERO,
    })
}

fn stale(mill: &Mill) -> u64 {
    let stages = mill.core.status().stages;
    stages.iter().map(|it| it.counters.stale_results).sum()
}

/// An attack that succeeded before: an unknown worker completes both stages of a block.
#[test]
fn a_worker_that_nobody_knows_completes_nothing() {
    let mut mill = mill();
    mill.block("in", 0);
    for tag in [[0; 16], [0xff; 16]] {
        for task in ["prove/0/0", "verify/0/0"] {
            let lease = LeaseRef {
                task: id(task),
                attempt: 1,
                tag: LeaseTag::from_bytes(tag),
            };
            mill.tell(result("stranger", lease));
        }
    }
    assert_eq!(mill.tasks(), ["prove/0/0 Leased"]);
    assert_eq!(stale(&mill), 4);
    assert!(mill.emitted.is_empty());
}

#[test]
fn a_worker_completes_nothing_under_a_lease_of_another() {
    let mut mill = mill();
    mill.join("liar", 0);
    mill.block("in", 0);
    let lease = mill.lease("honest", "prove/0/0", 1);
    // Knowledge of another worker's lease does not help.
    mill.tell(result("liar", lease.clone()));
    mill.tell(WorkerEvent::Fail(WorkerFailure {
        worker: "liar".into(),
        lease: lease.clone(),
        failure: Failure::permanent(""),
    }));
    mill.tell(WorkerEvent::Release {
        worker: "liar".into(),
        lease: lease.clone(),
    });
    mill.tell(WorkerEvent::Heartbeat {
        worker: "liar".into(),
        running: vec![lease.clone()],
        retired: false,
        paused: None,
    });
    assert_eq!(mill.tasks(), ["prove/0/0 Leased"]);
    mill.tell(result("honest", lease));
    assert_eq!(mill.news(), ["honest prove/0/0#1", "honest verify/0/0#1"]);
}

#[test]
fn a_lease_of_one_attempt_task_or_content_is_not_one_of_another() {
    let mut mill = mill();
    mill.block("in", 0);
    mill.block("in", 1);
    let lease = mill.lease("honest", "prove/0/0", 1);
    let others = [
        LeaseRef {
            attempt: 2,
            ..lease.clone()
        },
        LeaseRef {
            task: id("prove/1/0"),
            ..lease.clone()
        },
    ];
    for other in others {
        mill.tell(result("honest", other));
    }
    assert_eq!(stale(&mill), 2);
    assert_eq!(mill.core.status().live, 2);
}

#[test]
fn a_result_that_comes_after_its_lease_and_its_coordinator_have_ended_counts() {
    let mut mill = mill();
    mill.block("in", 0);
    let lease = mill.lease("honest", "prove/0/0", 1);
    // The next coordinator does not know the worker yet.
    mill.restart(Duration::ZERO);
    mill.tell(result("honest", lease));
    assert_eq!(mill.tasks(), ["verify/0/0 Waiting"]);
}

/// An attack: one user's workers form a quorum by themselves, under invented names and labels.
#[test]
fn workers_of_one_user_are_no_quorum_whatever_they_call_themselves() {
    let quorum = Speculation {
        copies: 3,
        accept: 2,
        distinct: Distinct::Label("site-".into()),
        hedge: None,
    };
    let plan = DispatcherPlan {
        speculation: quorum,
        ..dispatcher()
    };
    let mut mill = Draft::default()
        .work_as("prove", "in", &["out"], plan)
        .sequence("out")
        .mill();
    let alice: Vec<String> = (0..3)
        .map(|n| worker_name(&format!("w-{n}"), "prove", "alice", "p"))
        .collect();
    for (number, worker) in alice.iter().enumerate() {
        mill.join_with(worker, 1, &[&format!("site-{number}")], 0);
    }
    mill.block("in", 0);
    let given = mill.news();
    assert_eq!(given, [format!("{} prove/0/0#1", alice[0])]);
    mill.complete(&alice[0], "prove/0/0", 1);
    // Nor by claiming that it was given the task.
    for worker in &alice[1..] {
        let lease = mill.lease(worker, "prove/0/0", 1);
        mill.tell(result(worker, lease));
    }
    assert!(mill.emitted.is_empty());
    assert!(mill.news().is_empty());
    let bob: Arc<str> = worker_name("w-0", "prove", "bob", "p").into();
    mill.join_with(&bob, 1, &["site-b"], 0);
    assert_eq!(mill.news(), [format!("{bob} prove/0/0#1")]);
    mill.complete(&bob, "prove/0/0", 1);
    assert_eq!(mill.emitted, [id("emit/0/0")]);
}
