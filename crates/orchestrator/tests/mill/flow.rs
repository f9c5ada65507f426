//! Workflows from sources to sinks without faults: grouping, fan-out, blobs, priorities, backpressure.

use std::collections::BTreeMap;

use proofmill_orchestrator::conversation::Reply;
use serde_json::{Value, json};

use crate::support::{Background, Script, stage};

#[tokio::test(flavor = "multi_thread")]
async fn every_block_is_proved_gathered_and_emitted_once() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let text = r#"
        name = "whole"
        [[source]]
        name = "blocks"
        kind = "range"
        end = 39
        output = "blocks"
        [[dispatcher]]
        name = "prove"
        input = "blocks"
        output = "proofs"
        workers = 3
        executor = { kind = "native", prover = "test" }
        [[collector]]
        name = "gather"
        inputs = ["proofs"]
        output = "groups"
        strategy = { kind = "sequential", n = 4 }
        [sequencer]
        input = "groups"
        directory = "emitted"
    "#;
    let script = Script::open();
    let mut mill = Background::start(text, &script, dir.path(), false).await;
    for first in (0..40).step_by(4) {
        let group = mill.next().await;
        assert_eq!((group.first, group.last), (first, first + 3));
        let blocks: Vec<Value> = (first..first + 4)
            .map(|block| json!({ "block": block }))
            .collect();
        assert_eq!(
            serde_json::from_slice::<Value>(&group.bytes).expect("JSON"),
            Value::Array(blocks)
        );
        let file = format!("emitted/{first:010}-{:010}.json", first + 3);
        let written =
            std::fs::read(dir.path().join(file)).expect("it is there before the stream has it");
        assert_eq!(written, group.bytes);
    }
    let summary = mill.ended().await;
    assert!(summary.is_complete(), "{summary:?}");
    assert_eq!(summary.sources["blocks"].accepted, 40);
    assert_eq!(stage(&summary.status, "prove").counters.completed, 40);
    assert!(script.begun().values().all(|times| *times == 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_fan_out_and_their_results_come_together_again() {
    let dir = tempfile::tempdir().expect("temporary directory");
    // Shell scripts see `--input-path IN --output-path OUT` as `$1` to `$4`.
    let text = r#"
        name = "fan"
        [[source]]
        name = "blocks"
        kind = "range"
        end = 5
        output = "blocks"
        [[dispatcher]]
        name = "split"
        input = "blocks"
        output = "pieces"
        fan_out = true
        workers = 2
        executor = { kind = "process", program = "/bin/sh", args = ["-c", 'n=$(tr -dc 0-9 < "$2"); printf "[{\"id\":$n,\"piece\":0},{\"id\":$n,\"piece\":1},{\"id\":$n,\"piece\":2}]" > "$4"', "split"] }
        [[dispatcher]]
        name = "prove"
        input = "pieces"
        output = "proofs"
        workers = 3
        executor = { kind = "process", program = "/bin/sh", args = ["-c", 'cp "$2" "$4"', "prove"] }
        [[collector]]
        name = "gather"
        inputs = ["proofs"]
        output = "groups"
        strategy = { kind = "match", k = 3, group_by = "/id" }
        [sequencer]
        input = "groups"
    "#;
    let mut mill = Background::start(text, &Script::open(), dir.path(), false).await;
    for block in 0..6 {
        let group = mill.next().await;
        assert_eq!((group.first, group.last), (block, block));
        let pieces: Vec<Value> = (0..3)
            .map(|piece| json!({ "id": block, "piece": piece }))
            .collect();
        assert_eq!(
            serde_json::from_slice::<Value>(&group.bytes).expect("JSON"),
            Value::Array(pieces)
        );
    }
    let summary = mill.ended().await;
    assert!(summary.is_complete(), "{summary:?}");
    let scratch = std::fs::read_dir(dir.path().join("scratch")).expect("scratch directory");
    assert_eq!(scratch.count(), 0, "nothing is left behind");
}

#[tokio::test(flavor = "multi_thread")]
async fn large_payloads_pass_stages_and_collectors_as_blobs() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let text = r#"
        name = "large"
        [[source]]
        name = "in"
        kind = "submit"
        output = "blocks"
        [[dispatcher]]
        name = "first"
        input = "blocks"
        output = "halves"
        executor = { kind = "native", prover = "test" }
        [[dispatcher]]
        name = "second"
        input = "halves"
        output = "proofs"
        executor = { kind = "native", prover = "test" }
        [[collector]]
        name = "gather"
        inputs = ["proofs"]
        output = "groups"
        strategy = { kind = "sequential", n = 2 }
        [sequencer]
        input = "groups"
    "#;
    let script = Script::closed();
    let mut mill = Background::start(text, &script, dir.path(), true).await;
    let payload =
        |block: u64| json!({ "block": block, "witness": block.to_string().repeat(200_000) });
    for block in 0..2 {
        let reply = mill
            .submit("blocks", block, payload(block).to_string())
            .await;
        assert_eq!(reply, Reply::Accepted);
    }
    let live = mill
        .handle
        .live_blobs()
        .await
        .expect("the coordinator runs");
    assert_eq!(live.len(), 2, "the log refers to a blob for each payload");
    script.open_below(u64::MAX);
    let group = mill.next().await;
    let found: Value = serde_json::from_slice(&group.bytes).expect("JSON");
    assert_eq!(found, json!([payload(0), payload(1)]));
    mill.handle.when_idle().await.expect("the coordinator runs");
    assert!(
        mill.handle
            .live_blobs()
            .await
            .expect("the coordinator runs")
            .is_empty()
    );
    mill.stop
        .raise(proofmill_orchestrator::shutdown::Level::Drain);
    mill.ended().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shared_group_runs_the_lowest_block_of_any_of_its_stages() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let text = r#"
        name = "shared"
        [[source]]
        name = "in"
        kind = "submit"
        output = "blocks"
        [[dispatcher]]
        name = "first"
        input = "blocks"
        output = "halves"
        group = "provers"
        executor = { kind = "native", prover = "test" }
        [[dispatcher]]
        name = "second"
        input = "halves"
        output = "proofs"
        group = "provers"
        executor = { kind = "native", prover = "test" }
        [sequencer]
        input = "proofs"
    "#;
    let script = Script::closed();
    let mut mill = Background::start(text, &script, dir.path(), true).await;
    mill.until("both workers are there", |core| core.status().workers == 2)
        .await;
    for block in [3, 2, 1, 0] {
        assert_eq!(mill.submit("blocks", block, "{}").await, Reply::Accepted);
    }
    // The two workers, one for each stage's table, have the first two tasks, and have begun them.
    mill.until("two are leased", |core| core.status().stages[0].leased == 2)
        .await;
    script
        .until("two have begun", |script| script.order().len() >= 2)
        .await;
    script.open_below(u64::MAX);
    for block in 0..4 {
        assert_eq!(mill.next().await.first, block);
    }
    let order = script.order();
    let at = |stage: &str, block: u64| {
        order
            .iter()
            .position(|(s, b)| s == stage && *b == block)
            .expect("it was begun")
    };
    assert!(at("first", 3) < 2 && at("first", 2) < 2, "{order:?}");
    assert!(
        at("first", 0) < at("second", 3),
        "lower blocks come first: {order:?}"
    );
    let mut of_block = BTreeMap::new();
    for (_, block) in &order {
        *of_block.entry(*block).or_insert(0) += 1;
    }
    assert!(of_block.values().all(|times| *times == 2), "{order:?}");
    mill.stop
        .raise(proofmill_orchestrator::shutdown::Level::Drain);
    mill.ended().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn producers_wait_while_a_queue_is_full() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let text = r#"
        name = "full"
        [[source]]
        name = "blocks"
        kind = "range"
        end = 49
        output = "blocks"
        [[queue]]
        name = "blocks"
        q_max = 4
        [[dispatcher]]
        name = "prove"
        input = "blocks"
        output = "proofs"
        executor = { kind = "native", prover = "test" }
        [sequencer]
        input = "proofs"
    "#;
    let script = Script::closed();
    let mut mill = Background::start(text, &script, dir.path(), false).await;
    mill.until("one is leased, four wait, producers wait", |core| {
        let status = core.status();
        let prove = &status.stages[0];
        prove.leased == 1 && prove.waiting == 4 && status.producers_waiting == 45
    })
    .await;
    let position = mill
        .handle
        .examine(|core| core.source_next("blocks"))
        .await
        .expect("an answer");
    assert!(
        position.is_none_or(|next| next <= 5),
        "not beyond what is recorded: {position:?}"
    );
    script.open_below(u64::MAX);
    for block in 0..50 {
        assert_eq!(mill.next().await.first, block);
    }
    assert!(mill.ended().await.is_complete());
}
