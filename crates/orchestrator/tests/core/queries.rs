//! Queries: their answers agree with the core's state, page by page.

use proofmill_orchestrator::conversation::{
    PAGE_MAX, Page, Query, QueryAnswer, QueueRow, TaskRow, TaskSelection,
};
use proofmill_orchestrator::core::TaskPhase;
use proofmill_orchestrator::id::TaskId;

use crate::support::{Draft, Mill, id};

fn tasks(
    mill: &Mill,
    of: TaskSelection,
    after: Option<TaskId>,
    limit: usize,
) -> Page<TaskRow, TaskId> {
    match mill.core.answer(Query::Tasks { of, after, limit }) {
        QueryAnswer::Tasks(page) => page,
        other => panic!("{other:?}"),
    }
}

fn queues(mill: &Mill) -> Vec<QueueRow> {
    match mill.core.answer(Query::Queues) {
        QueryAnswer::Queues(rows) => rows,
        other => panic!("{other:?}"),
    }
}

#[test]
fn pages_of_tasks_are_the_live_tasks_in_order_whatever_becomes_of_them_between() {
    let mut mill = Draft::default().work("prove", "in", &[]).mill();
    mill.join("w", 3);
    for block in 0..10 {
        mill.block("in", block);
    }
    mill.fail("w", "prove/1/0", 1, true);
    let all = TaskSelection::default();
    let (mut seen, mut after) = (Vec::new(), None);
    loop {
        let page = tasks(&mill, all.clone(), after, 4);
        assert!(page.rows.len() <= 4);
        seen.extend(page.rows.into_iter().map(|row| row.task));
        after = page.next;
        if after.is_none() {
            break;
        }
        // It is not shown again, and no other one is left out because of it.
        mill.complete("w", "prove/0/0", 1);
    }
    let live = [0, 2, 3, 4, 5, 6, 7, 8, 9];
    let live: Vec<TaskId> = live.iter().map(|n| id(&format!("prove/{n}/0"))).collect();
    assert_eq!(seen, live);

    let leased = TaskSelection {
        phase: Some(TaskPhase::Leased),
        ..TaskSelection::default()
    };
    let leased = tasks(&mill, leased, None, usize::MAX);
    assert_eq!((leased.rows.len(), leased.next), (3, None));
    assert!(
        leased
            .rows
            .iter()
            .all(|row| row.worker.as_deref() == Some("w"))
    );
    let about = |block| TaskSelection {
        block: Some(block),
        stage: Some("prove".into()),
        phase: None,
    };
    assert_eq!(
        tasks(&mill, about(7), None, 10).rows[0].task,
        id("prove/7/0")
    );
    assert!(tasks(&mill, about(0), None, 10).rows.is_empty());
    assert!(
        tasks(&mill, TaskSelection::default(), None, 0)
            .rows
            .is_empty()
    );
}

#[test]
fn no_page_is_longer_than_the_limit() {
    let mut mill = Draft::default()
        .q_max("in", 2 * PAGE_MAX)
        .work("prove", "in", &[])
        .mill();
    let count = PAGE_MAX as u64 + 1;
    for block in 0..count {
        mill.block("in", block);
    }
    let first = tasks(&mill, TaskSelection::default(), None, usize::MAX);
    assert_eq!(first.rows.len(), PAGE_MAX);
    let rest = tasks(&mill, TaskSelection::default(), first.next, usize::MAX);
    assert_eq!((rest.rows.len(), rest.next), (1, None));
}

#[test]
fn queues_are_counted_by_what_their_tasks_do() {
    let mut mill = Draft::default()
        .work("prove", "in", &["out"])
        .sequence("out")
        .mill();
    mill.join("w", 2);
    for block in 1..5 {
        mill.block("in", block);
    }
    mill.complete("w", "prove/1/0", 1);
    mill.fail("w", "prove/2/0", 1, true);
    let rows = queues(&mill);
    let row = |name: &str| {
        rows.iter()
            .find(|row| &*row.queue == name)
            .expect("it is there")
    };
    let into = row("in");
    assert_eq!(
        (into.waiting, into.leased, into.held, into.dead),
        (0, 2, 0, 1)
    );
    assert_eq!(into.lowest, Some(3));
    let out = row("out");
    assert_eq!((out.waiting, out.leased, out.lowest), (1, 0, Some(1)));
}

#[test]
fn blocks_from_behind_are_none() {
    let mill = Draft::default().work("prove", "in", &[]).mill();
    let backwards = mill.core.answer(Query::Blocks { first: 5, last: 4 });
    assert!(matches!(backwards, QueryAnswer::Blocks(rows) if rows.is_empty()));
}
