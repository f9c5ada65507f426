//! Large payloads are kept as long as a record or process may refer to them, and no longer.

use std::path::Path;
use std::time::Duration;

use proofmill_orchestrator::conversation::Reply;
use proofmill_orchestrator::mill::BlobSweep;
use proofmill_orchestrator::shutdown::Level;
use serde_json::json;

use crate::support::{Background, Script, one_stage};

fn text() -> String {
    one_stage("blobs", "", "[[queue]]\nname = \"blocks\"\nq_max = 2")
}

fn payload(block: u64) -> serde_json::Value {
    json!({ "block": block, "witness": format!("{block:08}").repeat(12_500) })
}

fn blobs_in(state: &Path) -> usize {
    let folders = std::fs::read_dir(state.join("blobs")).expect("the blobs");
    let files = folders
        .flat_map(|folder| std::fs::read_dir(folder.expect("an entry").path()).expect("a folder"));
    files.count()
}

/// Messages that waited for a full queue while a worker was busy for longer than blobs were kept once died
/// with "there is no blob".
#[tokio::test(flavor = "multi_thread")]
async fn payloads_that_wait_behind_a_busy_worker_outlast_the_sweeps() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let script = Script::closed();
    let sweep = BlobSweep {
        every: Duration::from_millis(10),
        grace: Duration::from_millis(50),
    };
    let mut mill = Background::start_sweeping(&text(), &script, dir.path(), sweep).await;
    let queue = mill.handle.plan().queue_named("blocks").expect("a queue");
    let mut waiting = tokio::task::JoinSet::new();
    for block in 0..20 {
        let (port, blobs) = (mill.handle.source(), mill.mill_blobs.clone());
        waiting.spawn(async move {
            let message = crate::support::message(block, payload(block).to_string());
            let producer = "test".into();
            let brought =
                proofmill_orchestrator::source::submit(&port, &blobs, &producer, queue, message);
            brought.await.expect("an answer")
        });
    }
    // Messages that come before every lower block are admitted: few, in any order.
    mill.until("half of them wait at the door", |core| {
        core.status().producers_waiting >= 10
    })
    .await;
    // About sixty sweeps.
    tokio::time::sleep(Duration::from_millis(600)).await;
    script.open_below(u64::MAX);
    for block in 0..20 {
        let emitted = mill.next().await;
        assert_eq!(emitted.first, block);
        let found: serde_json::Value = serde_json::from_slice(&emitted.bytes).expect("JSON");
        assert_eq!(found, payload(block));
    }
    while let Some(reply) = waiting.join_next().await {
        assert_eq!(reply.expect("no panic"), Reply::Accepted);
    }
    // Unreferenced blobs are removed while the mill runs.
    let began = std::time::Instant::now();
    while blobs_in(dir.path()) > 0 {
        assert!(began.elapsed() < crate::support::PATIENCE, "blobs are left");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    mill.stop.raise(Level::Drain);
    assert!(mill.ended().await.status.dead == 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_ends_at_once_leaves_no_blobs_but_those_that_are_named() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let script = Script::open();
    script.curse(2, true);
    let mut mill = Background::start(&text(), &script, dir.path(), true).await;
    for block in 0..3 {
        let reply = mill.submit("blocks", block, payload(block).to_string());
        assert_eq!(reply.await, Reply::Accepted);
    }
    assert_eq!((mill.next().await.first, mill.next().await.first), (0, 1));
    mill.until("the third is dead", |core| core.status().dead == 1)
        .await;
    mill.stop.raise(Level::Drain);
    mill.ended().await;
    assert_eq!(blobs_in(dir.path()), 1, "the dead letter's");
}
