//! Messages that come after their group was emitted: each is counted, and dies, is passed on alone or
//! skipped.

use std::time::Duration;

use proofmill_orchestrator::conversation::{Reply, SinkEvent, Uniqueness};
use proofmill_orchestrator::grouping::{Expected, Match, Range, Sequential};
use proofmill_orchestrator::id::Part;
use proofmill_orchestrator::payload::Payload;
use proofmill_orchestrator::plan::Late;

use crate::support::{Draft, Mill, id};

fn part(name: &str, block: u64, json: &str) -> proofmill_orchestrator::message::Message {
    let mut message = Mill::message(block, block, json);
    message.part = Part::new(name).expect("a part");
    message
}

/// A strategy whose groups are the first `k` messages of a block.
fn first(k: usize) -> Match {
    Match {
        expected: Expected::Total(k),
        partial: false,
    }
}

fn pairs(late: Late) -> Mill {
    let mut mill = Draft::default()
        .late(late)
        .collect("join", &["in"], &["out"], first(2), None, None)
        .work("next", "out", &[])
        .mill();
    for name in ["a", "b", "c"] {
        assert_eq!(mill.send("in", part(name, 7, "[1]")), Some(Reply::Accepted));
    }
    mill
}

/// Numbers of late, skipped and grouped messages and of dead letters of the first stage.
fn counts(mill: &Mill) -> (u64, u64, u64, usize) {
    let stage = &mill.core.status().stages[0];
    let counters = &stage.counters;
    (
        counters.late,
        counters.skipped,
        counters.grouped,
        stage.dead,
    )
}

#[test]
fn a_late_message_is_dead_by_default_and_a_retry_says_why_it_would_not_help() {
    let mut mill = pairs(Late::default());
    assert_eq!(mill.tasks(), ["next/7/7 Waiting"]);
    assert_eq!(counts(&mill), (1, 0, 2, 1));
    assert_eq!(mill.late, [(id("join/7/c"), Late::Dead)]);
    let dead = mill.core.dead_letter(&id("join/7/c")).expect("dead");
    assert!(dead.late, "{dead:?}");
    assert_eq!(
        (&*dead.reason, &dead.task.payload),
        (
            "it came late: group \"7\" was already emitted",
            &Payload::json("[1]")
        )
    );
    let Some(Reply::Invalid { why }) = mill.retry("join/7/c") else {
        panic!("it is retried");
    };
    assert!(
        why.contains("group \"7\"") && why.contains("late = \"emit\""),
        "{why}"
    );
    mill.restart(Duration::ZERO);
    assert_eq!(counts(&mill), (1, 0, 2, 1));
    assert_eq!(mill.drop_dead("join/7/c"), Some(Reply::Accepted));
    assert_eq!(mill.tasks(), ["next/7/7 Waiting"]);
}

#[test]
fn a_member_that_comes_again_is_a_duplicate_and_not_late() {
    for late in [Late::Dead, Late::Emit, Late::Skip] {
        let mut mill = pairs(late);
        let before = (counts(&mill), mill.tasks());
        for restart in [false, true] {
            if restart {
                mill.restart(Duration::ZERO);
            }
            for (json, same) in [("[1]", true), ("[2]", false)] {
                let same = Some(same);
                let reply = mill.send("in", part("a", 7, json));
                assert_eq!(reply, Some(Reply::Duplicate { same }), "{late:?}");
            }
            assert_eq!((counts(&mill), mill.tasks()), before, "{late:?}");
        }
    }
}

#[test]
fn late_messages_are_passed_on_alone_each_once() {
    let mut mill = pairs(Late::Emit);
    mill.send("in", part("d", 7, "[2]"));
    let expected = [
        "next/7/7 Waiting",
        "next/7/late:c Waiting",
        "next/7/late:d Waiting",
    ];
    assert_eq!(mill.tasks(), expected);
    assert_eq!(counts(&mill), (2, 0, 2, 0));
    assert_eq!(mill.late.len(), 2);
    let alone = mill.core.tasks(|task| task.id == id("next/7/late:d"));
    let members = vec![("in".into(), Payload::json("[2]"))];
    let by_queue = false;
    assert_eq!(
        alone[0].record.payload,
        Payload::Group { by_queue, members }
    );
    assert_eq!(alone[0].record.origins.len(), 1);
    mill.restart(Duration::ZERO);
    assert_eq!(mill.tasks(), expected);
    assert_eq!(counts(&mill), (2, 0, 2, 0));
}

#[test]
fn late_messages_are_skipped_where_the_stage_says_so() {
    let mut mill = pairs(Late::Skip);
    assert_eq!(mill.tasks(), ["next/7/7 Waiting"]);
    assert_eq!(counts(&mill), (1, 1, 2, 0));
    assert_eq!(mill.late, [(id("join/7/c"), Late::Skip)]);
    mill.restart(Duration::ZERO);
    assert_eq!(counts(&mill), (1, 1, 2, 0));
}

#[test]
fn what_comes_after_a_run_or_a_part_of_it_was_emitted_is_late() {
    for (partial, blocks) in [(false, 0..3), (true, 0..2)] {
        let runs = Sequential {
            n: 3,
            inputs: vec!["in".into()],
            partial,
        };
        let mut mill = Draft::default()
            .collect("runs", &["in"], &["out"], runs, None, Some(10))
            .work("next", "out", &[])
            .mill();
        for block in blocks {
            mill.block("in", block);
        }
        mill.pass(10_000);
        assert_eq!(mill.tasks(), ["next/0/0 Waiting"]);
        mill.send("in", part("again", 2, "[1]"));
        let dead = mill.core.dead_letter(&id("runs/2/again"));
        assert!(dead.is_some_and(|dead| dead.late), "partial: {partial}");
    }
}

#[test]
fn what_lies_inside_a_range_that_was_emitted_is_late_and_what_lies_across_waits() {
    let range = Range {
        by: "batches".into(),
        others: vec!["proofs".into()],
        partial: false,
    };
    let inputs = &["batches", "proofs"];
    let mut mill = Draft::default()
        .collect("cover", inputs, &["out"], range, None, None)
        .work("next", "out", &[])
        .mill();
    mill.send("batches", Mill::message(4, 5, "{}"));
    mill.block("proofs", 4);
    mill.block("proofs", 5);
    assert_eq!(mill.tasks(), ["next/4/4:batches:0 Waiting"]);
    mill.send("proofs", part("second", 5, "{}"));
    mill.send("proofs", part("before", 3, "{}"));
    mill.send("proofs", part("after", 6, "{}"));
    let mut across = Mill::message(5, 6, "{}");
    across.part = Part::new("across").expect("a part");
    mill.send("proofs", across);
    let held = [
        "cover/3/proofs:before Held",
        "cover/5/proofs:across Held",
        "cover/6/proofs:after Held",
        "next/4/4:batches:0 Waiting",
    ];
    let late = id("cover/5/proofs:second");
    for _ in 0..2 {
        assert_eq!(mill.tasks(), held);
        let dead = mill.core.dead_letter(&late).expect("dead");
        let why = "it came late: group \"4:batches:0\" was already emitted";
        assert_eq!((dead.late, &*dead.reason), (true, why));
        mill.restart(Duration::ZERO);
    }
}

/// A workflow in which two provers prove each block, and the first proof is emitted.
fn first_of_two(late: Late, between: bool) -> Mill {
    let mut draft = Draft::default().late(late);
    for name in ["fast", "slow"] {
        draft = draft.work(name, "in", &[if between { "raw" } else { "proofs" }]);
    }
    if between {
        draft = draft.work("wrap", "raw", &["proofs"]);
    }
    let mut mill = draft
        .collect("join", &["proofs"], &["firsts"], first(1), None, None)
        .sequence("firsts")
        .mill();
    mill.join("w", 8);
    mill.block("in", 0);
    mill.complete("w", "fast/0/0", 1);
    if between {
        mill.complete("w", "wrap/0/fast:0", 1);
    }
    assert_eq!(mill.emitted, [id("emit/0/0")]);
    mill.tell(SinkEvent::Emitted {
        task: id("emit/0/0"),
        places: Vec::new(),
    });
    mill
}

#[test]
fn a_proof_that_comes_when_its_block_has_left_does_not_vanish() {
    let mut mill = first_of_two(Late::Dead, false);
    mill.complete("w", "slow/0/0", 1);
    let late = id("join/0/slow:0");
    for _ in 0..2 {
        let dead = mill.core.dead_letter(&late).expect("dead");
        let why = "it came late: blocks 0 to 0 were already emitted";
        assert_eq!((dead.late, &*dead.reason), (true, why));
        assert_eq!(mill.core.status().stages[2].counters.late, 1);
        assert!(mill.tasks().is_empty());
        mill.restart(Duration::ZERO);
    }
    let Some(Reply::Invalid { why }) = mill.retry("join/0/slow:0") else {
        panic!("it is retried");
    };
    assert!(why.contains("drop it"), "{why}");
    assert_eq!(mill.drop_dead("join/0/slow:0"), Some(Reply::Accepted));

    let mut mill = first_of_two(Late::Skip, false);
    mill.complete("w", "slow/0/0", 1);
    let counters = mill.core.status().stages[2].counters;
    assert_eq!((counters.late, counters.skipped), (1, 1));
    assert_eq!(mill.late, [(late, Late::Skip)]);
}

#[test]
fn what_is_on_its_way_to_the_collector_when_its_block_has_left_is_counted() {
    let mut mill = first_of_two(Late::Dead, true);
    mill.complete("w", "slow/0/0", 1);
    for _ in 0..2 {
        assert_eq!(mill.core.status().stages[2].counters.skipped, 1);
        assert!(mill.core.has_finished(&id("wrap/0/slow:0"), 0));
        mill.restart(Duration::ZERO);
    }
}

#[test]
fn a_late_dead_letter_does_not_keep_its_block_from_its_deadline() {
    let mut mill = Draft::default()
        .deadline(5_000, false)
        .collect("join", &["in"], &["out"], first(1), None, None)
        .work("next", "out", &[])
        .mill();
    mill.join("w", 1);
    mill.send("in", part("a", 7, "[1]"));
    mill.send("in", part("b", 7, "[1]"));
    mill.complete("w", "next/7/7", 1);
    assert_eq!(mill.core.status().dead, 1);
    let status = mill.core.status();
    assert_eq!((status.blocks_met, status.blocks_missed), (1, 0));
}

#[test]
fn a_dropped_block_is_taken_again_if_somebody_submits_it() {
    let mut mill = Draft::default()
        .work("prove", "in", &["out"])
        .sequence("out")
        .mill();
    mill.join("w", 1);
    for block in 0..3 {
        mill.block("in", block);
    }
    mill.complete("w", "prove/0/0", 1);
    mill.fail("w", "prove/1/0", 1, true);
    mill.complete("w", "prove/2/0", 1);
    assert_eq!(mill.drop_dead("prove/1/0"), Some(Reply::Accepted));
    assert_eq!(mill.core.status().gaps, [(1, 1)]);
    mill.news();
    let anew = |mill: &mut Mill, json| {
        let request = mill.begin_as("in", Mill::message(1, 1, json), Uniqueness::Resubmitted);
        mill.reply(request)
    };
    assert_eq!(anew(&mut mill, "[1]"), Some(Reply::Accepted));
    let same = Some(true);
    assert_eq!(anew(&mut mill, "[1]"), Some(Reply::Duplicate { same }));
    assert!(matches!(
        anew(&mut mill, "[2]"),
        Some(Reply::Differs { .. })
    ));
    mill.restart(Duration::ZERO);
    mill.join("w", 1);
    mill.complete("w", "prove/1/0", 1);
    let emitted: Vec<u64> = mill.emitted.iter().map(|id| id.block).collect();
    assert_eq!(emitted, [0, 0, 1, 2], "the first is handed over again");
    assert!(mill.core.status().gaps.is_empty());
    // An emitted message is not accepted again from any producer.
    for block in 0..3 {
        mill.tell(SinkEvent::Emitted {
            task: id(&format!("emit/{block}/0")),
            places: Vec::new(),
        });
    }
    assert!(matches!(
        anew(&mut mill, "[1]"),
        Some(Reply::Duplicate { .. })
    ));
}
