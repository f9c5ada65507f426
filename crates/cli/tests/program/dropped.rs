//! Blocks that an operator drops: the command names the waiting sequencer, and the blocks can be submitted again.

use std::fs;

use crate::operate::{blocks, site};
use crate::support::finish;

/// Blocks 0 to 9.
const TEN: &str = "kind = \"range\"\nend = 9";

#[test]
fn a_dropped_block_is_named_and_is_emitted_once_it_is_submitted_again() {
    let site = site(TEN, "");
    site.mark("poison-8");
    finish(&mut site.mill(&[])).failed(1, "1 task is in the dead-letter queue");
    assert_eq!(site.proofs(), blocks(0..=7));

    let dropped = site.ask(&["dlq", "drop", "prove/8/0"]).succeeded();
    assert_eq!(dropped.stdout, "1 task dropped\n");
    for part in [
        "block 8 has not been emitted, and the sequencer emits no later block",
        "proofmill submit --queue blocks --block 8 PAYLOAD",
        "proofmill submit --queue proofs --block 8 PLACEHOLDER",
    ] {
        assert!(
            dropped.stderr.contains(part),
            "no {part:?} in {}",
            dropped.stderr
        );
    }
    // The run says which block it is that does not come, whoever runs it.
    let stuck = finish(&mut site.mill(&[]));
    let stuck = stuck.failed(1, "block 8 has not reached the sequencer; 1 message waits");
    assert_eq!(stuck.json()["status"]["gaps"], serde_json::json!([[8, 8]]));

    let status = site.ask(&["status"]).succeeded().stdout;
    let waits = "block 8 has not reached the sequencer, and later blocks wait\n";
    assert!(status.ends_with(waits), "{status}");

    fs::remove_file(site.file("poison-8")).expect("removed");
    fs::write(site.file("eight.json"), "{\"block\":8}").expect("written");
    let submit = ["submit", "--queue", "blocks", "--block", "8", "eight.json"];
    let submitted = site.ask(&submit).succeeded();
    assert!(
        submitted.stdout.starts_with("accepted"),
        "{}",
        submitted.stdout
    );
    // Once more is nothing new, before it has left and after.
    let again = |told: &str| {
        let again = site.ask(&submit).succeeded();
        assert_eq!(again.stdout, told);
    };
    again("known already: nothing to do\n");
    finish(&mut site.mill(&[])).succeeded();
    assert_eq!(site.proofs(), blocks(0..=9));
    again("known already: nothing to do\n");
    fs::write(site.file("eight.json"), "{\"block\":8,\"other\":1}").expect("written");
    again("finished already, with another payload: this one was not taken\n");
}

#[test]
fn a_gap_can_be_skipped_and_a_drop_without_a_gap_gives_no_warning() {
    let site = site(TEN, "");
    site.mark("poison-3");
    site.mark("poison-5");
    finish(&mut site.mill(&[])).failed(1, "2 tasks are in the dead-letter queue");
    let dropped = site.json(&["dlq", "drop", "--all"]);
    let gap = |block: u64| {
        serde_json::json!({
            "first": block, "last": block, "queue": "blocks", "sequencer_queue": "proofs"
        })
    };
    assert_eq!(dropped["gaps"], serde_json::json!([gap(3), gap(5)]));
    let stuck = finish(&mut site.mill(&[]));
    stuck.failed(
        1,
        "block 3, block 5 have not reached the sequencer; 5 messages wait",
    );
    fs::write(site.file("none.json"), "null").expect("written");
    for block in ["3", "5"] {
        let submit = ["submit", "--queue", "proofs", "--block", block, "none.json"];
        site.ask(&submit).succeeded();
    }
    finish(&mut site.mill(&[])).succeeded();
    assert_eq!(site.proofs(), blocks(0..=9));
}
