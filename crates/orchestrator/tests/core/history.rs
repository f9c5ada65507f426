//! The state of each block, and counters, over restarts.

use std::time::Duration;

use proofmill_orchestrator::conversation::{Request, Rewind, SinkEvent, WorkerEvent};
use proofmill_orchestrator::core::{
    BLOCKS_MAX, BlockState, Counters, DeadlineState, Event, HistoryOptions, RequestId,
};
use proofmill_orchestrator::grouping::{Expected, Match};
use proofmill_orchestrator::plan::{Late, QueueIx};
use proofmill_orchestrator::record::{
    HistoryEntry, PLACE_MAX, PLACES_MAX, Record, TaskEnd, TaskOutcome,
};

use crate::support::{Draft, Mill, id};

fn emit(mill: &mut Mill, task: &str, places: &[&str]) {
    mill.tell(SinkEvent::Emitted {
        task: id(task),
        places: places.iter().map(|place| (*place).to_owned()).collect(),
    });
}

/// `in → prove → proofs → emit`.
fn chain() -> Draft {
    let draft = Draft::default().work("prove", "in", &["proofs"]);
    draft.sequence("proofs")
}

/// Submits, proves and emits a block.
fn through(mill: &mut Mill, block: u64) {
    mill.block("in", block);
    mill.complete("w", &format!("prove/{block}/0"), 1);
    emit(mill, &format!("emit/{block}/0"), &["file x"]);
}

fn steps(mill: &Mill, block: u64) -> Vec<TaskEnd> {
    let past = mill.core.block(block).history.into_iter();
    past.filter_map(|past| match past {
        HistoryEntry::TaskEnd(end) => Some(end),
        _ => None,
    })
    .collect()
}

fn state(mill: &Mill, block: u64) -> BlockState {
    mill.core.block(block).summary.state
}

fn counters(mill: &Mill) -> Vec<Counters> {
    let stages = mill.core.status().stages.into_iter();
    stages.map(|stage| stage.counters).collect()
}

fn entries(mill: &Mill) -> usize {
    let records = mill.records("past.").into_iter();
    records
        .map(|record| match record {
            Record::History(past) => past.entries.len(),
            other => panic!("{other:?}"),
        })
        .sum()
}

#[test]
fn a_block_tells_who_proved_it_how_long_it_took_and_where_it_went() {
    let mut mill = chain().mill();
    mill.block("in", 0);
    mill.pass(300);
    mill.join("v", 1);
    mill.pass(200);
    mill.fail("v", "prove/0/0", 1, false);
    mill.tell(WorkerEvent::Leave { worker: "v".into() });
    mill.join("w", 1);
    mill.pass(1_000);
    mill.pass(700);
    mill.complete("w", "prove/0/0", 2);
    mill.pass(50);
    emit(&mut mill, "emit/0/0", &["file /a/0.json", "subject proofs"]);

    for _ in 0..2 {
        assert_eq!(state(&mill, 0), BlockState::Emitted);
        let [proved, left] = &steps(&mill, 0)[..] else {
            panic!("{:?}", steps(&mill, 0));
        };
        let by = vec![("w".into(), 2)];
        assert_eq!(proved.outcome, TaskOutcome::Completed { by });
        assert_eq!(proved.task, id("prove/0/0"));
        assert_eq!(proved.begun_ms, Some(proved.accepted_ms + 1_500));
        assert_eq!(proved.ended_ms, proved.accepted_ms + 2_200);
        assert_eq!((proved.ran_ms, proved.failed), (Some(0), 1));
        let failed = &proved.failures[0];
        assert_eq!((&*failed.worker, failed.attempt), ("v", 1));
        assert_eq!(failed.reason, "no luck");
        let places = vec!["file /a/0.json".into(), "subject proofs".into()];
        assert_eq!(left.outcome, TaskOutcome::Emitted { places });
        assert_eq!(left.accepted_ms, proved.ended_ms);
        assert_eq!(left.ended_ms, left.accepted_ms + 50);
        mill.restart(Duration::ZERO);
    }
}

/// The history must not cost additional appends: each of its records is written in the append that it
/// describes.
#[test]
fn the_history_costs_no_append() {
    let run = |steps| {
        let mut mill = chain().mill();
        mill.history.steps = steps;
        mill.restart(Duration::ZERO);
        mill.join("w", 1);
        (0..200).for_each(|block| through(&mut mill, block));
        mill.appends
    };
    let (without, with) = (run(0), run(100));
    assert_eq!(with.0, without.0, "appends");
    // One operation with each emission, which covers the proof too.
    assert_eq!(with.1, without.1 + 200, "operations");
}

#[test]
fn the_history_keeps_within_its_bound_also_after_a_restart_with_another() {
    let mut mill = chain().mill();
    mill.history.steps = 10;
    mill.restart(Duration::ZERO);
    mill.join("w", 1);
    for block in 0..50 {
        through(&mut mill, block);
        assert!(entries(&mill) <= 10, "{}", entries(&mill));
    }
    assert_eq!(entries(&mill), 10);
    let told = |mill: &Mill| {
        (0..50)
            .filter(|block| !steps(mill, *block).is_empty())
            .count()
    };
    assert_eq!(told(&mill), 5);
    assert_eq!(state(&mill, 0), BlockState::Emitted);
    assert!(
        !mill.core.block(0).is_remembered,
        "only that it was emitted"
    );
    assert!(mill.core.block(49).is_remembered);
    mill.restart(Duration::ZERO);
    assert_eq!((entries(&mill), told(&mill)), (10, 5));

    mill.history.steps = 4;
    mill.restart(Duration::ZERO);
    assert_eq!((entries(&mill), told(&mill)), (4, 2));
    mill.join("w", 1);
    (50..60).for_each(|block| through(&mut mill, block));
    assert_eq!(entries(&mill), 4);
    assert!(!steps(&mill, 59).is_empty());

    mill.history.steps = 20;
    mill.restart(Duration::ZERO);
    mill.join("w", 1);
    for block in 60..90 {
        through(&mut mill, block);
        assert!(entries(&mill) <= 20, "{}", entries(&mill));
        let newest = steps(&mill, block);
        assert_eq!(newest.len(), 2, "{newest:?}");
    }
    mill.history.steps = 0;
    mill.restart(Duration::ZERO);
    mill.join("w", 1);
    through(&mut mill, 90);
    assert_eq!(entries(&mill), 0);
}

/// The record of a group has an entry for each member; the oldest entries make room for them.
#[test]
fn groups_keep_within_the_bound_too() {
    let all = Match {
        expected: Expected::Total(30),
        partial: false,
    };
    let mut mill = Draft::default()
        .collect("join", &["in"], &["out"], all, Some("/g"), None)
        .work("next", "out", &[])
        .mill();
    mill.history.steps = 70;
    mill.restart(Duration::ZERO);
    for block in 0..300 {
        let json = format!("{{\"g\":{}}}", block / 30);
        mill.send("in", Mill::message(block, block, &json));
        assert!(entries(&mill) <= 70, "{}", entries(&mill));
    }
    let grouped = steps(&mill, 299);
    let key = "9".to_owned();
    assert_eq!(grouped[0].outcome, TaskOutcome::Grouped { key });
    assert!(steps(&mill, 0).is_empty());
}

#[test]
fn what_is_older_than_is_kept_goes() {
    let mut mill = chain().mill();
    mill.history = HistoryOptions {
        steps: 1_000,
        keep: Duration::from_secs(60),
    };
    mill.restart(Duration::ZERO);
    mill.join("w", 1);
    (0..5).for_each(|block| through(&mut mill, block));
    mill.pass(59_000);
    mill.join("w", 1);
    through(&mut mill, 5);
    assert_eq!(entries(&mill), 12);
    mill.pass(2_000);
    through(&mut mill, 6);
    assert_eq!(entries(&mill), 4);
    mill.pass(70_000);
    mill.restart(Duration::ZERO);
    assert_eq!(entries(&mill), 0);
}

#[test]
fn what_a_sequencer_says_of_its_sinks_is_cut() {
    let mut mill = Draft::default().sequence("in").mill();
    mill.block("in", 0);
    let long = "é".repeat(PLACE_MAX);
    let places = vec![&*long; 10 * PLACES_MAX];
    emit(&mut mill, "emit/0/0", &places);
    let step = steps(&mill, 0).pop().expect("it was emitted");
    let TaskOutcome::Emitted { places } = step.outcome else {
        panic!("{step:?}");
    };
    assert_eq!(places.len(), PLACES_MAX);
    assert!(places.iter().all(|place| place.len() <= PLACE_MAX));
}

#[test]
fn each_end_of_a_block_is_an_answer_of_its_own() {
    let mut mill = chain().mill();
    mill.join("w", 1);
    assert_eq!(state(&mill, 0), BlockState::NeverSeen);
    mill.block("in", 0);
    mill.block("in", 1);
    let waits_for = |mill: &Mill, block| mill.core.block(block).live[0].waits_for.to_string();
    assert_eq!(state(&mill, 0), BlockState::Running);
    assert_eq!(waits_for(&mill, 0), "its result, from w");
    assert_eq!(state(&mill, 1), BlockState::Waiting);
    assert_eq!(
        waits_for(&mill, 1),
        "a free worker of group \"g\": 1 may run it, all busy"
    );

    mill.fail("w", "prove/0/0", 1, true);
    assert_eq!(state(&mill, 0), BlockState::Dead);
    mill.complete("w", "prove/1/0", 1);
    assert_eq!(state(&mill, 1), BlockState::Waiting);
    assert_eq!(
        waits_for(&mill, 1),
        "block 0, the next to be emitted: prove/0/0 is in the dead-letter queue"
    );
    mill.drop_dead("prove/0/0");
    assert_eq!(state(&mill, 0), BlockState::Dropped);
    let outcomes: Vec<TaskOutcome> = steps(&mill, 0).into_iter().map(|it| it.outcome).collect();
    assert!(
        matches!(&outcomes[..], [TaskOutcome::Died { why }, TaskOutcome::Dropped] if why.contains("no luck")),
        "{outcomes:?}"
    );
    mill.restart(Duration::ZERO);
    assert_eq!(state(&mill, 0), BlockState::Dropped);

    // The message was replaced, so the replacement's state counts.
    mill.block("proofs", 0);
    assert_eq!(state(&mill, 0), BlockState::Waiting);
    emit(&mut mill, "emit/0/0", &[]);
    emit(&mut mill, "emit/1/0", &[]);
    assert_eq!(state(&mill, 0), BlockState::Emitted);
    assert_eq!(state(&mill, 2), BlockState::NeverSeen);
    let states = mill.core.summaries(0..=u64::MAX);
    assert_eq!(states.len() as u64, BLOCKS_MAX);
    let emitted = |state: &BlockState| *state == BlockState::Emitted;
    assert_eq!(states.iter().filter(|it| emitted(&it.state)).count(), 2);
}

#[test]
fn a_block_that_a_collector_does_not_need_is_skipped() {
    let two = Match {
        expected: Expected::Total(2),
        partial: false,
    };
    let mut mill = Draft::default()
        .late(Late::Skip)
        .collect("join", &["in"], &["out"], two, Some("/g"), None)
        .sequence("out")
        .mill();
    mill.send("in", Mill::message(0, 0, "{\"g\":1}"));
    assert_eq!(state(&mill, 0), BlockState::Waiting);
    let live = mill.core.block(0).live;
    assert_eq!(
        live[0].waits_for.to_string(),
        "the other messages of group \"1\": 1 of 2"
    );
    mill.send("in", Mill::message(1, 1, "{\"g\":1}"));
    mill.send("in", Mill::message(7, 7, "{\"g\":1}"));
    assert_eq!(state(&mill, 7), BlockState::Skipped);
    assert!(
        matches!(&steps(&mill, 7)[0].outcome, TaskOutcome::Skipped { why } if why.contains("\"1\""))
    );
    assert_eq!(
        state(&mill, 1),
        BlockState::Waiting,
        "its group is to be emitted"
    );
}

#[test]
fn deadlines_are_remembered() {
    let mut mill = chain().deadline(1_000, false).mill();
    mill.join("w", 1);
    through(&mut mill, 0);
    mill.block("in", 1);
    let deadline = |mill: &Mill, block| mill.core.block(block).summary.deadline;
    assert_eq!(deadline(&mill, 1), Some(DeadlineState::Running));
    mill.pass(1_000);
    assert_eq!(deadline(&mill, 1), Some(DeadlineState::Missed));
    mill.complete("w", "prove/1/0", 1);
    emit(&mut mill, "emit/1/0", &[]);
    for _ in 0..2 {
        assert_eq!(deadline(&mill, 0), Some(DeadlineState::Met));
        assert_eq!(deadline(&mill, 1), Some(DeadlineState::Missed));
        assert_eq!(state(&mill, 1), BlockState::Emitted);
        let status = mill.core.status();
        assert_eq!((status.blocks_met, status.blocks_missed), (1, 1));
        mill.restart(Duration::ZERO);
    }
}

#[test]
fn blocks_that_a_source_has_taken_back_say_so_until_they_come_again() {
    let mut mill = chain().mill();
    mill.join("w", 1);
    through(&mut mill, 0);
    mill.block("in", 1);
    mill.complete("w", "prove/1/0", 1);
    mill.block("in", 3);
    let rewind = |mill: &mut Mill, from| {
        mill.tell(Event::Request {
            id: RequestId(1_000_000),
            request: Request::Rewind(Rewind {
                source: "chain".into(),
                queues: vec![QueueIx(0)],
                from,
            }),
        });
    };
    // The sink has been given block 1, which stays.
    rewind(&mut mill, 1);
    for _ in 0..2 {
        assert_eq!(state(&mill, 3), BlockState::TakenBack);
        assert_eq!(state(&mill, 4), BlockState::NeverSeen);
        assert_eq!(state(&mill, 0), BlockState::Emitted);
        assert!(mill.core.block(1).summary.stale && !mill.core.block(0).summary.stale);
        assert_eq!(mill.core.status().blocks_stale, 1);
        mill.restart(Duration::ZERO);
    }
    mill.block("in", 3);
    assert_eq!(state(&mill, 3), BlockState::Waiting);
}

#[test]
fn counters_survive_when_the_marks_that_they_count_are_forgotten() {
    // Marks are kept for a thousand emitted blocks.
    const BLOCKS: u64 = 1_100;
    let of = |block: u64| format!("prove/{block}/0");
    let (failed, last) = (of(BLOCKS), of(BLOCKS + 1));
    let mut mill = chain().mill();
    mill.join("w", 1);
    (0..BLOCKS).for_each(|block| through(&mut mill, block));
    mill.block("in", BLOCKS);
    mill.fail("w", &failed, 1, false);
    mill.block("in", BLOCKS + 1);
    assert!(!mill.has_key("done.prove.0.0"));
    let before = counters(&mill);
    let [prove, emit] = &before[..] else {
        panic!("{before:?}");
    };
    assert_eq!(
        (prove.accepted, prove.completed, prove.failed),
        (BLOCKS + 2, BLOCKS, 1)
    );
    assert_eq!((emit.accepted, emit.emitted), (BLOCKS, BLOCKS));
    // The process is killed now.
    mill.restart(Duration::ZERO);
    let after = counters(&mill);
    let exact = |of: &Counters| {
        let ends = (of.completed, of.grouped, of.skipped, of.dropped, of.emitted);
        (of.accepted, ends, of.died, of.failed)
    };
    let each = |of: &[Counters]| of.iter().map(exact).collect::<Vec<_>>();
    assert_eq!(each(&after), each(&before));
    // The other counters are as of the last ended task; after a while all are current.
    assert!(after[0].leased >= BLOCKS && after[0].leased <= before[0].leased);
    mill.join("w", 1);
    mill.complete("w", &last, 1);
    mill.pass(2_000);
    mill.complete("w", &failed, 2);
    mill.pass(6_000);
    let before = counters(&mill);
    assert_eq!(before[0].completed, BLOCKS + 2);
    mill.restart(Duration::ZERO);
    assert_eq!(counters(&mill), before);
}

/// The log of a release without counters: they are derived from its marks, and counted from then on.
#[test]
fn counters_of_an_older_log_go_on_from_its_marks() {
    let mut mill = Draft::default().work("prove", "in", &[]).mill();
    mill.join("w", 1);
    for block in 0..3 {
        mill.block("in", block);
        mill.complete("w", &format!("prove/{block}/0"), 1);
    }
    for written in ["count.", "past.", "totals"] {
        mill.without(written);
    }
    mill.restart(Duration::ZERO);
    assert_eq!(counters(&mill)[0].completed, 3);
    mill.pass(6_000);
    assert!(mill.has_key("count.prove"), "before its marks go");
    mill.without("done.");
    mill.restart(Duration::ZERO);
    let of = counters(&mill)[0];
    assert_eq!((of.accepted, of.completed), (3, 3));
    assert_eq!(
        state(&mill, 1),
        BlockState::NeverSeen,
        "nothing is left of it"
    );
}

/// The same message is on its way to the log twice: one append is refused, and must not be counted.
#[test]
fn what_the_log_refuses_is_not_counted() {
    let mut mill = Draft::default().work("prove", "in", &[]).mill();
    mill.on_the_way = Some(Vec::new());
    mill.begin("in", Mill::message(0, 0, "{}"));
    mill.begin("in", Mill::message(0, 0, "{}"));
    mill.arrive();
    assert_eq!(counters(&mill)[0].accepted, 1);
    mill.pass(6_000);
    mill.arrive();
    mill.on_the_way = None;
    mill.restart(Duration::ZERO);
    assert_eq!(counters(&mill)[0].accepted, 1);
}
