//! What a new core knows of the old one's work.

use std::time::Duration;

use crate::support::{Draft, id};

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
    mill.restart(Duration::ZERO);
    let tasks = mill.core.tasks(|task| task.id == id("prove/0/0"));
    assert_eq!(tasks[0].attempts.len(), 1);
    let counters = mill.core.status().stages[0].counters;
    assert_eq!((counters.accepted, counters.completed), (3, 1));
    mill.join("w", 2);
    assert_eq!(mill.news(), ["w prove/0/0#2", "w prove/2/0#1"]);
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
