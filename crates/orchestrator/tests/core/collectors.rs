//! Barriers: Match, Sequential, Range and custom strategies.

use std::collections::BTreeMap;
use std::time::Duration;

use proofmill_orchestrator::conversation::Reply;
use proofmill_orchestrator::grouping::{
    Expected, Group, Match, Member, OfferDecision, OverdueDecision, Range, Sequential, Strategy,
};
use proofmill_orchestrator::id::{Part, TaskId};

use crate::support::{Draft, Mill, id};

fn part(name: &str, block: u64, json: &str) -> proofmill_orchestrator::message::Message {
    let mut message = Mill::message(block, block, json);
    message.part = Part::new(name).expect("a part");
    message
}

fn total(k: usize, partial: bool) -> Match {
    Match {
        expected: Expected::Total(k),
        partial,
    }
}

#[test]
fn match_fires_once_with_the_total() {
    let draft =
        Draft::default().collect("join", &["in"], &["out"], total(2, false), Some("/g"), None);
    let mut mill = draft.work("next", "out", &[]).mill();
    mill.send("in", part("a", 1, r#"{"g":"x"}"#));
    mill.send("in", part("b", 2, r#"{"g":"y"}"#));
    assert_eq!(mill.tasks(), ["join/1/a Held", "join/2/b Held"]);
    mill.send("in", part("c", 3, r#"{"g":"x"}"#));
    assert_eq!(mill.tasks(), ["join/2/b Held", "next/1/x Waiting"]);
    mill.send("in", part("d", 4, r#"{"g":"x"}"#));
    assert_eq!(mill.tasks(), ["join/2/b Held", "next/1/x Waiting"]);
    let counters = mill.core.status().stages[0].counters;
    assert_eq!((counters.grouped, counters.late), (2, 1));
}

#[test]
fn the_surplus_of_one_queue_is_late_when_the_group_fires() {
    let counts = BTreeMap::from([("a".into(), 1), ("b".into(), 2)]);
    let both = Match {
        expected: Expected::PerQueue(counts),
        partial: false,
    };
    let mut mill = Draft::default()
        .collect("join", &["a", "b"], &["out"], both, None, None)
        .work("next", "out", &[])
        .mill();
    mill.send("a", part("0", 7, "{}"));
    mill.send("a", part("1", 7, "{}"));
    mill.send("b", part("0", 7, "{}"));
    assert_eq!(mill.tasks().len(), 3);
    mill.send("b", part("1", 7, "{}"));
    assert_eq!(mill.tasks(), ["next/7/7 Waiting"]);
    assert!(
        mill.core
            .dead_letter(&id("join/7/a:1"))
            .is_some_and(|dead| dead.late)
    );
    mill.restart(Duration::ZERO);
    assert_eq!(mill.tasks(), ["next/7/7 Waiting"]);
    assert_eq!(mill.core.status().stages[0].counters.late, 1);
}

#[test]
fn a_message_without_its_grouping_field_dies_and_cannot_be_retried_into_a_group() {
    let mut mill = Draft::default()
        .collect("join", &["in"], &["out"], total(2, false), Some("/g"), None)
        .work("next", "out", &[])
        .mill();
    for bad in ["{}", r#"{"g":null}"#, r#"{"g":1.5}"#, r#"{"g":[1]}"#] {
        let reply = mill.send("in", part("bad", 1, bad));
        assert!(
            matches!(reply, Some(Reply::Rejected { .. })),
            "{bad}: {reply:?}"
        );
    }
    assert!(mill.tasks().is_empty());
    assert!(matches!(
        mill.retry("join/1/bad"),
        Some(Reply::Invalid { .. })
    ));
    let reply = mill.send("in", part("bad", 1, r#"{"g":[1]}"#));
    assert!(matches!(reply, Some(Reply::IsDead { .. })), "{reply:?}");
    assert_eq!(
        mill.send("in", part("bad", 1, r#"{"g":3}"#)),
        Some(Reply::Accepted)
    );
    assert_eq!(
        (mill.core.status().dead, mill.tasks()),
        (0, vec!["join/1/bad Held".to_owned()])
    );
}

#[test]
fn sequential_takes_spans_and_every_input() {
    let runs = Sequential {
        n: 4,
        inputs: vec!["a".into(), "b".into()],
        partial: false,
    };
    let mut mill = Draft::default()
        .collect("runs", &["a", "b"], &["out"], runs, None, None)
        .sequence("out")
        .mill();
    mill.send("a", Mill::message(2, 3, "{}"));
    mill.send("a", Mill::message(0, 1, "{}"));
    for block in [3, 0, 2] {
        mill.block("b", block);
    }
    assert_eq!(mill.core.status().stages[0].held, 5);
    mill.block("b", 1);
    assert_eq!(mill.emitted, [id("emit/0/0")]);
    assert_eq!(mill.core.status().stages[0].held, 0);
}

#[test]
fn overdue_runs_are_emitted_or_rejected_as_the_plan_says() {
    for partial in [true, false] {
        let runs = Sequential {
            n: 2,
            inputs: vec!["in".into()],
            partial,
        };
        let mut mill = Draft::default()
            .collect("runs", &["in"], &["out"], runs, None, Some(10))
            .work("next", "out", &[])
            .mill();
        mill.block("in", 0);
        mill.pass(9_999);
        assert_eq!(mill.tasks(), ["runs/0/0 Held"]);
        assert!(!mill.core.is_idle());
        mill.pass(1);
        assert_eq!(
            mill.tasks().first().map(String::as_str),
            partial.then_some("next/0/0 Waiting")
        );
        assert_eq!(mill.core.status().dead, usize::from(!partial));
        // A late block either matches an emitted group, or begins a new one.
        mill.block("in", 1);
        assert_eq!(mill.core.status().stages[0].held, usize::from(!partial));
        if !partial {
            assert_eq!(mill.retry("runs/0/0"), Some(Reply::Accepted));
            assert_eq!(mill.tasks(), ["next/0/0 Waiting"]);
        }
    }
}

fn range(partial: bool) -> Range {
    Range {
        by: "batches".into(),
        others: vec!["proofs".into()],
        partial,
    }
}

#[test]
fn range_joins_out_of_order_and_leaves_out_what_does_not_fit() {
    let mut mill = Draft::default()
        .collect(
            "cover",
            &["batches", "proofs"],
            &["out"],
            range(false),
            None,
            None,
        )
        .work("next", "out", &[])
        .mill();
    mill.block("proofs", 6);
    mill.block("proofs", 4);
    // This message spans the border of the range, so it is not inside.
    let mut across = Mill::message(6, 9, "{}");
    across.part = Part::new("across").expect("a part");
    mill.send("proofs", across);
    mill.send("batches", Mill::message(4, 7, "{}"));
    mill.send("proofs", part("half", 5, "{}"));
    assert_eq!(mill.core.status().stages[0].held, 5);
    mill.block("proofs", 7);
    assert_eq!(
        mill.tasks(),
        ["cover/6/proofs:across Held", "next/4/4:batches:0 Waiting"]
    );
}

#[test]
fn overdue_ranges_and_orphans_are_given_up() {
    let mut mill = Draft::default()
        .collect(
            "cover",
            &["batches", "proofs"],
            &["out"],
            range(false),
            None,
            Some(10),
        )
        .work("next", "out", &[])
        .mill();
    mill.block("proofs", 50);
    mill.pass(5_000);
    mill.block("proofs", 1);
    mill.send("batches", Mill::message(0, 1, "{}"));
    mill.pass(5_000);
    let reasons: Vec<&str> = mill.core.dead_letters().map(|dead| &*dead.reason).collect();
    assert_eq!(reasons.len(), 1);
    assert!(reasons[0].contains("spans blocks from 50"), "{reasons:?}");
    mill.pass(10_000);
    assert_eq!((mill.core.status().dead, mill.tasks().len()), (3, 0));
    assert!(mill.core.is_idle());
}

/// A strategy whose decision depends on the part of a message; some of its groups are invalid.
#[derive(Default)]
struct Told(Vec<TaskId>);

impl Strategy for Told {
    fn offer(&mut self, message: &Member) -> OfferDecision {
        let group = |members| Group {
            key: "k".into(),
            first: 0,
            last: 1,
            members,
        };
        match message.id.part.as_str() {
            "twice" => {
                OfferDecision::Finished(vec![group(vec![message.id.clone(), message.id.clone()])])
            }
            "foreign" => {
                OfferDecision::Finished(vec![group(vec![message.id.clone(), id("x/1/1")])])
            }
            "others" if !self.0.is_empty() => {
                OfferDecision::Finished(vec![group(std::mem::take(&mut self.0))])
            }
            "empty" => OfferDecision::Finished(vec![group(Vec::new())]),
            _ => {
                self.0.push(message.id.clone());
                OfferDecision::InProgress {
                    key: "later".into(),
                }
            }
        }
    }

    fn overdue(&mut self, _: &str) -> OverdueDecision {
        OverdueDecision::Reject {
            members: std::mem::take(&mut self.0),
            why: "late".into(),
        }
    }

    fn forget(&mut self, id: &TaskId) {
        self.0.retain(|held| held != id);
    }
}

#[derive(Debug)]
struct Tells;

impl proofmill_orchestrator::grouping::StrategyFactory for Tells {
    fn build(&self) -> Box<dyn Strategy> {
        Box::new(Told::default())
    }
}

fn told() -> Mill {
    Draft::default()
        .collect("join", &["in"], &["out"], Tells, None, Some(10))
        .work("next", "out", &[])
        .mill()
}

#[test]
fn odd_groups_of_a_strategy_lose_nothing() {
    let mut mill = told();
    mill.send("in", part("twice", 1, "{}"));
    assert_eq!(mill.tasks(), ["next/0/k Waiting"]);
    let mut mill = told();
    mill.send("in", part("foreign", 1, "{}"));
    assert!(mill.tasks().is_empty());
    let reason = &mill
        .core
        .dead_letter(&id("join/1/foreign"))
        .expect("dead")
        .reason;
    assert!(reason.contains("does not hold"), "{reason}");
    let mut mill = told();
    mill.send("in", part("empty", 1, "{}"));
    assert_eq!(mill.tasks(), ["join/1/empty Held"]);
}

#[test]
fn a_message_that_completes_a_group_of_others_waits_with_a_deadline() {
    let mut mill = told();
    mill.send("in", part("a", 1, "{}"));
    mill.send("in", part("others", 2, "{}"));
    assert_eq!(mill.tasks(), ["join/2/others Held", "next/0/k Waiting"]);
    mill.pass(10_000);
    assert!(mill.core.dead_letter(&id("join/2/others")).is_some());
}

#[test]
fn a_group_too_large_for_a_record_dies_with_a_reason() {
    let mut mill = Draft::default()
        .collect(
            "join",
            &["in"],
            &["out"],
            total(200, false),
            Some("/g"),
            None,
        )
        .work("next", "out", &[])
        .mill();
    for block in 0..200 {
        let json = format!("{{\"g\":1,\"x\":\"{}\"}}", "x".repeat(60_000));
        mill.send("in", Mill::message(block, block, &json));
    }
    assert_eq!((mill.tasks().len(), mill.core.status().dead), (0, 200));
    let reason = &mill.core.dead_letter(&id("join/0/0")).expect("dead").reason;
    assert!(reason.contains("blobs"), "{reason}");
}
