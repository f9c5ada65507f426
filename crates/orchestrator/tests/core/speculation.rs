//! Several workers for one task: the choice of workers, the results that count, and the end of the task.

use std::time::Duration;

use proofmill_orchestrator::conversation::{Reply, Request, Target};
use proofmill_orchestrator::core::{Event, RequestId};
use proofmill_orchestrator::payload::Payload;
use proofmill_orchestrator::plan::{DispatcherPlan, Distinct, Hedge, Speculation};

use crate::support::{Draft, Mill, dispatcher, id};

fn mill(copies: usize, accept: usize) -> Mill {
    with(Speculation {
        copies,
        accept,
        ..Speculation::default()
    })
}

fn with(speculation: Speculation) -> Mill {
    let plan = DispatcherPlan {
        speculation,
        ..dispatcher()
    };
    Draft::default()
        .work_as("prove", "in", &["proofs"], plan)
        .sequence("proofs")
        .mill()
}

fn cancel(mill: &mut Mill, target: Target) -> Option<Reply> {
    let request = RequestId(1_000_000);
    mill.tell(Event::Request {
        id: request,
        request: Request::Cancel(target),
    });
    mill.reply(request)
}

fn told_to_stop(mill: &mut Mill) -> Vec<String> {
    let told = mill.cancelled.drain(..);
    told.map(|(worker, lease)| format!("{worker} {}#{}", lease.task, lease.attempt))
        .collect()
}

#[test]
fn the_head_of_the_chain_gets_its_copies_first_and_the_first_result_wins() {
    let mut mill = mill(2, 1);
    mill.join("a", 2);
    mill.block("in", 5);
    mill.block("in", 4);
    assert_eq!(mill.news(), ["a prove/5/0#1", "a prove/4/0#1"]);
    mill.join("b", 1);
    assert_eq!(mill.news(), ["b prove/4/0#1"]);
    mill.complete("b", "prove/4/0", 1);
    assert_eq!(told_to_stop(&mut mill), ["a prove/4/0#1"]);
    assert_eq!(mill.news(), ["b prove/5/0#1"]);
    mill.complete("a", "prove/5/0", 1);
    assert_eq!(told_to_stop(&mut mill), ["b prove/5/0#1"]);
    mill.complete("b", "prove/5/0", 1);
    let counters = mill.core.status().stages[0].counters;
    assert_eq!((counters.completed, counters.stale_results), (2, 1));
}

#[test]
fn results_before_the_last_outlive_the_coordinator() {
    let mut mill = mill(3, 3);
    for worker in ["c", "b", "a"] {
        mill.join(worker, 1);
    }
    mill.block("in", 0);
    assert_eq!(mill.news().len(), 3);
    mill.complete_with("c", "prove/0/0", 1, &[None], "3");
    mill.complete_with("c", "prove/0/0", 1, &[None], "4");
    assert!(mill.has_key("part.prove.0.0.c"));
    mill.pass(100);
    mill.restart(Duration::ZERO);
    let views = mill.core.tasks(|_| true);
    assert_eq!(views[0].results, ["c".into()]);
    mill.join("c", 1);
    assert_eq!(mill.news(), [] as [&str; 0], "it has completed this one");
    mill.join("b", 1);
    mill.join("a", 1);
    // Two attempts had begun when the process ended.
    assert_eq!(mill.news(), ["b prove/0/0#3", "a prove/0/0#3"]);
    mill.complete_with("b", "prove/0/0", 3, &[None], "2");
    mill.complete_with("a", "prove/0/0", 3, &[None], "1");
    let emitted = mill.core.tasks(|record| &*record.id.stage == "emit");
    let Payload::Group { by_queue, members } = &emitted[0].record.payload else {
        panic!("a group");
    };
    let names: Vec<&str> = members.iter().map(|(name, _)| &**name).collect();
    let payloads: Vec<Payload> = members.iter().map(|(_, payload)| payload.clone()).collect();
    assert!(!by_queue);
    assert_eq!(names, ["a", "b", "c"]);
    assert_eq!(payloads, ["1", "2", "3"].map(Payload::json));
    assert!(!mill.has_key("part.prove.0.0.c") && !mill.has_key("part.prove.0.0.b"));
}

#[test]
fn a_result_of_a_second_worker_of_a_user_is_refused_and_its_lease_ends() {
    let mut mill = mill(2, 2);
    let [a, b, c] = ["a@prove.eve.1", "b@prove.eve.2", "c@prove.kim.1"];
    mill.join(a, 1);
    mill.block("in", 0);
    mill.pass(200_000);
    // The first has been silent for too long; the second of the same user may have the task now.
    mill.join(b, 1);
    assert_eq!(
        mill.news().pop().expect("a lease"),
        format!("{b} prove/0/0#2")
    );
    mill.complete(a, "prove/0/0", 1);
    let lease = mill.lease(b, "prove/0/0", 2);
    mill.tell(Event::ReportWaits {
        worker: b.into(),
        lease,
        is_result: true,
    });
    mill.complete(b, "prove/0/0", 2);
    assert_eq!(mill.core.status().stages[0].counters.stale_results, 1);
    // Another user's worker gets what the refused one had.
    mill.join(c, 1);
    assert_eq!(mill.news(), [format!("{c} prove/0/0#2")]);
    mill.complete(c, "prove/0/0", 2);
    assert_eq!(mill.core.status().stages[0].counters.completed, 1);
}

#[test]
fn provers_are_told_apart_by_their_label() {
    let mut mill = with(Speculation {
        copies: 2,
        accept: 2,
        distinct: Distinct::Label("prover-".into()),
        hedge: None,
    });
    mill.join("plain", 1);
    mill.join_with("one", 1, &["prover-x"], 0);
    mill.join_with("two", 1, &["prover-x"], 0);
    mill.block("in", 0);
    assert_eq!(mill.news(), ["one prove/0/0#1"]);
    mill.join_with("three", 1, &["prover-y"], 0);
    assert_eq!(mill.news(), ["three prove/0/0#1"]);
    mill.complete("two", "prove/0/0", 1);
    mill.complete("one", "prove/0/0", 1);
    assert_eq!(
        mill.core.status().stages[0].counters.completed,
        0,
        "one prover"
    );
    mill.complete("three", "prove/0/0", 1);
    assert_eq!(mill.core.status().stages[0].counters.completed, 1);
}

#[test]
fn copies_fail_on_their_own() {
    let mut mill = mill(3, 2);
    for worker in ["a", "b", "c"] {
        mill.join(worker, 1);
    }
    mill.block("in", 0);
    mill.news();
    mill.fail("a", "prove/0/0", 1, true);
    mill.pass(10_000);
    assert_eq!(
        mill.news(),
        [] as [&str; 0],
        "who failed for good is not replaced"
    );
    mill.fail("b", "prove/0/0", 1, false);
    mill.pass(10_000);
    assert_eq!(mill.news(), ["b prove/0/0#3"]);
    mill.fail("c", "prove/0/0", 1, true);
    assert_eq!(told_to_stop(&mut mill), ["b prove/0/0#3"]);
    assert_eq!(mill.core.status().dead, 1);
    let dead = mill.core.dead_letter(&id("prove/0/0")).expect("it is dead");
    assert_eq!(dead.attempts.len(), 3);
    assert_eq!(dead.reason, "permanent failure: no luck");
}

fn hedging() -> Mill {
    let mut mill = with(Speculation {
        hedge: Some(Hedge {
            percentile: 90,
            min: Duration::from_millis(100),
        }),
        ..Speculation::default()
    });
    mill.join("a", 1);
    for block in 0..8 {
        mill.block("in", block);
        mill.pass(150 + 10 * block);
        mill.complete("a", &format!("prove/{block}/0"), 1);
    }
    mill.news();
    mill
}

#[test]
fn a_task_that_lasts_long_is_given_to_one_more_worker() {
    let mut mill = hedging();
    mill.block("in", 8);
    mill.join("b", 1);
    mill.join("c", 1);
    mill.pass(219);
    assert_eq!(mill.news(), ["a prove/8/0#1"]);
    mill.pass(1);
    assert_eq!(
        mill.news(),
        ["b prove/8/0#1"],
        "P90 of eight runs is the longest"
    );
    mill.beat("a", &[("prove/8/0", 1)]);
    mill.pass(1_000);
    assert_eq!(mill.news(), [] as [&str; 0], "one at a time");
    mill.fail("a", "prove/8/0", 1, true);
    assert_eq!(mill.core.status().dead, 0, "the other goes on");
    mill.complete("b", "prove/8/0", 1);
    let counters = mill.core.status().stages[0].counters;
    assert_eq!((counters.hedged, counters.completed), (1, 9));
}

#[test]
fn what_is_known_of_durations_outlives_the_coordinator() {
    let mut mill = hedging();
    mill.block("in", 8);
    mill.restart(Duration::ZERO);
    mill.join("a", 1);
    mill.beat("a", &[("prove/8/0", 1)]);
    mill.join("b", 1);
    assert_eq!(mill.news(), ["a prove/8/0#1"]);
    mill.pass(219);
    assert_eq!(mill.news(), [] as [&str; 0]);
    mill.pass(1);
    assert_eq!(mill.news(), ["b prove/8/0#1"]);
}

#[test]
fn what_waits_goes_before_a_hedge() {
    let mut mill = hedging();
    mill.block("in", 8);
    mill.pass(500);
    mill.block("in", 9);
    mill.join("b", 1);
    assert_eq!(mill.news(), ["a prove/8/0#1", "b prove/9/0#1"]);
    mill.complete("b", "prove/9/0", 1);
    assert_eq!(mill.news(), ["b prove/8/0#1"]);
}

#[test]
fn an_operator_cancels_a_task_a_block_or_all() {
    let mut mill = mill(1, 1);
    mill.join("a", 1);
    for block in 0..4 {
        mill.block("in", block);
    }
    mill.complete("a", "prove/0/0", 1);
    assert_eq!(mill.news(), ["a prove/0/0#1", "a prove/1/0#1"]);
    assert_eq!(cancel(&mut mill, Target::Block(1)), Some(Reply::Accepted));
    assert_eq!(told_to_stop(&mut mill), ["a prove/1/0#1"]);
    assert_eq!(mill.news(), ["a prove/2/0#1"]);
    assert_eq!(cancel(&mut mill, Target::Block(1)), Some(Reply::NotFound));
    assert_eq!(
        cancel(&mut mill, Target::Task(id("prove/3/0"))),
        Some(Reply::Accepted)
    );
    assert_eq!(cancel(&mut mill, Target::All), Some(Reply::Accepted));
    assert_eq!(mill.core.status().stages[0].counters.cancelled, 3);
    let reasons: Vec<_> = mill.core.dead_letters().map(|dead| &*dead.reason).collect();
    assert_eq!(reasons, ["cancelled by an operator"; 3]);
    assert_eq!(mill.retry("prove/2/0"), Some(Reply::Accepted));
    assert_eq!(mill.news(), ["a prove/2/0#1"]);
}

#[test]
fn what_is_on_its_way_when_its_block_is_cancelled_is_cancelled_too() {
    let mut mill = mill(1, 1);
    mill.join("a", 1);
    mill.block("in", 1);
    mill.on_the_way = Some(Vec::new());
    mill.complete("a", "prove/1/0", 1);
    assert_eq!(cancel(&mut mill, Target::Block(1)), None);
    mill.arrive();
    assert_eq!(mill.reply(RequestId(1_000_000)), Some(Reply::Accepted));
    assert_eq!(mill.core.status().live, 0);
    assert!(mill.core.dead_letter(&id("emit/1/0")).is_some());
}
