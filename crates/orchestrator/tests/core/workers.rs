//! Leases: their assignment, their duration, and the number that a worker has at once.

use std::time::Duration;

use proofmill_orchestrator::conversation::{LeaseRef, PAUSE_REASON_MAX, WorkerEvent};
use proofmill_orchestrator::core::Event;
use proofmill_orchestrator::plan::{DispatcherPlan, Needs};

use crate::support::{Draft, Mill, dispatcher};

fn mill() -> Mill {
    Draft::default().work("prove", "in", &[]).mill()
}

#[test]
fn lower_blocks_go_first_and_retries_before_first_attempts() {
    let mut mill = mill();
    mill.join("w", 1);
    mill.block("in", 5);
    let mut other = Mill::message(5, 5, "{}");
    other.part = proofmill_orchestrator::id::Part::new("b").expect("a part");
    mill.send("in", other);
    mill.block("in", 4);
    mill.fail("w", "prove/5/0", 1, false);
    mill.pass(1_000);
    mill.complete("w", "prove/4/0", 1);
    assert_eq!(
        mill.news(),
        ["w prove/5/0#1", "w prove/4/0#1", "w prove/5/0#2"]
    );
}

#[test]
fn labels_and_memory_decide_who_can() {
    let mut mill = mill();
    mill.join_with("small", 1, &["cpu"], 4);
    let mut heavy = Mill::message(1, 1, "{}");
    heavy.needs = Some(Needs {
        labels: ["gpu".to_owned()].into(),
        memory: 8,
    });
    mill.send("in", heavy);
    mill.block("in", 2);
    assert_eq!(mill.news(), ["small prove/2/0#1"]);
    mill.join_with("large", 1, &["gpu", "cpu"], 8);
    assert_eq!(mill.news(), ["large prove/1/0#1"]);
}

#[test]
fn another_worker_gets_what_one_has_failed() {
    let mut mill = mill();
    mill.join("a", 1);
    mill.block("in", 0);
    mill.join("b", 1);
    mill.fail("a", "prove/0/0", 1, false);
    mill.pass(1_000);
    assert_eq!(mill.news(), ["a prove/0/0#1", "b prove/0/0#2"]);
}

#[test]
fn batches_are_shared_among_those_who_are_free() {
    let plan = DispatcherPlan {
        batch: 4,
        ..dispatcher()
    };
    let mut mill = Draft::default().work_as("prove", "in", &[], plan).mill();
    for block in 0..10 {
        mill.block("in", block);
    }
    mill.join("a", 1);
    mill.join_with("b", 1, &[], 0);
    assert_eq!(mill.batches, [4, 4]);
    let first: Vec<String> = (0..4).map(|block| format!("a prove/{block}/0#1")).collect();
    assert_eq!(mill.news()[..4], first);
    for block in 0..4 {
        assert_eq!(
            mill.batches.len(),
            2,
            "a batch takes one slot until all of it is done"
        );
        mill.complete("a", &format!("prove/{block}/0"), 1);
    }
    assert_eq!(mill.batches, [4, 4, 2]);
}

#[test]
fn a_retired_worker_finishes_what_it_has() {
    let mut mill = mill();
    mill.join("a", 2);
    mill.block("in", 0);
    mill.tell(WorkerEvent::Retire { worker: "a".into() });
    mill.block("in", 1);
    assert_eq!(mill.news(), ["a prove/0/0#1"]);
    mill.complete("a", "prove/0/0", 1);
    mill.join("a", 2);
    assert_eq!(mill.news(), ["a prove/1/0#1"]);
    let lease = mill.lease("a", "prove/1/0", 1);
    mill.tell(WorkerEvent::Retire { worker: "a".into() });
    mill.tell(WorkerEvent::Release {
        worker: "a".into(),
        lease,
    });
    mill.join("b", 1);
    assert_eq!(mill.news(), ["b prove/1/0#1"]);
}

#[test]
fn an_attempt_is_counted_for_a_worker_that_is_lost_and_not_for_one_that_leaves() {
    let mut mill = mill();
    mill.join("a", 2);
    mill.block("in", 0);
    mill.block("in", 1);
    assert_eq!(mill.news(), ["a prove/0/0#1", "a prove/1/0#1"]);
    // It began neither: the assignments crossed its last message.
    mill.tell(WorkerEvent::Leave { worker: "a".into() });
    mill.join("b", 2);
    assert_eq!(mill.news(), ["b prove/0/0#1", "b prove/1/0#1"]);
    mill.tell(WorkerEvent::Lost { worker: "b".into() });
    mill.join("c", 2);
    assert_eq!(mill.news(), ["c prove/0/0#2", "c prove/1/0#2"]);
    assert_eq!(mill.core.status().stages[0].counters.failed, 2);
}

#[test]
fn a_lease_does_not_end_while_the_report_on_it_waits_for_a_check() {
    let mut mill = mill();
    mill.join("a", 2);
    mill.block("in", 0);
    mill.block("in", 1);
    assert_eq!(mill.news(), ["a prove/0/0#1", "a prove/1/0#1"]);
    let lease = mill.lease("a", "prove/0/0", 1);
    let waits = |lease: LeaseRef| Event::ReportWaits {
        worker: "a".into(),
        lease,
        is_result: true,
    };
    mill.tell(waits(lease.clone()));
    // One that nobody gave changes nothing.
    let forged = LeaseRef {
        attempt: 2,
        ..mill.lease("a", "prove/1/0", 1)
    };
    mill.tell(waits(forged));
    mill.pass(200_000);
    let counters = mill.core.status().stages[0].counters;
    assert_eq!((counters.expired, counters.failed), (1, 1), "the other's");
    mill.complete("a", "prove/0/0", 1);
    assert_eq!(mill.core.status().stages[0].counters.completed, 1);
}

#[test]
fn a_new_leader_keeps_a_lease_when_it_hears_that_the_report_on_it_waits() {
    let mut mill = mill();
    mill.join("a", 1);
    mill.block("in", 0);
    assert_eq!(mill.news(), ["a prove/0/0#1"]);
    let lease = mill.lease("a", "prove/0/0", 1);
    mill.restart(Duration::from_secs(1));
    mill.join("a", 1);
    mill.tell(Event::ReportWaits {
        worker: "a".into(),
        lease,
        is_result: true,
    });
    mill.join("b", 1);
    mill.pass(200_000);
    assert_eq!(mill.news(), [] as [&str; 0], "nobody else gets it");
    mill.complete("a", "prove/0/0", 1);
    let counters = mill.core.status().stages[0].counters;
    assert_eq!((counters.failed, counters.completed), (0, 1));
}

#[test]
fn a_paused_worker_gets_nothing_says_why_and_comes_back_with_no_attempt_counted() {
    let mut mill = mill();
    let paused = |mill: &mut Mill, paused: Option<String>| {
        mill.tell(WorkerEvent::Heartbeat {
            worker: "a".into(),
            running: Vec::new(),
            retired: false,
            paused,
        });
    };
    mill.join("a", 2);
    mill.block("in", 0);
    assert_eq!(mill.news(), ["a prove/0/0#1"]);
    // More often than a task may fail.
    for _ in 0..50 {
        let lease = mill.lease("a", "prove/0/0", 1);
        paused(&mut mill, Some("no disk space: write".into()));
        mill.tell(WorkerEvent::Release {
            worker: "a".into(),
            lease,
        });
        mill.block("in", 1);
        mill.pass(100);
        assert!(mill.news().is_empty(), "it has no room");
        let status = mill.core.status();
        let [one] = &status.paused[..] else {
            panic!("{:?}", status.paused);
        };
        assert_eq!((&*one.worker, &*one.reason), ("a", "no disk space: write"));
        paused(&mut mill, None);
        assert_eq!(mill.core.status().paused, []);
        assert_eq!(mill.news()[0], "a prove/0/0#1");
        let lease = mill.lease("a", "prove/1/0", 1);
        mill.tell(WorkerEvent::Release {
            worker: "a".into(),
            lease,
        });
        mill.news();
    }
    let counters = mill.core.status().stages[0].counters;
    assert_eq!(
        (counters.failed, counters.retried, counters.died),
        (0, 0, 0)
    );
    assert!(
        mill.core
            .tasks(|_| true)
            .iter()
            .all(|task| task.attempts.is_empty())
    );
    // Another worker takes the tasks that it hands back.
    paused(&mut mill, Some("x".repeat(100_000)));
    assert!(mill.core.status().paused[0].reason.len() <= PAUSE_REASON_MAX);
    let lease = mill.lease("a", "prove/0/0", 1);
    mill.join("b", 1);
    mill.tell(WorkerEvent::Release {
        worker: "a".into(),
        lease,
    });
    assert!(mill.news().contains(&"b prove/0/0#1".to_owned()));
    // A worker that joins again is not paused until it reports a pause.
    mill.join("a", 2);
    assert_eq!(mill.core.status().paused, []);
}

#[test]
fn leases_end_without_heartbeats_and_are_adopted_with_them() {
    let mut mill = mill();
    mill.join("a", 1);
    mill.block("in", 0);
    for _ in 0..10 {
        mill.pass(10_000);
        mill.beat("a", &[("prove/0/0", 1)]);
    }
    assert_eq!(mill.core.status().stages[0].leased, 1);
    mill.pass(30_500);
    assert_eq!(mill.core.status().stages[0].counters.expired, 1);
    assert_eq!(mill.cancelled.len(), 1);
    // The worker was only slow: no other has the task yet.
    mill.beat("a", &[("prove/0/0", 1)]);
    assert_eq!(mill.core.status().stages[0].leased, 1);
    mill.complete("a", "prove/0/0", 1);
    assert!(mill.tasks().is_empty() && !mill.has_key("try.prove.0.0"));
}

#[test]
fn a_heartbeat_older_than_the_failure_does_not_bring_the_lease_back() {
    let mut mill = mill();
    mill.join("a", 1);
    mill.block("in", 0);
    mill.fail("a", "prove/0/0", 1, false);
    mill.beat("a", &[("prove/0/0", 1)]);
    assert_eq!(mill.tasks(), ["prove/0/0 Delayed"]);
    assert_eq!(mill.cancelled.len(), 1);
}

#[test]
fn the_first_result_wins_and_the_other_worker_is_told() {
    let mut mill = mill();
    mill.join("a", 1);
    mill.block("in", 0);
    mill.pass(31_500);
    mill.join("b", 1);
    assert_eq!(mill.news(), ["a prove/0/0#1", "b prove/0/0#2"]);
    mill.cancelled.clear();
    mill.complete("a", "prove/0/0", 1);
    mill.complete("b", "prove/0/0", 2);
    let told: Vec<&str> = mill.cancelled.iter().map(|(worker, _)| &**worker).collect();
    assert_eq!(told, ["b", "b"]);
    assert_eq!(mill.core.status().stages[0].counters.stale_results, 1);
}

#[test]
fn a_worker_silent_for_long_is_forgotten_and_told_to_join() {
    let mut mill = mill();
    mill.join("a", 1);
    mill.pass(301_000);
    assert_eq!(mill.core.status().workers, 0);
    mill.beat("a", &[]);
    assert_eq!(mill.unknown, ["a"]);
}

#[test]
fn tasks_of_a_group_without_workers_wait() {
    let other = DispatcherPlan {
        group: "other".into(),
        ..dispatcher()
    };
    let mut mill = Draft::default()
        .work("a", "in", &[])
        .work_as("b", "in2", &[], other)
        .mill();
    mill.join("w", 1);
    mill.block("in2", 0);
    mill.block("in", 9);
    assert_eq!(mill.news(), ["w a/9/0#1"]);
    assert!(!mill.core.is_idle());
}

#[test]
fn a_worker_whose_return_was_not_heard_is_given_work_after_its_heartbeat() {
    let mut mill = Draft::default().work("prove", "in", &[]).mill();
    mill.join("w", 1);
    mill.tell(WorkerEvent::Retire { worker: "w".into() });
    mill.block("in", 0);
    assert!(mill.news().is_empty());
    // The worker died and came back; its Join was lost on the way, its heartbeats are not.
    mill.beat("w", &[]);
    assert_eq!(mill.news(), ["w prove/0/0#1"]);
}
