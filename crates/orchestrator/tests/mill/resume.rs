//! Recovery of a mill after the one before it was dropped without a shutdown.

use std::path::Path;

use proofmill_orchestrator::conversation::Reply;

use crate::support::{Background, Script};

const TEXT: &str = r#"
    name = "resume"
    [[source]]
    name = "blocks"
    kind = "range"
    end = 29
    output = "blocks"
    [[queue]]
    name = "blocks"
    q_max = 6
    [[dispatcher]]
    name = "prove"
    input = "blocks"
    output = "proofs"
    workers = 2
    executor = { kind = "native", prover = "test" }
    [sequencer]
    input = "proofs"
    directory = "emitted"
"#;

fn files(state: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(state.join("emitted")).expect("the sequencer's directory");
    let mut names: Vec<String> = entries
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .filter(|name| !name.starts_with('.'))
        .collect();
    names.sort();
    names
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_mill_loses_nothing_and_repeats_nothing_that_was_finished() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let script = Script::closed();
    let mut emitted = Vec::new();
    for open_below in [7, 11, 20] {
        script.open_below(open_below);
        let mut mill = Background::start(TEXT, &script, dir.path(), false).await;
        while emitted.last().is_none_or(|last| last + 1 < open_below) {
            let block = mill.next().await.first;
            // The message at the cursor may come again.
            if emitted.last() != Some(&block) {
                emitted.push(block);
            }
        }
        mill.crash().await;
    }
    script.open_below(u64::MAX);
    let mut mill = Background::start(TEXT, &script, dir.path(), false).await;
    while emitted.last() != Some(&29) {
        let block = mill.next().await.first;
        if emitted.last() != Some(&block) {
            emitted.push(block);
        }
    }
    let summary = mill.ended().await;
    assert!(summary.is_complete(), "{summary:?}");
    assert_eq!(emitted, (0..30).collect::<Vec<u64>>());
    let names: Vec<String> = (0..30).map(|n| format!("{n:010}-{n:010}.json")).collect();
    assert_eq!(files(dir.path()), names);
    // Each time, only the tasks that the two workers had when the mill was dropped were begun again.
    let begun = script.begun();
    let again: u32 = begun.values().map(|times| times - 1).sum();
    assert!(again <= 3 * 2, "{begun:?}");
    assert!(
        (0..6).all(|block| begun[&block] == 1),
        "emitted before the first crash: {begun:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_goes_on_from_what_was_acknowledged() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let script = Script::closed();
    let mill = Background::start(TEXT, &script, dir.path(), false).await;
    mill.until("the queue is full", |core| {
        core.status().producers_waiting > 0
    })
    .await;
    mill.crash().await;

    let mill = Background::start(TEXT, &script, dir.path(), false).await;
    let (position, live) = mill
        .handle
        .examine(|core| {
            (
                core.source_next("blocks").unwrap_or(0),
                core.tasks(|_| true),
            )
        })
        .await
        .expect("the coordinator runs");
    let recorded = live
        .iter()
        .map(|task| task.record.id.block)
        .max()
        .expect("something is live");
    assert!(
        position <= recorded + 1,
        "position {position}, recorded up to {recorded}"
    );
    assert!((0..position).all(|block| live.iter().any(|task| task.record.id.block == block)));
    script.open_below(u64::MAX);
    let summary = mill.ended().await;
    assert!(summary.is_complete(), "{summary:?}");
    assert_eq!(summary.status.next_block, Some(30));
    assert!(script.begun().values().all(|times| *times <= 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_finished_is_a_duplicate_after_a_crash_too() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let text = r#"
        name = "duplicates"
        [[source]]
        name = "in"
        kind = "submit"
        output = "blocks"
        [[dispatcher]]
        name = "prove"
        input = "blocks"
        executor = { kind = "native", prover = "test" }
    "#;
    let script = Script::closed();
    script.open_below(1);
    let mill = Background::start(text, &script, dir.path(), true).await;
    assert_eq!(mill.submit("blocks", 0, "{}").await, Reply::Accepted);
    assert_eq!(mill.submit("blocks", 1, "{}").await, Reply::Accepted);
    mill.until("block 0 is done", |core| {
        core.status().stages[0].counters.completed == 1
    })
    .await;
    // A reply means that all earlier records are durable.
    assert_eq!(mill.submit("blocks", 2, "{}").await, Reply::Accepted);
    mill.crash().await;

    let mill = Background::start(text, &script, dir.path(), true).await;
    for block in 0..3 {
        let same = Some(true);
        assert_eq!(
            mill.submit("blocks", block, "{}").await,
            Reply::Duplicate { same },
            "block {block}"
        );
    }
    let other = mill.submit("blocks", 1, "[]").await;
    assert!(matches!(other, Reply::Differs { .. }), "{other:?}");
    script.open_below(u64::MAX);
    mill.handle.when_idle().await.expect("the coordinator runs");
    assert_eq!(script.begun()[&0], 1);
    mill.crash().await;
}
