//! Deadlines of blocks.

use std::time::Duration;

use crate::support::{Draft, Mill, id};

fn counts(mill: &Mill) -> (u64, u64) {
    let status = mill.core.status();
    (status.blocks_met, status.blocks_missed)
}

#[test]
fn a_block_is_in_time_if_it_is_emitted_within_its_slot() {
    let draft = Draft::default().work("prove", "in", &["proofs"]);
    let mut mill = draft.sequence("proofs").deadline(1_000, true).mill();
    mill.join("a", 1);
    mill.block("in", 0);
    mill.block("in", 1);
    mill.pass(900);
    mill.complete("a", "prove/0/0", 1);
    assert_eq!(counts(&mill), (0, 0), "it has not left yet");
    mill.tell(proofmill_orchestrator::conversation::SinkEvent::Emitted {
        task: id("emit/0/0"),
        places: Vec::new(),
    });
    assert_eq!(counts(&mill), (1, 0));
    assert!(!mill.has_key("slot.0") && mill.has_key("slot.1"));
    mill.pass(99);
    mill.restart(Duration::ZERO);
    assert_eq!(counts(&mill), (1, 0), "what was counted stays");
    mill.pass(1);
    assert_eq!(counts(&mill), (1, 1), "its time went on over the restart");
    mill.join("a", 1);
    mill.complete("a", "prove/1/0", 1);
    mill.tell(proofmill_orchestrator::conversation::SinkEvent::Emitted {
        task: id("emit/1/0"),
        places: Vec::new(),
    });
    assert_eq!(counts(&mill), (1, 1));
    assert!(
        !mill.has_key("slot.1"),
        "a sequencer waits for a late block"
    );
}

#[test]
fn late_blocks_are_dropped_where_nobody_waits_for_them() {
    for drop in [true, false] {
        let draft = Draft::default().work("witness", "in", &["wit"]);
        let mut mill = draft.work("prove", "wit", &[]).deadline(1_000, drop).mill();
        mill.join("a", 1);
        mill.block("in", 0);
        mill.pass(500);
        mill.block("in", 1);
        mill.complete("a", "witness/0/0", 1);
        mill.pass(500);
        assert_eq!(counts(&mill), (0, 1));
        let dead = mill.core.dead_letter(&id("prove/0/0"));
        let reason = dead.map(|dead| dead.reason.clone());
        assert_eq!(reason.is_some(), drop, "{reason:?}");
        if !drop {
            mill.complete("a", "prove/0/0", 1);
        }
        assert!(!mill.has_key("slot.0"));
        mill.complete("a", "witness/1/0", 1);
        mill.complete("a", "prove/1/0", 1);
        assert_eq!(counts(&mill), (1, 1));
        assert!(!mill.has_key("slot.1"));
    }
}
