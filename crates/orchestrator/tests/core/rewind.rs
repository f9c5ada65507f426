//! Rewinds: a source takes blocks back.

use std::sync::Arc;
use std::time::Duration;

use proofmill_orchestrator::conversation::{
    Reply, Request, Rewind, SinkEvent, Submit, Uniqueness, WorkerEvent,
};
use proofmill_orchestrator::core::{Event, RequestId};
use proofmill_orchestrator::grouping::Sequential;
use proofmill_orchestrator::id::Part;
use proofmill_orchestrator::plan::QueueIx;

use crate::support::{Draft, Mill, id};

const REQUEST: RequestId = RequestId(1_000_000);

/// `in → prove → pairs → agg → emit`.
fn mill() -> Mill {
    let pairs = Sequential {
        n: 2,
        inputs: vec!["proofs".into()],
        partial: false,
    };
    Draft::default()
        .work("prove", "in", &["proofs"])
        .collect("pairs", &["proofs"], &["groups"], pairs, None, None)
        .work("agg", "groups", &["out"])
        .sequence("out")
        .mill()
}

fn rewind(mill: &mut Mill, from: u64) -> Option<Reply> {
    mill.tell(Event::Request {
        id: REQUEST,
        request: Request::Rewind(Rewind {
            source: "chain".into(),
            queues: vec![QueueIx(0)],
            from,
        }),
    });
    mill.reply(REQUEST)
}

/// Submits block `block` of fork `fork`.
fn bring(mill: &mut Mill, block: u64, fork: char, uniqueness: Uniqueness) -> Option<Reply> {
    let mut message = Mill::message(block, block, &format!("[\"{fork}{block}\"]"));
    message.part = Part::new(&format!("{fork}{block}")).expect("a part");
    mill.tell(Event::Request {
        id: RequestId(2_000_000 + block),
        request: Request::Submit(Submit {
            producer: "chain".into(),
            queue: QueueIx(0),
            message,
            uniqueness,
            source_next: (uniqueness == Uniqueness::Single).then_some(block + 1),
            caller: None,
        }),
    });
    mill.reply(RequestId(2_000_000 + block))
}

fn only(mill: &mut Mill, block: u64, fork: char) {
    assert_eq!(
        bring(mill, block, fork, Uniqueness::Single),
        Some(Reply::Accepted)
    );
}

fn prove(mill: &mut Mill, block: u64, fork: char) {
    let task = format!("prove/{block}/{fork}{block}");
    mill.complete_with("w", &task, 1, &[None], &format!("[\"{fork}{block}\"]"));
}

fn emitted(mill: &mut Mill, task: &str) {
    mill.tell(SinkEvent::Emitted {
        task: id(task),
        places: Vec::new(),
    });
}

/// Blocks 0 and 1 have been emitted, 2 and 3 are aggregated, 4 is held, 5 is proved.
fn under_way() -> Mill {
    let mut mill = mill();
    mill.join("w", 10);
    for block in 0..6 {
        only(&mut mill, block, 'a');
    }
    for block in 0..5 {
        prove(&mut mill, block, 'a');
    }
    mill.complete("w", "agg/0/0", 1);
    emitted(&mut mill, "emit/0/0");
    mill.cancelled.clear();
    mill
}

#[test]
fn everything_from_the_first_changed_block_on_is_dropped_and_comes_again() {
    let mut mill = under_way();
    let old = mill.lease("w", "agg/2/1", 1);
    // Block 3 was aggregated with block 2, which is dropped with it.
    assert_eq!(rewind(&mut mill, 3), Some(Reply::Rewound { from: 2 }));
    assert_eq!(mill.tasks(), Vec::<String>::new());
    let stopped: Vec<String> = mill
        .cancelled
        .iter()
        .map(|(_, lease)| lease.task.to_string())
        .collect();
    assert_eq!(stopped, ["prove/5/a5", "agg/2/1"]);
    assert_eq!(mill.core.source_next("chain"), Some(2));
    assert!(mill.has_key("cursor") && !mill.has_key("group.pairs.1"));
    mill.restart(Duration::ZERO);
    mill.join("w", 10);

    only(&mut mill, 2, 'a');
    for block in 3..6 {
        only(&mut mill, block, 'b');
    }
    prove(&mut mill, 2, 'a');
    for block in 3..6 {
        prove(&mut mill, block, 'b');
    }
    // An old worker's result for the old group does not count for the new group of the same id.
    let late = proofmill_orchestrator::conversation::WorkerResult {
        worker: "old".into(),
        lease: old,
        outputs: Vec::new(),
        ran: Duration::ZERO,
    };
    mill.tell(WorkerEvent::Complete(late));
    assert!(mill.emitted.len() == 1, "{:?}", mill.emitted);
    mill.complete("w", "agg/2/1", 1);
    mill.complete("w", "agg/4/2", 1);
    for task in ["emit/2/1", "emit/4/2"] {
        assert!(mill.emitted.contains(&id(task)), "{task}");
        emitted(&mut mill, task);
    }
    assert_eq!(mill.core.status().next_block, Some(6));
    assert_eq!(mill.core.status().live, 0);
}

#[test]
fn a_source_that_has_lost_the_answer_is_told_the_same_again() {
    let mut mill = under_way();
    assert_eq!(rewind(&mut mill, 3), Some(Reply::Rewound { from: 2 }));
    // No record of block 2 is left that would show its connection to block 3.
    assert_eq!(rewind(&mut mill, 3), Some(Reply::Rewound { from: 2 }));
    mill.restart(Duration::ZERO);
    assert_eq!(rewind(&mut mill, 3), Some(Reply::Rewound { from: 2 }));
    only(&mut mill, 2, 'a');
    assert_eq!(rewind(&mut mill, 3), Some(Reply::Rewound { from: 3 }));
}

#[test]
fn what_has_left_stays_and_is_counted() {
    let mut mill = under_way();
    assert_eq!(rewind(&mut mill, 0), Some(Reply::Rewound { from: 2 }));
    assert_eq!(mill.core.status().blocks_stale, 2);
    assert_eq!(mill.core.status().next_block, Some(2));
    assert_eq!(rewind(&mut mill, 2), Some(Reply::Rewound { from: 2 }));
    assert_eq!(mill.core.status().blocks_stale, 2);
}

#[test]
fn what_is_on_its_way_to_the_log_is_dropped_when_it_arrives() {
    let mut mill = mill();
    mill.join("w", 10);
    for block in 0..3 {
        only(&mut mill, block, 'a');
    }
    mill.on_the_way = Some(Vec::new());
    // Two messages that form a group, and one that is not recorded yet.
    prove(&mut mill, 0, 'a');
    prove(&mut mill, 1, 'a');
    assert_eq!(bring(&mut mill, 3, 'a', Uniqueness::Single), None);
    assert_eq!(rewind(&mut mill, 0), None);
    mill.arrive();
    assert_eq!(mill.reply(REQUEST), Some(Reply::Rewound { from: 0 }));
    assert_eq!(mill.tasks(), Vec::<String>::new());
    assert_eq!(mill.core.source_next("chain"), Some(0));
    mill.on_the_way = None;
    for block in 0..2 {
        only(&mut mill, block, 'b');
        prove(&mut mill, block, 'b');
    }
    mill.complete("w", "agg/0/0", 1);
    assert_eq!(mill.emitted, [id("emit/0/0")]);
}

#[test]
fn a_message_at_the_door_is_turned_away_and_a_dead_letter_goes() {
    let mut mill = Draft::default()
        .work("prove", "in", &["out"])
        .sequence("out")
        .q_max("in", 1)
        .mill();
    only(&mut mill, 0, 'a');
    assert_eq!(bring(&mut mill, 1, 'a', Uniqueness::Single), None);
    assert_eq!(rewind(&mut mill, 1), Some(Reply::Rewound { from: 1 }));
    assert_eq!(
        mill.reply(RequestId(2_000_001)),
        Some(Reply::Rewound { from: 1 })
    );
    mill.join("w", 1);
    mill.fail("w", "prove/0/a0", 1, true);
    assert!(mill.core.dead_letter(&id("prove/0/a0")).is_some());
    assert_eq!(rewind(&mut mill, 0), Some(Reply::Rewound { from: 0 }));
    assert!(mill.core.dead_letter(&id("prove/0/a0")).is_none());
}

#[test]
fn another_message_of_a_block_is_told_wherever_the_known_one_is() {
    let differs = |task: &str| Some(Reply::Differs { task: id(task) });
    let mut mill = under_way();
    mill.fail("w", "prove/5/a5", 1, true);
    for (block, task) in [(2, "prove/2/a2"), (4, "prove/4/a4"), (5, "prove/5/a5")] {
        for uniqueness in [Uniqueness::Single, Uniqueness::ReplayOnly] {
            assert_eq!(bring(&mut mill, block, 'b', uniqueness), differs(task));
        }
        let same = bring(&mut mill, block, 'a', Uniqueness::ReplayOnly);
        assert!(
            matches!(same, Some(Reply::Duplicate { .. } | Reply::IsDead { .. })),
            "{same:?}"
        );
    }
    only(&mut mill, 6, 'a');
    assert_eq!(
        bring(&mut mill, 6, 'b', Uniqueness::Single),
        differs("prove/6/a6")
    );
    // Block 9 is unknown, so nothing is recorded.
    assert_eq!(
        bring(&mut mill, 9, 'b', Uniqueness::ReplayOnly),
        Some(Reply::Duplicate { same: None })
    );
    assert!(mill.core.tasks(|task| task.id.block == 9).is_empty());
    let any = bring(&mut mill, 6, 'c', Uniqueness::Multiple);
    assert_eq!(any, Some(Reply::Accepted));
}

#[test]
fn a_late_result_of_what_was_replaced_does_not_count() {
    let mut mill = Draft::default()
        .work("prove", "in", &["out"])
        .sequence("out")
        .mill();
    mill.join("w", 1);
    mill.block("in", 0);
    let old = mill.lease("v", "prove/0/0", 1);
    mill.fail("w", "prove/0/0", 1, true);
    // Another payload replaces the dead letter, under the same id.
    let other = Mill::message(0, 0, "[\"another\"]");
    assert_eq!(mill.send("in", other), Some(Reply::Accepted));
    mill.beat("w", &[]);
    let late = proofmill_orchestrator::conversation::WorkerResult {
        worker: Arc::from("v"),
        lease: old,
        outputs: Vec::new(),
        ran: Duration::ZERO,
    };
    mill.tell(WorkerEvent::Complete(late));
    assert_eq!(mill.core.status().stages[0].counters.stale_results, 1);
    assert_eq!(mill.core.status().live, 1);
}

#[test]
fn what_a_host_has_decided_about_what_is_taken_back_counts_no_more() {
    let mut mill = mill();
    mill.join("w", 10);
    mill.host("h");
    for block in 0..2 {
        only(&mut mill, block, 'a');
        prove(&mut mill, block, 'a');
    }
    let decided = mill.verdicts();
    assert_eq!(rewind(&mut mill, 1), Some(Reply::Rewound { from: 1 }));
    for said in decided {
        mill.tell(said);
    }
    mill.hosts_work();
    assert_eq!(mill.tasks(), ["pairs/0/a0 Held"]);
    only(&mut mill, 1, 'b');
    prove(&mut mill, 1, 'b');
    mill.hosts_work();
    assert_eq!(mill.tasks(), ["agg/0/0 Leased"]);
}

/// After a restart a source submits its last blocks again. A full queue must not keep it from noticing that its chain
/// has changed.
#[test]
fn what_is_submitted_again_needs_no_room() {
    let mut mill = Draft::default()
        .work("prove", "in", &["out"])
        .q_max("in", 1)
        .sequence("out")
        .mill();
    only(&mut mill, 0, 'a');
    assert_eq!(
        bring(&mut mill, 1, 'a', Uniqueness::Single),
        None,
        "it waits"
    );
    for (block, fork, told) in [
        (0, 'a', Reply::Duplicate { same: Some(true) }),
        (1, 'a', Reply::Duplicate { same: None }),
        (
            0,
            'b',
            Reply::Differs {
                task: id("prove/0/a0"),
            },
        ),
    ] {
        assert_eq!(
            bring(&mut mill, block, fork, Uniqueness::ReplayOnly),
            Some(told)
        );
    }
    assert_eq!(mill.tasks(), ["prove/0/a0 Waiting"]);
}

/// Found by the simulator (SEED=7049): a message was parked whose block is dropped because it shares a group
/// with a later one. It was admitted afterwards, and moved the source's position beyond that block.
#[test]
fn a_message_that_waits_of_a_block_that_goes_with_a_later_one_is_turned_away() {
    let pairs = Sequential {
        n: 2,
        inputs: vec!["proofs".into()],
        partial: false,
    };
    let mut mill = Draft::default()
        .work("prove", "in", &["proofs"])
        .q_max("in", 1)
        .collect("pairs", &["proofs"], &["groups"], pairs, None, None)
        .work("agg", "groups", &["out"])
        .sequence("out")
        .mill();
    mill.join("w", 10);
    for block in 0..4 {
        only(&mut mill, block, 'a');
    }
    for block in [0, 2, 3] {
        prove(&mut mill, block, 'a');
    }
    // Block 1 waits for its retry, and the queue is full.
    mill.fail("w", "prove/1/a1", 1, false);
    let mut message = Mill::message(2, 2, "[\"a2\"]");
    message.part = Part::new("a2").expect("a part");
    let request = RequestId(3_000_000);
    mill.tell(Event::Request {
        id: request,
        request: Request::Submit(Submit {
            producer: "chain".into(),
            queue: QueueIx(0),
            message,
            uniqueness: Uniqueness::Single,
            source_next: Some(3),
            caller: None,
        }),
    });
    assert_eq!(mill.reply(request), None, "it waits");
    assert_eq!(rewind(&mut mill, 3), Some(Reply::Rewound { from: 2 }));
    assert_eq!(mill.reply(request), Some(Reply::Rewound { from: 2 }));
    assert_eq!(mill.core.source_next("chain"), Some(2));
}

/// Records that were on their way to the log when a rewind began are dropped by a second append. A
/// coordinator that ends between the two leaves the second to its successor: the source, which continues from
/// the position that the first append recorded, would never take those blocks back again.
#[test]
fn a_rewind_that_is_cut_short_is_finished_by_the_next_coordinator() {
    let mut mill = under_way();
    mill.on_the_way = Some(Vec::new());
    prove(&mut mill, 5, 'a');
    assert_eq!(rewind(&mut mill, 4), None);
    assert!(mill.arrive_first() && mill.arrive_first());
    assert!(mill.has_key("task.pairs.5.a5") && mill.has_key("rewind.chain"));

    mill.on_the_way = Some(Vec::new());
    mill.restart(Duration::ZERO);
    // A message that comes in the meantime is not taken back with the old ones; its source is told to begin
    // from the same block.
    assert_eq!(bring(&mut mill, 4, 'b', Uniqueness::Single), None);
    mill.arrive();
    mill.on_the_way = None;
    let told = mill.reply(RequestId(2_000_004));
    assert_eq!(told, Some(Reply::Rewound { from: 4 }));
    assert_eq!(mill.tasks(), ["agg/2/1 Waiting"]);
    assert!(!mill.has_key("rewind.chain"));
    only(&mut mill, 4, 'b');
    assert!(mill.has_key("task.prove.4.b4"));
}
