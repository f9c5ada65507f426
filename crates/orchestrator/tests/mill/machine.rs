//! Failures of the machine: no attempt is counted, and nothing is lost while they last.

use std::fs;
use std::time::Duration;

use proofmill_orchestrator::conversation::Reply;
use proofmill_orchestrator::shutdown::Level;

use crate::support::{Background, Script, one_stage, stage};

/// The file of a workflow in which a task is dead after one failed attempt.
fn text() -> String {
    one_stage("machine", "workers = 2\nr_max = 0", "")
}

/// JSON with more bytes than a record may hold inline.
fn large(block: u64) -> String {
    format!(r#"{{"block":{block},"pad":"{}"}}"#, "x".repeat(100_000))
}

/// Asserts that the workers are paused for want of blobs, and that no attempt was counted.
async fn is_paused(mill: &Background) {
    mill.until("a pause", |core| !core.status().paused.is_empty())
        .await;
    let status = mill.handle.operator().status().await.expect("it runs");
    let reason = &status.paused[0].reason;
    assert!(reason.starts_with("no blob store: cannot "), "{reason}");
    assert_eq!(stage(&status, "prove").counters.failed, 0);
    assert_eq!(status.dead, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_whose_blob_cannot_be_stored_is_kept_and_is_no_failed_attempt() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let script = Script::closed();
    let mut mill = Background::start(&text(), &script, dir.path(), true).await;
    for block in 0..6 {
        assert_eq!(
            mill.submit("blocks", block, large(block)).await,
            Reply::Accepted
        );
    }
    script
        .until("two have begun", |script| script.begun().len() >= 2)
        .await;
    // The store is out of reach: its directory is moved away and a file takes its place.
    let (blobs, away) = (dir.path().join("blobs"), dir.path().join("away"));
    fs::rename(&blobs, &away).expect("moved");
    fs::write(&blobs, "").expect("written");
    script.open_below(u64::MAX);
    is_paused(&mill).await;
    // Long enough for several tries.
    tokio::time::sleep(Duration::from_secs(2)).await;
    is_paused(&mill).await;
    assert_eq!(script.begun().len(), 2, "nothing more was taken");

    fs::remove_file(&blobs).expect("removed");
    fs::rename(&away, &blobs).expect("moved back");
    for block in 0..6 {
        let emitted = mill.next().await;
        assert_eq!(
            (emitted.first, emitted.bytes.len() > 100_000),
            (block, true)
        );
    }
    assert!(
        script.begun().values().all(|count| *count == 1),
        "a result that could not be stored was made again: {:?}",
        script.begun()
    );
    let status = mill.handle.operator().status().await.expect("it runs");
    let counters = stage(&status, "prove").counters;
    assert_eq!(
        (counters.completed, counters.failed, status.dead),
        (6, 0, 0)
    );
    mill.until("no pause", |core| core.status().paused.is_empty())
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payload_that_cannot_be_fetched_is_no_failed_attempt() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let script = Script::closed();
    let mut mill = Background::start(&text(), &script, dir.path(), true).await;
    // Workers are busy with small tasks, and the others wait.
    for block in 0..2 {
        let json = format!(r#"{{"block":{block}}}"#);
        assert_eq!(mill.submit("blocks", block, json).await, Reply::Accepted);
    }
    script
        .until("two have begun", |script| script.begun().len() >= 2)
        .await;
    for block in 2..6 {
        assert_eq!(
            mill.submit("blocks", block, large(block)).await,
            Reply::Accepted
        );
    }
    let (blobs, away) = (dir.path().join("blobs"), dir.path().join("away"));
    fs::rename(&blobs, &away).expect("moved");
    fs::write(&blobs, "").expect("written");
    script.open_below(u64::MAX);
    for block in 0..2 {
        assert_eq!(mill.next().await.first, block);
    }
    is_paused(&mill).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    is_paused(&mill).await;
    fs::remove_file(&blobs).expect("removed");
    fs::rename(&away, &blobs).expect("moved back");
    for block in 2..6 {
        assert_eq!(mill.next().await.first, block);
    }
    let status = mill.handle.operator().status().await.expect("it runs");
    let counters = stage(&status, "prove").counters;
    assert_eq!(
        (counters.completed, counters.failed, status.dead),
        (6, 0, 0)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dispatcher_that_is_paused_drains_and_hands_everything_back() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let script = Script::closed();
    let mill = Background::start(&text(), &script, dir.path(), true).await;
    for block in 0..4 {
        assert_eq!(
            mill.submit("blocks", block, large(block)).await,
            Reply::Accepted
        );
    }
    script
        .until("two have begun", |script| script.begun().len() >= 2)
        .await;
    let (blobs, away) = (dir.path().join("blobs"), dir.path().join("away"));
    fs::rename(&blobs, &away).expect("moved");
    fs::write(&blobs, "").expect("written");
    script.open_below(u64::MAX);
    is_paused(&mill).await;
    mill.stop.raise(Level::Drain);
    mill.stop.raise(Level::Stop);
    mill.ended().await;
    fs::remove_file(&blobs).expect("removed");
    fs::rename(&away, &blobs).expect("moved back");
    let mut again = Background::start(&text(), &Script::open(), dir.path(), true).await;
    for block in 0..4 {
        assert_eq!(again.next().await.first, block);
    }
    let status = again.handle.operator().status().await.expect("it runs");
    assert_eq!(
        (stage(&status, "prove").counters.failed, status.dead),
        (0, 0)
    );
}
