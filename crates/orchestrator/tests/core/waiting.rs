//! The reason why a task waits: each state of a task has one, and it names what would move the task.

use std::collections::BTreeSet;
use std::time::Duration;

use proofmill_orchestrator::conversation::WorkerEvent;
use proofmill_orchestrator::core::{Event, FalseResult, LowerBlock, WaitReason, WorkerLack};
use proofmill_orchestrator::grouping::{Expected, Match, Range, Sequential};
use proofmill_orchestrator::plan::{DispatcherPlan, Needs, Speculation};

use crate::support::{Draft, Mill, dispatcher};

fn mill() -> Mill {
    Draft::default()
        .work("prove", "in", &["proofs"])
        .sequence("proofs")
        .mill()
}

/// Reasons of the block's live tasks, by stage and part.
fn reasons(mill: &Mill, block: u64) -> Vec<WaitReason> {
    let live = mill.core.block(block).live.into_iter();
    live.map(|step| step.waits_for).collect()
}

fn reason(mill: &Mill, block: u64) -> WaitReason {
    let [only] = <[WaitReason; 1]>::try_from(reasons(mill, block)).expect("one live task");
    only
}

fn lack(mill: &Mill, block: u64) -> WorkerLack {
    match reason(mill, block) {
        WaitReason::Worker { group, lack } => {
            assert_eq!(&*group, "g");
            lack
        }
        other => panic!("{other:?}"),
    }
}

fn beat(mill: &mut Mill, worker: &str, paused: Option<&str>) {
    mill.tell(WorkerEvent::Heartbeat {
        worker: worker.into(),
        running: Vec::new(),
        retired: false,
        paused: paused.map(Into::into),
    });
}

#[test]
fn what_a_group_lacks_in_workers() {
    let mut mill = mill();
    let mut heavy = Mill::message(1, 1, "{}");
    heavy.needs = Some(Needs {
        labels: ["gpu".to_owned(), "big".to_owned()].into(),
        memory: 8 << 30,
    });
    mill.send("in", heavy);
    assert_eq!(lack(&mill, 1), WorkerLack::NoneJoined);
    mill.join_with("a", 1, &["big"], 1 << 30);
    let labels = |labels: &[&str], workers| WorkerLack::Labels {
        labels: labels.iter().map(|it| (*it).to_owned()).collect(),
        workers,
    };
    assert_eq!(lack(&mill, 1), labels(&["gpu"], 1));
    mill.join_with("b", 1, &["gpu"], 1 << 30);
    assert_eq!(lack(&mill, 1), labels(&["big", "gpu"], 2));
    mill.join_with("c", 1, &["big", "gpu"], 4 << 30);
    let memory = WorkerLack::Memory {
        needs: 8 << 30,
        most: 4 << 30,
    };
    assert_eq!(lack(&mill, 1), memory);
    assert_eq!(
        reason(&mill, 1).to_string(),
        "a worker of group \"g\" with 8.0 GiB of memory: the most that one offers is 4.0 GiB"
    );
}

#[test]
fn what_keeps_workers_from_a_task() {
    let mut mill = mill();
    mill.join("a@prove.mallory.1", 1);
    let a = "a@prove.mallory.1";
    mill.block("in", 0);
    mill.block("in", 1);
    assert!(matches!(reason(&mill, 0), WaitReason::Running { workers, .. } if *workers[0] == *a));
    assert_eq!(lack(&mill, 1), WorkerLack::Busy { workers: 1 });

    // The one that is likely to pass first is named: b is paused, a busy.
    mill.join("b", 1);
    mill.complete("b", "prove/1/0", 1);
    beat(&mut mill, "b", Some("no disk space"));
    mill.block("in", 2);
    assert_eq!(lack(&mill, 2), WorkerLack::Busy { workers: 2 });
    let lease = mill.lease(a, "prove/0/0", 1);
    mill.tell(Event::FalseResult(FalseResult {
        worker: a.into(),
        lease,
        why: "it is of something else".to_owned(),
    }));
    let paused = WorkerLack::Paused {
        worker: "b".into(),
        reason: "no disk space".into(),
    };
    assert_eq!(lack(&mill, 2), paused);
    mill.tell(WorkerEvent::Leave { worker: "b".into() });
    let distrusted = WorkerLack::Distrusted { worker: a.into() };
    assert_eq!(lack(&mill, 2), distrusted);

    mill.join("c", 0);
    mill.tell(WorkerEvent::Retire { worker: "c".into() });
    assert_eq!(lack(&mill, 2), WorkerLack::Leaving { workers: 2 });
}

#[test]
fn a_worker_that_is_not_heard_of_gets_nothing() {
    let mut mill = mill();
    mill.join("a", 1);
    mill.pass(40_000);
    mill.block("in", 0);
    let silent = WorkerLack::Silent {
        worker: "a".into(),
        for_ms: 40_000,
    };
    assert_eq!(lack(&mill, 0), silent);
    beat(&mut mill, "a", None);
    assert!(matches!(reason(&mill, 0), WaitReason::Running { .. }));
}

#[test]
fn a_worker_that_failed_a_task_for_good_does_not_get_it_again() {
    let plan = DispatcherPlan {
        speculation: Speculation {
            copies: 3,
            accept: 2,
            ..Speculation::default()
        },
        ..dispatcher()
    };
    let mut mill = Draft::default()
        .work_as("prove", "in", &["proofs"], plan)
        .sequence("proofs")
        .mill();
    mill.join("a", 1);
    mill.block("in", 0);
    mill.fail("a", "prove/0/0", 1, true);
    mill.pass(1_000);
    let failed = |failed| WorkerLack::Excluded {
        worker: "a".into(),
        failed,
    };
    assert_eq!(lack(&mill, 0), failed(true));
    mill.block("in", 1);
    mill.complete("a", "prove/1/0", 1);
    assert_eq!(
        lack(&mill, 1),
        failed(false),
        "two results of different workers"
    );
    mill.join("b", 1);
    let running = reason(&mill, 0);
    assert_eq!(running.to_string(), "its result, from b; 0 of 2 have come");
}

#[test]
fn failures_back_off() {
    let mut mill = mill();
    mill.join("a", 1);
    mill.block("in", 0);
    mill.fail("a", "prove/0/0", 1, false);
    mill.pass(400);
    let WaitReason::Backoff {
        failed,
        left_ms,
        last,
        ..
    } = reason(&mill, 0)
    else {
        panic!("{:?}", reason(&mill, 0));
    };
    assert_eq!((failed, left_ms), (1, 600));
    assert!(last.contains("no luck"), "{last}");
}

#[test]
fn a_full_queue_a_drain_and_a_restart_hold_everything() {
    let packers = DispatcherPlan {
        group: "packers".into(),
        ..dispatcher()
    };
    let mut mill = Draft::default()
        .q_max("proofs", 1)
        .work("prove", "in", &["proofs"])
        .work_as("pack", "proofs", &["packed"], packers)
        .sequence("packed")
        .mill();
    mill.join("a", 1);
    mill.block("in", 0);
    mill.block("in", 1);
    mill.block("in", 2);
    mill.complete("a", "prove/0/0", 1);
    let all: BTreeSet<String> = (0..3)
        .flat_map(|block| reasons(&mill, block))
        .map(|reason| reason.to_string())
        .collect();
    assert!(
        all.contains("room in queue \"proofs\", which holds 1 messages"),
        "{all:?}"
    );
    mill.restart(Duration::from_secs(5));
    assert_eq!(reason(&mill, 2), WaitReason::Restarting { left_ms: 5_000 });
    mill.pass(6_000);
    mill.tell(Event::Drain);
    assert_eq!(reason(&mill, 2), WaitReason::Draining);
}

#[test]
fn blocks_wait_for_lower_ones_which_are_named() {
    let mut mill = mill();
    mill.join("a", 1);
    mill.block("in", 1);
    mill.complete("a", "prove/1/0", 1);
    let lower = |mill: &Mill| match reason(mill, 1) {
        WaitReason::LowerBlock { next: 0, state } => state,
        other => panic!("{other:?}"),
    };
    assert_eq!(lower(&mill), LowerBlock::NotSubmitted);
    mill.block("in", 0);
    let task: std::sync::Arc<str> = "prove/0/0".into();
    assert_eq!(lower(&mill), LowerBlock::Live { task: task.clone() });
    mill.fail("a", "prove/0/0", 1, true);
    assert_eq!(lower(&mill), LowerBlock::Dead { task });
    assert_eq!(
        reason(&mill, 1).to_string(),
        "block 0, the next to be emitted: prove/0/0 is in the dead-letter queue"
    );
    mill.retry("prove/0/0");
    mill.complete("a", "prove/0/0", 1);
    assert_eq!(reason(&mill, 0), WaitReason::Sinks);
}

#[test]
fn strategies_say_what_a_group_lacks() {
    let per_queue = Match {
        expected: Expected::PerQueue([("left".into(), 1), ("right".into(), 2)].into()),
        partial: false,
    };
    let mut mill = Draft::default()
        .collect(
            "join",
            &["left", "right"],
            &["out"],
            per_queue,
            Some("/g"),
            None,
        )
        .sequence("out")
        .mill();
    mill.send("right", Mill::message(3, 3, "{\"g\":\"x\"}"));
    assert_eq!(
        reason(&mill, 3).to_string(),
        "the other messages of group \"x\": 1 of 1 of queue \"left\" and 1 of 2 of queue \"right\""
    );

    let four = Sequential {
        n: 4,
        inputs: vec!["in".into()],
        partial: false,
    };
    let mut mill = Draft::default()
        .collect("join", &["in"], &["out"], four, None, None)
        .sequence("out")
        .mill();
    mill.send("in", Mill::message(4, 5, "{}"));
    mill.send("in", Mill::message(7, 7, "{}"));
    let said = reason(&mill, 7).to_string();
    assert!(said.ends_with(": block 6 of queue \"in\""), "{said}");

    let ranges = Range {
        by: "batches".into(),
        others: vec!["proofs".into()],
        partial: false,
    };
    let mut mill = Draft::default()
        .collect("join", &["batches", "proofs"], &["out"], ranges, None, None)
        .sequence("out")
        .mill();
    mill.send("proofs", Mill::message(2, 2, "{}"));
    let said = reason(&mill, 2).to_string();
    assert!(
        said.ends_with("a message of queue \"batches\" that spans block 2"),
        "{said}"
    );
    mill.send("batches", Mill::message(1, 3, "{}"));
    let said = reason(&mill, 1).to_string();
    assert!(said.ends_with(": block 1 of queue \"proofs\""), "{said}");
}

#[test]
fn a_message_whose_host_is_silent_waits_for_its_verdict() {
    let two = Match {
        expected: Expected::Total(2),
        partial: false,
    };
    let mut mill = Draft::default()
        .collect("join", &["in"], &["out"], two, Some("/g"), None)
        .sequence("out")
        .mill();
    mill.host("h");
    mill.send("in", Mill::message(0, 0, "{\"g\":1}"));
    assert_eq!(reason(&mill, 0), WaitReason::Verdict);
}
