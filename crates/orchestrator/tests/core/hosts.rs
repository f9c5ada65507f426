//! Hosts: other processes that evaluate the collectors' strategies.

use std::collections::BTreeMap;

use proofmill_orchestrator::collector::PARTITIONS;
use proofmill_orchestrator::conversation::{HostCommand, Reply};
use proofmill_orchestrator::core::Event;
use proofmill_orchestrator::grouping::{Expected, Match, Sequential};
use proofmill_orchestrator::id::Part;

use crate::support::{Draft, Mill};

/// A collector that groups two messages of the same block.
fn pairs(t_collect: Option<u64>) -> Mill {
    let pairs = Match {
        expected: Expected::Total(2),
        partial: true,
    };
    Draft::default()
        .collect("join", &["in"], &["out"], pairs, None, t_collect)
        .work("next", "out", &[])
        .mill()
}

fn send(mill: &mut Mill, block: u64, part: &str) {
    let mut message = Mill::message(block, block, "{}");
    message.part = Part::new(part).expect("a part");
    assert_eq!(mill.send("in", message), Some(Reply::Accepted));
}

fn kept(mill: &Mill) -> BTreeMap<String, usize> {
    let hosts = mill.core.status().hosts;
    hosts
        .iter()
        .map(|host| (host.host.to_string(), host.partitions))
        .collect()
}

#[test]
fn barriers_fire_by_a_host_s_verdict_and_what_comes_late_is_dead() {
    let mut mill = pairs(None);
    mill.host("a");
    send(&mut mill, 1, "x");
    send(&mut mill, 1, "y");
    assert_eq!(mill.tasks(), ["join/1/x Held", "join/1/y Held"]);
    assert!(!mill.core.is_idle(), "a host owes two verdicts");
    mill.hosts_work();
    assert_eq!(mill.tasks(), ["next/1/1 Waiting"]);
    send(&mut mill, 1, "z");
    mill.hosts_work();
    let counters = mill.core.status().stages[0].counters;
    assert_eq!((counters.grouped, counters.late), (2, 1));
    assert_eq!(mill.core.status().dead, 1);
    assert_eq!(mill.tasks(), ["next/1/1 Waiting"]);
}

#[test]
fn half_groups_are_finished_wherever_their_partition_goes() {
    let mut mill = pairs(None);
    mill.host("a");
    for block in 0..100 {
        send(&mut mill, block, "x");
    }
    mill.hosts_work();
    // Hosts are added and removed while groups are incomplete: 1, 4, 3, 7, 2, and back to the core.
    for (hosts, blocks) in [
        ("abcd", 0..20),
        ("abd", 20..40),
        ("abdefgh", 40..60),
        ("gh", 60..80),
        ("", 80..100),
    ] {
        for gone in kept(&mill).keys().filter(|host| !hosts.contains(&***host)) {
            mill.host_leaves(gone);
        }
        for name in hosts.chars().map(String::from) {
            if !kept(&mill).contains_key(&name) {
                mill.host(&name);
            }
        }
        let kept = kept(&mill);
        assert_eq!(kept.len(), hosts.len());
        assert!(kept.values().all(|partitions| *partitions > 0), "{kept:?}");
        let all = if hosts.is_empty() { 0 } else { PARTITIONS };
        assert_eq!(kept.values().sum::<usize>(), all);
        for block in blocks {
            send(&mut mill, block, "y");
        }
        mill.hosts_work();
    }
    let status = mill.core.status();
    assert_eq!(status.stages[0].counters.grouped, 200);
    assert_eq!(status.stages[1].waiting, 100);
}

#[test]
fn a_host_that_owes_verdicts_for_too_long_loses_its_partitions() {
    let mut mill = pairs(None);
    mill.host("a");
    send(&mut mill, 1, "x");
    send(&mut mill, 1, "y");
    let late = mill.verdicts();
    mill.pass(2_999);
    assert_eq!(mill.tasks(), ["join/1/x Held", "join/1/y Held"]);
    mill.pass(1);
    assert_eq!(mill.tasks(), ["next/1/1 Waiting"]);
    assert!(kept(&mill).is_empty());
    mill.told.clear();
    // The host wakes up, sends its pending messages, and is told to join again.
    for said in late {
        mill.tell(said);
    }
    let is_unknown =
        |(host, told): &(String, HostCommand)| host == "a" && matches!(told, HostCommand::Unknown);
    assert!(!mill.told.is_empty() && mill.told.iter().all(is_unknown));
    assert_eq!(mill.tasks(), ["next/1/1 Waiting"]);
}

#[test]
fn verdicts_count_once_and_in_the_session_that_they_belong_to() {
    let mut mill = pairs(None);
    mill.host("a");
    send(&mut mill, 1, "x");
    let first = mill.verdicts();
    // The host comes back before its verdict arrives.
    mill.host("a");
    for said in first {
        mill.tell(said);
    }
    assert!(mill.core.status().hosts[0].pending_verdicts > 0);
    send(&mut mill, 1, "y");
    for said in mill.verdicts() {
        mill.tell(said.clone());
        mill.tell(said);
    }
    assert_eq!(mill.tasks(), ["next/1/1 Waiting"]);
    assert_eq!(mill.core.status().hosts[0].pending_verdicts, 0);
}

#[test]
fn a_lost_verdict_is_noticed_by_the_next() {
    let mut mill = pairs(None);
    mill.host("a");
    send(&mut mill, 1, "x");
    mill.verdicts();
    send(&mut mill, 2, "x");
    for said in mill.verdicts() {
        mill.tell(said);
    }
    assert!(kept(&mill).is_empty(), "the core does it itself");
    send(&mut mill, 1, "y");
    assert_eq!(mill.tasks(), ["join/2/x Held", "next/1/1 Waiting"]);
}

#[test]
fn a_message_that_is_cancelled_while_a_host_decides_takes_no_other_with_it() {
    let mut mill = pairs(None);
    mill.host("a");
    send(&mut mill, 1, "x");
    mill.hosts_work();
    send(&mut mill, 1, "y");
    let decided = mill.verdicts();
    assert_eq!(mill.cancel("join/1/x"), Some(Reply::Accepted));
    for said in decided {
        mill.tell(said);
    }
    mill.hosts_work();
    assert_eq!(mill.tasks(), ["join/1/y Held"]);
    send(&mut mill, 1, "z");
    mill.hosts_work();
    assert_eq!(mill.tasks(), ["next/1/1 Waiting"]);
    assert_eq!(mill.core.status().dead, 1, "the cancelled one");
}

#[test]
fn overdue_groups_are_emitted_by_a_host_too() {
    let mut mill = pairs(Some(10));
    mill.host("a");
    mill.host("b");
    send(&mut mill, 1, "x");
    mill.hosts_work();
    mill.pass(9_000);
    assert_eq!(mill.tasks(), ["join/1/x Held"]);
    mill.pass(1_000);
    mill.hosts_work();
    assert_eq!(mill.tasks(), ["next/1/1 Waiting"]);
}

#[test]
fn sequential_groups_keep_to_one_partition() {
    let runs = Sequential {
        n: 5,
        inputs: vec!["in".into()],
        partial: false,
    };
    let mut mill = Draft::default()
        .collect("runs", &["in"], &["out"], runs, None, None)
        .work("next", "out", &[])
        .mill();
    for name in ["a", "b", "c"] {
        mill.host(name);
    }
    for block in (0..100).rev() {
        mill.block("in", block);
    }
    mill.hosts_work();
    assert_eq!(mill.core.status().stages[1].waiting, 20);
    mill.tell(Event::Tick);
    assert!(
        mill.core
            .status()
            .hosts
            .iter()
            .all(|host| host.pending_verdicts == 0)
    );
}
