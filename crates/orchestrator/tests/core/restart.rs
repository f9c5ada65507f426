//! The state that a new core takes over from the old one.

use std::time::Duration;

use proofmill_orchestrator::conversation::{Reply, WorkerEvent};
use proofmill_orchestrator::grouping::Sequential;
use proofmill_orchestrator::payload::{Encoding, Payload};

use crate::support::{Draft, Mill, id};

/// Milliseconds after which an attempt is recorded as begun.
const MIN_RECORDED: u64 = 100;

#[test]
fn attempts_and_counts_survive() {
    let mut mill = Draft::default()
        .work("prove", "in", &["out"])
        .sequence("out")
        .mill();
    mill.join("w", 2);
    for block in 0..3 {
        mill.block("in", block);
    }
    mill.fail("w", "prove/0/0", 1, false);
    mill.complete("w", "prove/1/0", 1);
    mill.pass(MIN_RECORDED);
    mill.restart(Duration::ZERO);
    let tasks = mill.core.tasks(|task| task.id == id("prove/0/0"));
    assert_eq!(tasks[0].attempts.len(), 1);
    let counters = mill.core.status().stages[0].counters;
    assert_eq!((counters.accepted, counters.completed), (3, 1));
    mill.join("w", 2);
    // An attempt that had begun when the process ended is retried at once; the other task waits for its
    // backoff.
    assert_eq!(mill.news(), ["w prove/2/0#2"]);
    mill.pass(1_000);
    assert_eq!(mill.news(), ["w prove/0/0#2"]);
}

/// A task of milliseconds must cost no record beyond its own.
#[test]
fn a_brief_attempt_is_not_recorded() {
    let mut mill = Draft::default().work("prove", "in", &[]).mill();
    mill.join("w", 3);
    mill.block("in", 0);
    mill.pass(MIN_RECORDED / 2);
    mill.block("in", 1);
    mill.pass(MIN_RECORDED / 2 - 1);
    mill.complete("w", "prove/0/0", 1);
    mill.block("in", 2);
    assert!(!mill.has_key("run.prove.0.0") && !mill.has_key("run.prove.1.0"));
    mill.pass(MIN_RECORDED / 2 + 1);
    assert!(mill.has_key("run.prove.1.0") && !mill.has_key("run.prove.2.0"));
    mill.pass(MIN_RECORDED / 2);
    assert!(mill.has_key("run.prove.2.0"));
    // A restart does not shorten the backoff of a task that failed at once.
    mill.block("in", 3);
    mill.fail("w", "prove/3/0", 1, false);
    assert!(mill.has_key("run.prove.3.0"));
}

#[test]
fn leases_are_adopted_within_the_grace() {
    let mut mill = Draft::default().work("prove", "in", &[]).mill();
    mill.join("w", 1);
    mill.block("in", 0);
    mill.block("in", 1);
    mill.restart(Duration::from_secs(5));
    mill.beat("w", &[("prove/0/0", 1)]);
    assert_eq!(mill.unknown, ["w"]);
    mill.join("w", 1);
    mill.join("x", 1);
    mill.beat("w", &[("prove/0/0", 1)]);
    assert!(mill.news().is_empty());
    mill.pass(5_000);
    assert_eq!(mill.news(), ["x prove/1/0#1"]);
}

/// The program of this task ends the whole process, each time.
#[test]
fn a_task_that_ends_the_process_is_dead_after_r_max() {
    for grace in [Duration::ZERO, Duration::from_secs(1)] {
        let mut mill = Draft::default().work("prove", "in", &[]).mill();
        mill.block("in", 0);
        let mut tried = 0;
        while mill.core.dead_letters().next().is_none() {
            // Longer than a backoff, and shorter than a lease.
            mill.join("w", 1);
            mill.pass(5_000);
            tried += mill.news().len();
            assert!(tried < 10, "it is tried for ever");
            mill.restart(grace);
        }
        // If workers may outlive the coordinator, each has until the next restart to report its attempt.
        assert_eq!(tried, if grace.is_zero() { 3 } else { 4 });
        let dead = mill.core.dead_letters().next().expect("it is there");
        assert_eq!(dead.attempts.len(), 3);
        assert!(
            dead.reason.contains("ended while it did"),
            "{}",
            dead.reason
        );
        assert!(!mill.has_key("run.prove.0.0"));
    }
}

#[test]
fn what_is_handed_back_or_finished_is_no_lost_attempt() {
    let mut mill = Draft::default().work("prove", "in", &[]).mill();
    mill.join("w", 2);
    mill.block("in", 0);
    mill.block("in", 1);
    mill.pass(MIN_RECORDED);
    assert!(mill.has_key("run.prove.0.0") && mill.has_key("run.prove.1.0"));
    mill.tell(WorkerEvent::Retire { worker: "w".into() });
    let (worker, lease) = ("w".into(), mill.lease("w", "prove/0/0", 1));
    mill.tell(WorkerEvent::Release { worker, lease });
    mill.complete("w", "prove/1/0", 1);
    assert!(!mill.has_key("run.prove.0.0") && !mill.has_key("run.prove.1.0"));
    mill.restart(Duration::ZERO);
    mill.join("w", 2);
    assert_eq!(mill.news(), ["w prove/0/0#1"]);
}

#[test]
fn a_worker_that_is_heard_of_after_a_restart_has_lost_no_attempt() {
    let attempts = |mill: &Mill| mill.core.tasks(|_| true)[0].attempts.len();
    let grace = Duration::from_secs(1);
    let begun = || {
        let mut mill = Draft::default().work("prove", "in", &[]).mill();
        mill.join("w", 1);
        mill.block("in", 0);
        mill.pass(MIN_RECORDED);
        mill.restart(grace);
        mill
    };
    // The worker reports the attempt in time.
    let mut mill = begun();
    mill.join("w", 1);
    mill.beat("w", &[("prove/0/0", 1)]);
    for _ in 0..50 {
        mill.pass(1_000);
        mill.beat("w", &[("prove/0/0", 1)]);
    }
    assert_eq!(attempts(&mill), 0);
    // The worker reports it after another was given the task.
    let mut mill = begun();
    mill.join("x", 1);
    mill.pass(2_000);
    assert_eq!(mill.news(), ["x prove/0/0#1"]);
    mill.join("w", 1);
    mill.beat("w", &[("prove/0/0", 1)]);
    for _ in 0..50 {
        mill.pass(1_000);
        mill.beat("x", &[("prove/0/0", 1)]);
    }
    assert_eq!(attempts(&mill), 0);
    // The worker never reports it, so it fails when a lease would have ended. The other task goes on.
    let mut mill = begun();
    mill.join("x", 1);
    for _ in 0..50 {
        mill.pass(1_000);
        mill.beat("x", &[("prove/0/0", 1)]);
    }
    assert_eq!(attempts(&mill), 1);
    mill.complete("x", "prove/0/0", 1);
    assert!(mill.core.has_finished(&id("prove/0/0"), 0));
}

/// Wall clocks after the restart (correct, an hour behind, an hour ahead), and the remaining wait of each.
const CLOCKS: [(i64, u64); 3] = [(0, 400), (-3_600_000, 1_000), (3_600_000, 0)];

#[test]
fn a_backoff_goes_on_over_a_restart() {
    for (ahead_ms, left) in CLOCKS {
        let mut mill = Draft::default().work("prove", "in", &[]).mill();
        mill.join("w", 1);
        mill.block("in", 0);
        mill.fail("w", "prove/0/0", 1, false);
        mill.pass(600);
        mill.news();
        mill.set_wall_by(Duration::ZERO, ahead_ms);
        mill.join("w", 1);
        if left > 0 {
            mill.pass(left - 1);
            assert_eq!(mill.news(), [""; 0], "{ahead_ms}");
            mill.pass(1);
        }
        assert_eq!(mill.news(), ["w prove/0/0#2"], "{ahead_ms}");
    }
}

#[test]
fn t_collect_goes_on_over_a_restart() {
    for (ahead_ms, left) in CLOCKS {
        let runs = Sequential {
            n: 2,
            inputs: vec!["in".into()],
            partial: true,
        };
        let mut mill = Draft::default()
            .collect("runs", &["in"], &["out"], runs, None, Some(1))
            .work("next", "out", &[])
            .mill();
        mill.block("in", 0);
        assert!(mill.has_key("since.runs.0"));
        mill.pass(600);
        mill.set_wall_by(Duration::ZERO, ahead_ms);
        if left > 0 {
            mill.pass(left - 1);
            assert_eq!(mill.tasks(), ["runs/0/0 Held"], "{ahead_ms}");
        }
        mill.pass(1);
        assert_eq!(mill.tasks(), ["next/0/0 Waiting"], "{ahead_ms}");
        assert!(!mill.has_key("since.runs.0"));
    }
}

/// After a restart an assignment waits until the log has the record that it has begun: a message lost with
/// the process may be the one that ended it.
#[test]
fn after_a_restart_assignments_wait_for_their_records() {
    let mut mill = Draft::default().work("prove", "in", &[]).mill();
    mill.join("w", 4);
    mill.on_the_way = Some(Vec::new());
    mill.begin("in", Mill::message(0, 0, "{}"));
    mill.arrive();
    mill.pass(MIN_RECORDED);
    mill.arrive();
    mill.restart(Duration::ZERO);
    mill.join("w", 4);
    mill.begin("in", Mill::message(1, 1, "{}"));
    assert_eq!(mill.news(), [""; 0]);
    mill.arrive();
    assert_eq!(mill.news(), ["w prove/0/0#2", "w prove/1/0#1"]);
}

/// Earlier, such blobs were deleted because no record named them.
#[test]
fn what_waits_or_is_on_its_way_keeps_its_blobs() {
    let message = |block: u64| {
        let mut message = Mill::message(block, block, "");
        message.payload = Payload::Blob {
            encoding: Encoding::Json,
            digest: [block as u8; 32],
            len: 100_000,
        };
        message
    };
    let mut mill = Draft::default()
        .work("prove", "in", &[])
        .q_max("in", 2)
        .mill();
    mill.on_the_way = Some(Vec::new());
    for block in 0..6 {
        mill.begin("in", message(block));
    }
    let live = |mill: &Mill| {
        let mut live: Vec<u8> = mill.core.live_blobs().iter().map(|blob| blob[0]).collect();
        live.sort_unstable();
        live
    };
    assert_eq!(live(&mill), [0, 1, 2, 3, 4, 5]);
    mill.arrive();
    assert_eq!(live(&mill), [0, 1, 2, 3, 4, 5]);
    assert_eq!(mill.core.status().producers_waiting, 4);
    // A decision about a dead letter is on its way when the message comes again.
    mill.cancel("prove/0/0");
    mill.arrive();
    let again = mill.begin("in", message(0));
    assert!(matches!(
        mill.reply(again),
        Some(Reply::IsDead { .. }) | None
    ));
    mill.arrive();
    assert!(live(&mill).contains(&0));
}
