//! Emission: in block order, once.

use proofmill_orchestrator::conversation::{Reply, SinkEvent};

use crate::support::{Draft, Mill, id};

fn emitted(mill: &mut Mill, task: &str) {
    mill.tell(SinkEvent::Emitted {
        task: id(task),
        places: Vec::new(),
    });
}

#[test]
fn blocks_wait_for_lower_ones() {
    let mut mill = Draft::default().sequence("in").mill();
    mill.block("in", 2);
    mill.block("in", 1);
    assert!(mill.emitted.is_empty());
    mill.block("in", 0);
    assert_eq!(
        mill.emitted,
        [id("emit/0/0"), id("emit/1/0"), id("emit/2/0")]
    );
}

#[test]
fn what_overlaps_dies_and_what_is_passed_is_skipped() {
    let mut mill = Draft::default().sequence("in").mill();
    mill.send("in", Mill::message(0, 3, "{}"));
    let mut inside = Mill::message(2, 3, "{}");
    inside.part = proofmill_orchestrator::id::Part::new("x").expect("a part");
    mill.send("in", inside);
    mill.send("in", Mill::message(3, 5, "{}"));
    assert_eq!(mill.emitted, [id("emit/0/0")]);
    let status = mill.core.status();
    assert_eq!((status.dead, status.stages[0].counters.skipped), (1, 1));
    let reason = &mill.core.dead_letter(&id("emit/3/0")).expect("dead").reason;
    assert!(reason.contains("overlap"), "{reason}");
}

#[test]
fn a_confirmation_that_overtakes_waits() {
    let mut mill = Draft::default().sequence("in").mill();
    mill.block("in", 0);
    mill.block("in", 1);
    emitted(&mut mill, "emit/1/0");
    assert_eq!(mill.core.status().next_block, Some(0));
    mill.restart(std::time::Duration::ZERO);
    assert_eq!(mill.emitted[2..], [id("emit/0/0"), id("emit/1/0")]);
    emitted(&mut mill, "emit/1/0");
    emitted(&mut mill, "emit/0/0");
    emitted(&mut mill, "emit/0/0");
    assert_eq!(mill.core.status().next_block, Some(2));
    assert!(mill.tasks().is_empty());
}

#[test]
fn marks_below_the_cursor_are_forgotten() {
    let mut mill = Draft::default()
        .work("prove", "in", &["out"])
        .sequence("out")
        .mill();
    mill.join("w", 1);
    for block in 0..250 {
        mill.block("in", block);
        mill.complete("w", &format!("prove/{block}/0"), 1);
        emitted(&mut mill, &format!("emit/{block}/0"));
    }
    // Digests of submitted messages are kept longer, to answer repeated submissions.
    assert!(!mill.has_key("done.prove.0.0"));
    assert!(mill.has_key("done.prove.249.0"));
    let mut again = |block, json| mill.send("in", Mill::message(block, block, json));
    let known = |same| Some(Reply::Duplicate { same });
    assert_eq!(again(0, r#"{"block":0}"#), known(None));
    assert_eq!(again(249, r#"{"block":249}"#), known(Some(true)));
    assert_eq!(again(249, r#"{"block":"other"}"#), known(Some(false)));
    mill.restart(std::time::Duration::ZERO);
    let mut again = |block, json| mill.send("in", Mill::message(block, block, json));
    assert_eq!(again(249, r#"{"block":"other"}"#), known(Some(false)));
}
