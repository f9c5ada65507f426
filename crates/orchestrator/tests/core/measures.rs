//! Numbers for monitoring: they agree with the tasks, and have bounded labels.

use proofmill_orchestrator::conversation::{Query, QueryAnswer, WorkerEvent};
use proofmill_orchestrator::core::GroupMeasure;
use proofmill_orchestrator::plan::Needs;

use crate::support::{Draft, Mill};

fn mill() -> Mill {
    Draft::default()
        .work("prove", "in", &["proofs"])
        .sequence("proofs")
        .mill()
}

/// The waiting tasks of a mill: `STAGE REASON COUNT`.
fn waits(mill: &Mill) -> Vec<String> {
    let waiting = mill.core.measures().waiting.into_iter();
    waiting
        .map(|it| format!("{} {} {}", it.stage, it.reason, it.tasks))
        .collect()
}

fn group(mill: &Mill) -> GroupMeasure {
    let [only] = <[GroupMeasure; 1]>::try_from(mill.core.measures().groups).expect("one group");
    only
}

fn beat(mill: &mut Mill, worker: &str, paused: Option<&str>, retired: bool) {
    mill.tell(WorkerEvent::Heartbeat {
        worker: worker.into(),
        running: Vec::new(),
        retired,
        paused: paused.map(Into::into),
    });
}

#[test]
fn waiting_tasks_are_counted_by_reason() {
    let mut mill = mill();
    for block in 0..4 {
        mill.block("in", block);
    }
    assert_eq!(waits(&mill), ["prove none_joined 4"]);
    mill.join("a", 1);
    assert_eq!(waits(&mill), ["prove busy 3"], "one of them is leased");
    mill.fail("a", "prove/0/0", 1, false);
    // Its next attempt has to wait, and the worker has taken another.
    assert_eq!(waits(&mill), ["prove busy 2", "prove retry 1"]);
    mill.complete("a", "prove/1/0", 1);
    assert_eq!(
        waits(&mill),
        ["prove busy 1", "prove retry 1", "emit lower_block 1"]
    );
    let total: usize = mill.core.measures().waiting.iter().map(|it| it.tasks).sum();
    let status = mill.core.status();
    assert_eq!(
        total,
        status.stages.iter().map(|it| it.waiting).sum::<usize>()
    );
}

#[test]
fn kinds_of_needs_beyond_a_limit_are_counted_together() {
    let mut mill = mill();
    for block in 0..70 {
        let mut message = Mill::message(block, block, "{}");
        message.needs = Some(Needs {
            labels: [format!("label-{block}")].into(),
            memory: 0,
        });
        mill.send("in", message);
    }
    assert_eq!(waits(&mill), ["prove none_joined 64", "prove other 6"]);
}

#[test]
fn each_worker_is_in_one_state() {
    let mut mill = mill();
    for name in ["a", "b", "c", "d"] {
        mill.join(name, 2);
    }
    mill.block("in", 0);
    beat(&mut mill, "c", Some("no disk space"), false);
    beat(&mut mill, "d", None, true);
    let seen = group(&mill);
    assert_eq!(seen.workers(), 4);
    assert_eq!(
        (seen.idle, seen.working, seen.paused, seen.leaving),
        (1, 1, 1, 1)
    );
    assert_eq!(
        (seen.slots, seen.slots_busy),
        (6, 1),
        "the leaving one takes nothing"
    );
    assert_eq!(
        seen.stages.iter().map(|it| &**it).collect::<Vec<_>>(),
        ["prove"]
    );
}

#[test]
fn answers_are_of_the_time_of_the_question() {
    let mut mill = mill();
    mill.join("a", 2);
    mill.block("in", 7);
    let states = |mill: &Mill| {
        let workers = Query::Workers {
            after: None,
            limit: 10,
        };
        let QueryAnswer::Workers(page) = mill.core.answer(workers) else {
            panic!("not workers");
        };
        let rows = page.rows.into_iter();
        let states = rows.map(|it| (it.state.to_string(), it.silent_ms));
        states.collect::<Vec<_>>()
    };
    assert_eq!(states(&mill), [("working".to_owned(), 0)]);
    // No event comes, not even a heartbeat.
    mill.look_in(60_000);
    assert_eq!(states(&mill), [("silent".to_owned(), 60_000)]);
    let measures = mill.core.measures();
    assert_eq!(measures.oldest[0].oldest_age_ms, 60_000);
    assert_eq!(group(&mill).silent, 1);
}

#[test]
fn the_oldest_task_is_the_one_accepted_first() {
    let mut mill = mill();
    assert!(mill.core.measures().oldest.is_empty());
    mill.block("in", 7);
    mill.pass(2_000);
    mill.block("in", 3);
    let oldest = mill.core.measures().oldest;
    assert_eq!(oldest.len(), 1);
    assert_eq!((oldest[0].lowest_block, oldest[0].oldest_block), (3, 7));
    assert!(oldest[0].oldest_age_ms >= 2_000, "{oldest:?}");
    mill.join("a", 2);
    mill.complete("a", "prove/7/0", 1);
    let oldest = mill.core.measures().oldest;
    assert_eq!((&*oldest[0].stage, oldest[0].oldest_block), ("prove", 3));
    assert_eq!((&*oldest[1].stage, oldest[1].lowest_block), ("emit", 7));
}
