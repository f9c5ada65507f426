//! A sink that fails for a while.

use std::time::Duration;

use proofmill_orchestrator::conversation::Reply;
use proofmill_orchestrator::shutdown::Level;

use crate::support::{Background, Script, one_stage};

#[tokio::test(flavor = "multi_thread")]
async fn emissions_wait_for_the_sink_and_then_leave_in_order() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let text = one_stage("sink", "", "directory = \"emitted\"");
    let mut mill = Background::start(&text, &Script::open(), dir.path(), true).await;
    assert_eq!(mill.submit("blocks", 0, "{}").await, Reply::Accepted);
    assert_eq!(mill.next().await.first, 0);

    // Permissions would not stop a test that runs as root; a missing directory does.
    let (emitted, away) = (dir.path().join("emitted"), dir.path().join("away"));
    std::fs::rename(&emitted, &away).expect("renamed");
    for block in 1..4 {
        assert_eq!(mill.submit("blocks", block, "{}").await, Reply::Accepted);
    }
    mill.until("all are proved", |core| {
        core.status().stages[0].counters.completed == 4
    })
    .await;
    let early = tokio::time::timeout(Duration::from_millis(300), mill.emitted.recv()).await;
    assert!(early.is_err(), "nothing leaves without its file: {early:?}");
    let cursor = mill
        .handle
        .operator()
        .status()
        .await
        .expect("the coordinator runs")
        .next_block;
    assert_eq!(cursor, Some(1), "nor does the cursor move");

    std::fs::rename(&away, &emitted).expect("renamed back");
    for block in 1..4 {
        assert_eq!(mill.next().await.first, block);
        assert!(
            emitted
                .join(format!("{block:010}-{block:010}.json"))
                .exists()
        );
    }
    mill.stop.raise(Level::Drain);
    let summary = mill.ended().await;
    assert_eq!(
        (summary.status.live, summary.status.next_block),
        (0, Some(4))
    );
}
