//! Steps of blocks that are cut into parts: their numbers and times, over restarts, and the step that all others wait for.

use std::time::Duration;

use proofmill_orchestrator::conversation::{Query, QueryAnswer, Reply, SinkEvent};
use proofmill_orchestrator::core::{BlockSteps, STEP_BLOCKS_MAX, StageCounts, Step, StepsView};
use proofmill_orchestrator::grouping::{Expected, Match};

use crate::support::{Draft, Mill};

/// `in → split → parts → prove → proofs → gather → groups → join → done → emit`; a block has three parts.
fn draft() -> Draft {
    let three = Match {
        expected: Expected::Total(3),
        partial: false,
    };
    Draft::default()
        // Out of the graph's order, as a file has them.
        .work("join", "groups", &["done"])
        .work("prove", "parts", &["proofs"])
        .work("split", "in", &["parts"])
        .collect("gather", &["proofs"], &["groups"], three, Some("/g"), None)
        .sequence("done")
}

fn view(mill: &Mill) -> StepsView {
    match mill.core.answer(Query::Steps) {
        QueryAnswer::Steps(view) => *view,
        other => panic!("{other:?}"),
    }
}

/// The only block in work.
fn only(mill: &Mill) -> BlockSteps {
    let StepsView {
        mut blocks,
        has_more,
    } = view(mill);
    assert!(!has_more && blocks.len() == 1, "{blocks:?}");
    blocks.remove(0)
}

fn step<'a>(block: &'a BlockSteps, stage: &str) -> &'a Step {
    let mut steps = block.steps.iter();
    steps.find(|it| &*it.stage == stage).expect("there")
}

fn critical(block: &BlockSteps) -> &str {
    &block.steps[block.critical.expect("one")].stage
}

fn prove(mill: &mut Mill, part: &str) {
    mill.complete_with("w", &format!("prove/0/{part}"), 1, &[None], r#"{"g":"a"}"#);
}

/// The task of the group, which has been assigned.
fn joined(mill: &mut Mill) -> String {
    let joined = mill.news().into_iter().find(|it| it.contains(" join/"));
    let joined = joined.expect("the group is assigned");
    joined.split([' ', '#']).nth(1).expect("a task").to_owned()
}

/// Emits block 0.
fn emit(mill: &mut Mill) {
    let task = mill.emitted.pop().expect("one is to be emitted");
    mill.tell(SinkEvent::Emitted {
        task,
        places: Vec::new(),
    });
}

/// A mill whose block 0 has been cut into three parts, one of which took 100 ms and two are in work.
fn halfway() -> Mill {
    let mut mill = draft().cuts_blocks().mill();
    mill.join("w", 3);
    mill.block("in", 0);
    mill.pass(50);
    let elements = [Some(0), Some(1), Some(2)];
    mill.complete_with("w", "split/0/0", 1, &elements, "{}");
    mill.pass(100);
    prove(&mut mill, "0~1");
    mill
}

#[test]
fn each_step_has_its_parts_in_the_order_of_the_graph() {
    let mill = halfway();
    let block = only(&mill);
    let stages: Vec<&str> = block.steps.iter().map(|it| &*it.stage).collect();
    assert_eq!(stages, ["split", "prove", "gather", "join", "emit"]);
    assert_eq!((block.block, critical(&block)), (0, "prove"));
    let prove = step(&block, "prove");
    let counts = StageCounts {
        leased: 2,
        ..StageCounts::default()
    };
    assert_eq!((prove.counts, prove.done), (counts, 1));
    assert_eq!(step(&block, "gather").counts.held, 1);
    assert_eq!(step(&block, "split").done, 1);
    let emit = step(&block, "emit");
    assert_eq!(
        (emit.began_ms, emit.ended_ms, emit.median_ms),
        (None, None, None)
    );
}

#[test]
fn a_step_tells_how_long_it_takes_and_which_part_is_slowest() {
    let mut mill = halfway();
    mill.pass(900);
    prove(&mut mill, "0~2");
    let block = only(&mill);
    let (split, prove) = (step(&block, "split"), step(&block, "prove"));
    let (began, ended) = (
        split.began_ms.expect("begun"),
        split.ended_ms.expect("ended"),
    );
    assert_eq!((ended - began, prove.began_ms), (50, Some(ended)));
    let slowest = prove.slowest.clone().expect("one");
    assert_eq!((&*slowest.part.to_string(), slowest.took_ms), ("0~2", 1000));
    // 100 ms and 1,000 ms: the nearest rank is the lower one, known to 1/32.
    let median = prove.median_ms.expect("one");
    assert!(median.abs_diff(100) <= 3, "{median}");
    let oldest = prove.oldest.clone().expect("one is in work");
    assert_eq!((&*oldest.part.to_string(), &*oldest.worker), ("0~0", "w"));
    assert_eq!(Some(oldest.since_ms), prove.began_ms);
}

#[test]
fn a_restart_forgets_neither_times_nor_numbers() {
    let mut mill = halfway();
    let before = only(&mill);
    mill.restart(Duration::ZERO);
    let after = only(&mill);
    let kept = |block: &BlockSteps| {
        let steps = block.steps.iter();
        let kept = steps.map(|it| (it.done, it.began_ms, it.ended_ms, it.slowest.clone()));
        kept.collect::<Vec<_>>()
    };
    assert_eq!(kept(&after), kept(&before));
    assert_eq!(
        step(&after, "gather").counts,
        step(&before, "gather").counts
    );
}

#[test]
fn a_dead_part_is_what_everything_waits_for() {
    let mut mill = halfway();
    mill.fail("w", "prove/0/0~0", 1, true);
    prove(&mut mill, "0~2");
    let block = only(&mill);
    let prove = step(&block, "prove");
    assert_eq!(
        (prove.counts.dead, prove.counts.leased, prove.done),
        (1, 0, 2)
    );
    assert_eq!((critical(&block), prove.oldest.clone()), ("prove", None));
    // With the dead letter gone, only the collector's messages are left.
    mill.drop_dead("prove/0/0~0");
    assert_eq!(critical(&only(&mill)), "gather");
}

#[test]
fn a_block_that_has_been_emitted_is_not_in_work_and_its_times_are_forgotten() {
    let mut mill = halfway();
    for part in ["0~0", "0~2"] {
        prove(&mut mill, part);
    }
    assert_eq!(critical(&only(&mill)), "join");
    let task = joined(&mut mill);
    mill.complete("w", &task, 1);
    let block = only(&mill);
    assert_eq!((critical(&block), step(&block, "join").done), ("emit", 1));
    emit(&mut mill);
    assert_eq!(view(&mill), StepsView::default());
}

#[test]
fn dead_letters_about_emitted_blocks_hide_no_block_in_work() {
    let mut mill = halfway();
    for part in ["0~0", "0~2"] {
        prove(&mut mill, part);
    }
    let task = joined(&mut mill);
    mill.complete("w", &task, 1);
    // One part too many: its group has fired.
    let sent = mill.send("proofs", Mill::message(0, 0, r#"{"g":"a"}"#));
    assert_eq!((sent, mill.core.status().dead), (Some(Reply::Accepted), 1));
    emit(&mut mill);
    assert_eq!(view(&mill), StepsView::default());
    mill.block("in", 1);
    assert_eq!(only(&mill).block, 1);
}

#[test]
fn where_nothing_is_emitted_live_blocks_come_before_dead_letters() {
    let draft = Draft::default().work("split", "in", &["parts"]);
    let mut mill = draft.work("prove", "parts", &[]).cuts_blocks().mill();
    mill.join("w", 1);
    let most = STEP_BLOCKS_MAX as u64;
    for block in 0..most {
        mill.block("in", block);
        mill.fail("w", &format!("split/{block}/0"), 1, true);
    }
    mill.block("in", most);
    let blocks = view(&mill).blocks;
    let blocks: Vec<u64> = blocks.iter().map(|it| it.block).collect();
    let lowest = (0..most - 1).chain([most]);
    assert!(lowest.eq(blocks.iter().copied()), "{blocks:?}");
}

#[test]
fn the_answer_has_few_blocks_however_many_there_are() {
    let mut mill = draft().cuts_blocks().mill();
    for block in 0..100 {
        mill.block("in", block);
    }
    let seen = view(&mill);
    assert!(seen.has_more);
    let blocks: Vec<u64> = seen.blocks.iter().map(|it| it.block).collect();
    let lowest: Vec<u64> = (0..STEP_BLOCKS_MAX as u64).collect();
    assert_eq!(blocks, lowest);
    assert!(
        seen.blocks
            .iter()
            .all(|it| step(it, "split").began_ms.is_some())
    );
}

#[test]
fn a_plan_that_cuts_no_blocks_has_no_steps() {
    let mut mill = draft().mill();
    mill.block("in", 0);
    assert_eq!(view(&mill), StepsView::default());
}
