//! False results: the worker that sent one, and every other one of its user, gets no further task.

use proofmill_orchestrator::core::{Event, FalseResult};

use crate::support::{Draft, Mill};

fn mill() -> Mill {
    Draft::default().work("prove", "in", &[]).mill()
}

fn lie(mill: &mut Mill, worker: &str, task: &str, attempt: u32) {
    let lease = mill.lease(worker, task, attempt);
    mill.tell(Event::FalseResult(FalseResult {
        worker: worker.into(),
        lease,
        why: "it is of something else".to_owned(),
    }));
}

#[test]
fn a_liars_tasks_go_to_others_at_once_and_only_the_false_one_counts_as_an_attempt() {
    let mut mill = mill();
    mill.join("a@prove.mallory.1", 2);
    mill.block("in", 0);
    mill.block("in", 1);
    mill.join("b@prove.alice.1", 2);
    lie(&mut mill, "a@prove.mallory.1", "prove/0/0", 1);
    assert_eq!(
        mill.news(),
        [
            "a@prove.mallory.1 prove/0/0#1",
            "a@prove.mallory.1 prove/1/0#1",
            "b@prove.alice.1 prove/1/0#1",
            "b@prove.alice.1 prove/0/0#2",
        ]
    );
    let cancelled = mill.cancelled.iter();
    let cancelled: Vec<String> = cancelled
        .map(|(worker, lease)| format!("{worker} {}", lease.task.block))
        .collect();
    assert_eq!(cancelled, ["a@prove.mallory.1 1"]);
    let status = mill.core.status();
    assert_eq!(&*status.distrusted[0].user, "prove.mallory");
    assert_eq!(&*status.distrusted[0].reason, "it is of something else");
}

#[test]
fn a_liar_gets_nothing_under_another_name_and_its_results_do_not_count() {
    let mut mill = mill();
    mill.join("a@prove.mallory.1", 2);
    mill.block("in", 0);
    mill.block("in", 1);
    lie(&mut mill, "a@prove.mallory.1", "prove/0/0", 1);
    mill.complete("a@prove.mallory.1", "prove/1/0", 1);
    mill.join("c@prove.mallory.2", 4);
    mill.pass(1_000);
    assert_eq!(mill.news().len(), 2, "its first two tasks");
    assert_eq!(mill.core.status().live, 2);
    mill.join("b@prove.alice.1", 2);
    assert_eq!(
        mill.news(),
        ["b@prove.alice.1 prove/0/0#2", "b@prove.alice.1 prove/1/0#1"]
    );
    mill.complete("b@prove.alice.1", "prove/0/0", 2);
    mill.complete("b@prove.alice.1", "prove/1/0", 1);
    assert_eq!(mill.core.status().live, 0);
}

#[test]
fn a_false_result_of_a_task_that_has_ended_changes_nothing() {
    let mut mill = mill();
    mill.join("a", 1);
    mill.block("in", 0);
    let lease = mill.lease("a", "prove/0/0", 1);
    mill.complete("a", "prove/0/0", 1);
    mill.tell(Event::FalseResult(FalseResult {
        worker: "a".into(),
        lease,
        why: "too late".to_owned(),
    }));
    assert_eq!(mill.core.status().distrusted, []);
    mill.block("in", 1);
    assert_eq!(mill.news(), ["a prove/0/0#1", "a prove/1/0#1"]);
}
