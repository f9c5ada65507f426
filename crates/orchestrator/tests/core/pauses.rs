//! Pauses of stages and sources, drains of workers, and attempts that do not wait for their backoff.

use std::time::Duration;

use proofmill_orchestrator::conversation::{Reply, Request, WorkerEvent};
use proofmill_orchestrator::core::{LowerBlock, WaitReason, WorkerLack};
use proofmill_orchestrator::grouping::Sequential;
use proofmill_orchestrator::record::PauseKind::{self, Source, Stage, Worker};

use crate::support::{Draft, Mill, id};

fn mill() -> Mill {
    Draft::default()
        .work("prove", "in", &["proofs"])
        .sequence("proofs")
        .mill()
}

fn pause(mill: &mut Mill, kind: PauseKind, name: &str) -> Option<Reply> {
    mill.ask(Request::Pause {
        kind,
        name: name.into(),
        by: "alice".into(),
    })
}

fn resume(mill: &mut Mill, kind: PauseKind, name: &str) -> Option<Reply> {
    let name = name.into();
    mill.ask(Request::Resume { kind, name })
}

fn reason(mill: &Mill, block: u64) -> WaitReason {
    let [only] = <[_; 1]>::try_from(mill.core.block(block).live).expect("one live task");
    only.waits_for
}

fn assigned(mill: &mut Mill) -> Vec<String> {
    let assigned = std::mem::take(&mut mill.assigned).into_iter();
    assigned.map(|(_, task, _)| task.to_string()).collect()
}

#[test]
fn a_paused_stage_leases_nothing_over_a_restart() {
    let mut mill = mill();
    mill.join("a", 2);
    mill.block("in", 0);
    assert_eq!(assigned(&mut mill), ["prove/0/0"]);
    assert_eq!(pause(&mut mill, Stage, "prove"), Some(Reply::Accepted));
    mill.block("in", 1);
    // Work that had begun goes on.
    mill.complete("a", "prove/0/0", 1);
    assert_eq!(mill.emitted.len(), 1);
    mill.pass(2_000);
    let words = "stage \"prove\" to be resumed: alice paused it 2.0 s ago";
    assert_eq!(reason(&mill, 1).to_string(), words);
    // An operator will resume it, so the mill does not end.
    assert!(!mill.core.is_idle());

    mill.restart(Duration::ZERO);
    mill.join("a", 2);
    assert_eq!(assigned(&mut mill), Vec::<String>::new());
    assert!(matches!(reason(&mill, 1), WaitReason::StagePaused { by, .. } if *by == *"alice"));
    assert_eq!(resume(&mut mill, Stage, "prove"), Some(Reply::Accepted));
    assert_eq!(assigned(&mut mill), ["prove/1/0"]);
    assert!(mill.core.status().pauses.is_empty() && !mill.has_key("pause.stage.prove"));
}

#[test]
fn a_paused_sequencer_emits_nothing() {
    let mut mill = mill();
    mill.join("a", 1);
    pause(&mut mill, Stage, "emit");
    for block in [0, 1] {
        mill.block("in", block);
        mill.complete("a", &format!("prove/{block}/0"), 1);
    }
    assert!(mill.emitted.is_empty() && !mill.core.is_idle());
    assert!(matches!(reason(&mill, 0), WaitReason::StagePaused { .. }));
    let lower = LowerBlock::Live {
        task: "emit/0/0".into(),
    };
    assert!(matches!(reason(&mill, 1), WaitReason::LowerBlock { state, .. } if state == lower));
    resume(&mut mill, Stage, "emit");
    assert_eq!(mill.emitted, [id("emit/0/0"), id("emit/1/0")]);
}

#[test]
fn messages_of_a_paused_source_wait_and_then_come_in_order() {
    let mut mill = mill();
    mill.join("a", 9);
    // Block 1 comes from outside and waits for block 0.
    pause(&mut mill, Source, "outside");
    let held = [3, 2].map(|block| mill.begin("in", Mill::message(block, block, "{}")));
    assert_eq!(held.map(|request| mill.reply(request)), [None, None]);
    assert_eq!(mill.core.status().producers_waiting, 2);
    assert!(mill.tasks().is_empty());
    resume(&mut mill, Source, "outside");
    let replies = held.map(|request| mill.reply(request));
    assert_eq!(replies, [Some(Reply::Accepted), Some(Reply::Accepted)]);
    assert_eq!(assigned(&mut mill), ["prove/2/0", "prove/3/0"]);

    // Another source's pause is no matter of theirs, and the missing block says why it is missing.
    pause(&mut mill, Source, "blocks");
    assert_eq!(mill.block("in", 4), Some(Reply::Accepted));
    mill.complete("a", "prove/2/0", 1);
    let paused = LowerBlock::SourcePaused {
        source: "blocks".into(),
        by: "alice".into(),
    };
    let WaitReason::LowerBlock { next: 0, state } = reason(&mill, 2) else {
        panic!("{:?}", reason(&mill, 2));
    };
    assert_eq!(state, paused);
}

#[test]
fn messages_that_waited_for_room_wait_for_their_source_once_it_is_paused() {
    let draft = Draft::default().q_max("in", 1);
    let mut mill = draft.work("prove", "in", &[]).mill();
    mill.block("in", 5);
    let parked = mill.begin("in", Mill::message(6, 6, "{}"));
    pause(&mut mill, Source, "outside");
    mill.join("a", 9);
    mill.complete("a", "prove/5/0", 1);
    assert_eq!(mill.reply(parked), None);
    resume(&mut mill, Source, "outside");
    assert_eq!(mill.reply(parked), Some(Reply::Accepted));
}

#[test]
fn a_drained_worker_finishes_and_gets_nothing_until_it_is_resumed_or_leaves() {
    let mut mill = mill();
    mill.join("a", 2);
    mill.block("in", 0);
    assert_eq!(pause(&mut mill, Worker, "a"), Some(Reply::Accepted));
    mill.block("in", 1);
    assert_eq!(assigned(&mut mill), ["prove/0/0"]);
    let drained = WorkerLack::Drained {
        worker: "a".into(),
        by: "alice".into(),
    };
    assert!(matches!(reason(&mill, 1), WaitReason::Worker { lack, .. } if lack == drained));
    mill.complete("a", "prove/0/0", 1);

    // It joins again, also after a restart, and is drained still.
    mill.join("a", 3);
    mill.restart(Duration::ZERO);
    mill.join("a", 3);
    mill.beat("a", &[]);
    assert_eq!(assigned(&mut mill), Vec::<String>::new());
    resume(&mut mill, Worker, "a");
    assert_eq!(assigned(&mut mill), ["prove/1/0"]);

    pause(&mut mill, Worker, "a");
    mill.tell(WorkerEvent::Leave { worker: "a".into() });
    assert!(!mill.has_key("pause.worker.a"));
    mill.join("a", 1);
    assert_eq!(assigned(&mut mill), ["prove/1/0"]);
}

#[test]
fn the_drain_of_a_worker_that_does_not_come_back_is_forgotten() {
    let mut mill = mill();
    mill.join("a", 1);
    pause(&mut mill, Worker, "a");
    mill.restart(Duration::ZERO);
    mill.pass(299_000);
    assert!(mill.has_key("pause.worker.a"));
    mill.pass(2_000);
    assert!(!mill.has_key("pause.worker.a") && mill.core.status().pauses.is_empty());
}

#[test]
fn what_cannot_be_paused_is_said() {
    let draft = Draft::default().collect(
        "pairs",
        &["in"],
        &["paired"],
        Sequential {
            n: 2,
            inputs: vec!["in".into()],
            partial: false,
        },
        None,
        None,
    );
    let mut mill = draft.work("prove", "paired", &[]).mill();
    for (kind, name) in [(Stage, "blocks"), (Source, "prove"), (Worker, "nobody")] {
        assert_eq!(pause(&mut mill, kind, name), Some(Reply::NotFound));
        assert_eq!(resume(&mut mill, kind, name), Some(Reply::NotFound));
    }
    let why = |reply| match reply {
        Some(Reply::Invalid { why }) => why,
        other => panic!("{other:?}"),
    };
    assert!(why(pause(&mut mill, Stage, "pairs")).contains("is a collector"));
    pause(&mut mill, Stage, "prove");
    let again = why(pause(&mut mill, Stage, "prove"));
    assert_eq!(again, "stage prove is paused already, by alice");
}

#[test]
fn a_task_that_backs_off_runs_now() {
    let mut mill = mill();
    mill.join("a", 1);
    mill.block("in", 0);
    mill.fail("a", "prove/0/0", 1, false);
    assigned(&mut mill);
    assert!(matches!(reason(&mill, 0), WaitReason::Backoff { .. }));
    let now = |mill: &mut Mill, task: &str| mill.ask(Request::RunNow(id(task)));
    assert_eq!(now(&mut mill, "prove/0/0"), Some(Reply::Accepted));
    assert_eq!(assigned(&mut mill), ["prove/0/0"]);
    // The end of the former backoff changes nothing.
    mill.pass(5_000);
    let again = now(&mut mill, "prove/0/0");
    assert!(matches!(again, Some(Reply::Invalid { why }) if why.contains("does not wait")));
    assert_eq!(now(&mut mill, "prove/7/0"), Some(Reply::NotFound));
    mill.complete("a", "prove/0/0", 2);
    assert_eq!(mill.emitted, [id("emit/0/0")]);
}

#[test]
fn a_drained_worker_counts_as_paused() {
    let mut mill = mill();
    mill.join("a", 2);
    mill.join("b", 2);
    let states = |mill: &Mill| {
        let group = &mill.core.measures().groups[0];
        (group.idle, group.paused)
    };
    assert_eq!(states(&mill), (2, 0));
    assert_eq!(pause(&mut mill, Worker, "a"), Some(Reply::Accepted));
    assert_eq!(states(&mill), (1, 1));
    assert_eq!(resume(&mut mill, Worker, "a"), Some(Reply::Accepted));
    assert_eq!(states(&mill), (2, 0));
}
