//! Retries, the dead-letter queue, and operators' decisions about it.

use proofmill_orchestrator::conversation::Reply;
use proofmill_orchestrator::core::TASK_MAX;
use proofmill_orchestrator::record::Failure;

use crate::support::{Draft, Mill, dispatcher, id};

fn mill() -> Mill {
    let mut mill = Draft::default()
        .work("prove", "in", &["out"])
        .sequence("out")
        .mill();
    mill.join("w", 1);
    mill
}

#[test]
fn retries_wait_longer_each_time_and_then_the_task_dies_with_its_attempts() {
    let mut mill = mill();
    mill.block("in", 0);
    for (attempt, wait) in [(1, 1_000), (2, 2_000)] {
        assert_eq!(mill.news(), [format!("w prove/0/0#{attempt}")]);
        mill.fail("w", "prove/0/0", attempt, false);
        mill.pass(wait - 1);
        assert!(
            mill.news().is_empty(),
            "attempt {attempt} waits for {wait} ms"
        );
        mill.pass(1);
        mill.beat("w", &[]);
    }
    mill.fail("w", "prove/0/0", 3, false);
    let dead = mill.core.dead_letter(&id("prove/0/0")).expect("dead");
    let numbers: Vec<u32> = dead.attempts.iter().map(|attempt| attempt.number).collect();
    assert_eq!(numbers, [1, 2, 3]);
    assert_eq!(dead.reason, "3 attempts failed; last: no luck");
    assert!(!mill.has_key("try.prove.0.0"));
}

#[test]
fn a_permanent_failure_goes_at_once() {
    let mut mill = mill();
    mill.block("in", 0);
    mill.fail("w", "prove/0/0", 1, true);
    let dead = mill.core.dead_letter(&id("prove/0/0")).expect("dead");
    assert_eq!(
        (dead.attempts.len(), &*dead.reason),
        (1, "permanent failure: no luck")
    );
}

#[test]
fn a_retried_dead_letter_begins_anew_and_a_dropped_one_is_finished() {
    let mut mill = mill();
    mill.block("in", 0);
    mill.fail("w", "prove/0/0", 1, true);
    mill.news();
    assert_eq!(mill.retry("prove/0/0"), Some(Reply::Accepted));
    assert_eq!(mill.news(), ["w prove/0/0#1"]);
    assert_eq!(mill.retry("prove/0/0"), Some(Reply::NotFound));
    mill.fail("w", "prove/0/0", 1, true);
    assert_eq!(mill.drop_dead("prove/0/0"), Some(Reply::Accepted));
    assert_eq!(mill.drop_dead("prove/0/0"), Some(Reply::NotFound));
    // A source that brings the message again does not revive it.
    let same = Some(true);
    assert_eq!(mill.block("in", 0), Some(Reply::Duplicate { same }));
    assert!(mill.core.has_finished(&id("prove/0/0"), 0));
    assert_eq!(mill.core.status().stages[0].counters.dropped, 1);
}

#[test]
fn another_content_replaces_a_dead_letter_and_the_same_does_not() {
    let mut mill = mill();
    mill.block("in", 0);
    assert!(matches!(
        mill.send("in", Mill::message(0, 0, "[1]")),
        Some(Reply::Differs { .. })
    ));
    mill.fail("w", "prove/0/0", 1, true);
    assert!(matches!(mill.block("in", 0), Some(Reply::IsDead { .. })));
    assert_eq!(
        mill.send("in", Mill::message(0, 0, "[1]")),
        Some(Reply::Accepted)
    );
    assert_eq!(
        (mill.core.status().dead, mill.has_key("dead.prove.0.0")),
        (0, false)
    );
}

#[test]
fn a_result_that_the_log_cannot_take_kills_its_task_only() {
    let mut mill = mill();
    mill.block("in", 0);
    mill.block("in", 1);
    let elements: Vec<Option<usize>> = (0..2_000).map(Some).collect();
    mill.complete_with("w", "prove/0/0", 1, &elements, "{}");
    let reason = &mill
        .core
        .dead_letter(&id("prove/0/0"))
        .expect("dead")
        .reason;
    assert!(reason.contains("2002 records"), "{reason}");
    mill.complete_with("w", "prove/1/0", 1, &[Some(1), Some(1)], "{}");
    let reason = &mill
        .core
        .dead_letter(&id("prove/1/0"))
        .expect("dead")
        .reason;
    assert!(reason.contains("same position"), "{reason}");
}

#[test]
fn a_message_too_large_for_a_record_is_refused() {
    let mut mill = mill();
    let json = format!("\"{}\"", "x".repeat(TASK_MAX));
    assert!(matches!(
        mill.send("in", Mill::message(0, 0, &json)),
        Some(Reply::Invalid { .. })
    ));
    assert!(mill.core.is_idle());
}

#[test]
fn the_output_of_many_attempts_fits_beside_a_large_task() {
    let plan = proofmill_orchestrator::plan::DispatcherPlan {
        r_max: 400,
        ..dispatcher()
    };
    let mut mill = Draft::default().work_as("prove", "in", &[], plan).mill();
    mill.join("w", 1);
    let json = format!("\"{}\"", "x".repeat(TASK_MAX - 1_000));
    assert_eq!(
        mill.send("in", Mill::message(0, 0, &json)),
        Some(Reply::Accepted)
    );
    for attempt in 1..=401 {
        let failure = Failure {
            stderr: format!("{}{attempt}", "é".repeat(4_000)),
            ..Failure::retryable("é".repeat(1_000))
        };
        let lease = mill.lease("w", "prove/0/0", attempt);
        mill.tell(proofmill_orchestrator::conversation::WorkerEvent::Fail(
            proofmill_orchestrator::conversation::WorkerFailure {
                worker: "w".into(),
                lease,
                failure,
            },
        ));
        mill.pass(60_000);
        mill.beat("w", &[]);
    }
    let dead = mill.core.dead_letter(&id("prove/0/0")).expect("dead");
    let last = dead.attempts.last().expect("attempts");
    assert_eq!(last.number, 401);
    assert!(last.failure.stderr.ends_with("401"));
}

#[test]
fn a_resubmission_waits_for_what_an_operator_has_just_decided() {
    let decided = |decide: fn(&mut Mill, &str) -> Option<Reply>| {
        let mut mill = mill();
        mill.block("in", 0);
        mill.fail("w", "prove/0/0", 1, true);
        mill.news();
        // The log is slow: the decision is on its way when the resubmission comes.
        mill.on_the_way = Some(Vec::new());
        assert_eq!(decide(&mut mill, "prove/0/0"), None);
        let resubmitted = mill.begin("in", Mill::message(0, 0, "{\"mended\":true}"));
        mill.arrive();
        (mill.reply(resubmitted), mill.has_key("task.prove.0.0"))
    };
    // The dead letter was put back unchanged; the corrected message must not be treated as its duplicate.
    let task = id("prove/0/0");
    assert_eq!(decided(Mill::retry), (Some(Reply::Differs { task }), true));
    // It was dropped, so the block is finished: a task accepted now would never run.
    let same = Some(false);
    let reply = Some(Reply::Duplicate { same });
    assert_eq!(decided(Mill::drop_dead), (reply, false));
}
