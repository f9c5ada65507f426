//! Q_max: producers wait, stages wait, and the head of the chain passes.

use proofmill_orchestrator::conversation::Reply;
use proofmill_orchestrator::plan::DispatcherPlan;

use crate::support::{Draft, dispatcher};

#[test]
fn producers_wait_for_room_lowest_block_first() {
    let mut mill = Draft::default()
        .q_max("in", 2)
        .work("prove", "in", &[])
        .mill();
    assert_eq!(mill.block("in", 10), Some(Reply::Accepted));
    assert_eq!(mill.block("in", 11), Some(Reply::Accepted));
    let json = "{}";
    let later = mill.begin("in", crate::support::Mill::message(14, 14, json));
    let sooner = mill.begin("in", crate::support::Mill::message(13, 13, json));
    assert_eq!((mill.reply(later), mill.reply(sooner)), (None, None));
    assert_eq!(mill.core.status().producers_waiting, 2);
    // A block below all that wait may be the one that the queue waits for.
    assert_eq!(mill.block("in", 9), Some(Reply::Accepted));
    mill.join("w", 2);
    assert_eq!(mill.news(), ["w prove/9/0#1", "w prove/10/0#1"]);
    // Freed room is used within the same event.
    mill.pass(0);
    assert_eq!(
        (mill.reply(later), mill.reply(sooner)),
        (None, Some(Reply::Accepted))
    );
}

#[test]
fn a_full_queue_gates_the_stage_before_it_but_not_the_head_of_chain() {
    let mut mill = Draft::default()
        .q_max("mid", 1)
        .work("a", "in", &["mid"])
        .work_as(
            "b",
            "mid",
            &[],
            DispatcherPlan {
                group: "other".into(),
                ..dispatcher()
            },
        )
        .mill();
    mill.join("w", 4);
    for block in [5, 6, 7] {
        mill.block("in", block);
    }
    assert_eq!(mill.news(), ["w a/5/0#1"]);
    mill.complete("w", "a/5/0", 1);
    assert!(mill.news().is_empty());
    assert!(!mill.core.is_idle(), "a worker of `b` may come");
    mill.block("in", 3);
    assert_eq!(mill.news(), ["w a/3/0#1"]);
    mill.block("in", 4);
    assert!(mill.news().is_empty(), "block 3 is on its way");
}

#[test]
fn draining_turns_producers_away() {
    let mut mill = Draft::default()
        .q_max("in", 1)
        .work("prove", "in", &[])
        .mill();
    mill.block("in", 0);
    let waiting = mill.begin("in", crate::support::Mill::message(1, 1, "{}"));
    mill.tell(proofmill_orchestrator::core::Event::Drain);
    assert_eq!(mill.reply(waiting), Some(Reply::Draining));
    assert_eq!(mill.block("in", 2), Some(Reply::Draining));
    mill.join("w", 1);
    assert!(mill.news().is_empty());
}
