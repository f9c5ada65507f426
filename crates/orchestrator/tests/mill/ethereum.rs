//! A source follows a chain that is reorganised.

use std::time::Duration;

use proofmill_orchestrator::core::Core;
use proofmill_orchestrator::shutdown::Level;
use proofmill_orchestrator::sink::Emitted;
use serde_json::{Value, json};

use crate::node::Node;
use crate::support::{Background, PATIENCE, Script};

/// A workflow that proves and emits the blocks of `node`, from block `start` on.
fn workflow(node: &Node, start: u64, more: &str) -> String {
    // Nothing listens on the first endpoint, so the second is asked.
    format!(
        r#"
        name = "rollup"
        [[source]]
        name = "chain"
        kind = "ethereum"
        rpc = ["http://127.0.0.1:9/", "{}"]
        poll = "5ms"
        {more}
        output = "blocks"
        [[dispatcher]]
        name = "prove"
        input = "blocks"
        output = "proofs"
        workers = 8
        executor = {{ kind = "native", prover = "test" }}
        [sequencer]
        input = "proofs"
        start = {start}
        "#,
        node.url
    )
}

fn payload(emitted: &Emitted) -> Value {
    serde_json::from_slice(&emitted.bytes).expect("JSON")
}

/// Waits for the next emitted block, and checks that it is the node's.
async fn leaves(mill: &mut Background, node: &Node, block: usize) {
    let emitted = mill.next().await;
    assert_eq!(emitted.first, block as u64);
    let hash = node.hash(block);
    assert_eq!(
        payload(&emitted),
        json!({
            "number": block,
            "hash": hash,
            "parentHash": node.hash(block - 1),
            "timestamp": 1_700_000_000 + 12 * block,
        })
    );
    assert_eq!(emitted.part.as_str(), &hash[2..34]);
}

#[tokio::test(flavor = "multi_thread")]
async fn blocks_are_brought_over_failures_and_brought_again_when_they_change() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let node = Node::start(10).await;
    node.fail(3);
    let text = workflow(&node, 8, "from = 8");
    let script = Script::closed();
    script.open_below(10);
    let mut mill = Background::start(&text, &script, dir.path(), true).await;
    leaves(&mut mill, &node, 8).await;
    leaves(&mut mill, &node, 9).await;
    node.extend(2);
    mill.until("12 is being proved", |core| {
        core.tasks(|task| task.id.block == 12).len() == 1
    })
    .await;
    // Blocks 11 and 12 are being proved when they change.
    node.reorganise(11, 'b');
    node.extend(1);
    mill.until("13 is there", |core| {
        core.tasks(|task| task.id.block == 13).len() == 1
    })
    .await;
    script.open_below(u64::MAX);
    for block in 10..14 {
        leaves(&mut mill, &node, block).await;
    }
    let status = mill.handle.operator().status().await.expect("a status");
    assert_eq!(status.blocks_stale, 0);
    assert_eq!(status.dead, 0);
    mill.until("13 counts as emitted", |core| {
        core.status().next_block == Some(14)
    })
    .await;

    // Emitted blocks that change stay, and are counted; later blocks follow the new chain.
    node.reorganise(12, 'c');
    node.extend(2);
    for block in 14..16 {
        leaves(&mut mill, &node, block).await;
    }
    let status = mill.handle.operator().status().await.expect("a status");
    assert_eq!(status.blocks_stale, 2);
    mill.until("all have left", |core| core.status().next_block == Some(16))
        .await;
    mill.stop.raise(Level::Drain);
    mill.ended().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chain_that_changes_while_nobody_looks_is_found_out() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let node = Node::start(10).await;
    let text = workflow(&node, 7, "from = -3\nreorg_depth = 4");
    let script = Script::closed();
    script.open_below(9);
    let mut mill = Background::start(&text, &script, dir.path(), true).await;
    leaves(&mut mill, &node, 7).await;
    leaves(&mut mill, &node, 8).await;
    mill.until("8 counts as emitted", |core| {
        core.status().next_block == Some(9)
    })
    .await;
    node.extend(3);
    mill.until("13 is there", |core| {
        core.tasks(|task| task.id.block == 13).len() == 1
    })
    .await;
    mill.crash().await;
    node.reorganise(11, 'b');
    let begun = script.begun();
    let mut mill = Background::start(&text, &script, dir.path(), true).await;
    node.extend(1);
    mill.until("14 is there", |core| {
        core.tasks(|task| task.id.block == 14).len() == 1
    })
    .await;
    script.open_below(u64::MAX);
    for block in 9..15 {
        leaves(&mut mill, &node, block).await;
    }
    assert_eq!(
        script.begun()[&8],
        begun[&8],
        "what was done is not done again"
    );
    mill.stop.raise(Level::Drain);
    mill.ended().await;
}

/// A workflow as [`workflow`], whose queue of blocks is full when `q_max` of them wait for its only worker.
fn narrow(node: &Node, start: u64, q_max: u32, more: &str) -> String {
    let queue = format!("[[queue]]\nname = \"blocks\"\nq_max = {q_max}\n[[dispatcher]]");
    workflow(node, start, more)
        .replace("[[dispatcher]]", &queue)
        .replace("workers = 8", "workers = 1")
}

/// Waits until the node was asked for a block.
async fn is_read(node: &Node, block: usize) {
    let asked = async {
        while !node.was_asked(block) {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    let asked = tokio::time::timeout(PATIENCE, asked).await;
    asked.expect("the source reads the block");
}

/// Waits until the core has block `block` of the node's chain, and of no other.
async fn is_the_node_s(mill: &Background, node: &Node, block: usize) {
    let part = node.hash(block)[2..34].to_owned();
    mill.until("the block is the node's", move |core| {
        let tasks = core.tasks(|task| task.id.block == block as u64);
        tasks.len() == 1 && tasks[0].record.id.part.as_str() == part
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reorganisation_is_noticed_while_a_queue_is_full() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let node = Node::start(12).await;
    let script = Script::closed();
    let text = narrow(&node, 8, 1, "from = 8");
    let mut mill = Background::start(&text, &script, dir.path(), true).await;
    // Block 8 is being proved, 9 fills the queue, 10 waits for room, and 11 for 10.
    let full = |core: &Core| core.status().producers_waiting == 1 && core.status().live == 2;
    mill.until("the queue is full", full).await;
    for fork in ['b', 'c'] {
        node.reorganise(9, fork);
        is_the_node_s(&mill, &node, 9).await;
        mill.until("the queue is full", full).await;
    }
    // The block that is being proved.
    node.reorganise(8, 'd');
    is_the_node_s(&mill, &node, 8).await;
    mill.until("the queue is full", full).await;
    // Block 11 has not been submitted, so nothing is taken back.
    node.reorganise(11, 'e');
    tokio::time::sleep(Duration::from_millis(200)).await;
    is_the_node_s(&mill, &node, 9).await;
    script.open_below(u64::MAX);
    for block in 8..13 {
        leaves(&mut mill, &node, block).await;
    }
    mill.until("all have left", |core| core.status().next_block == Some(13))
        .await;
    let status = mill.handle.operator().status().await.expect("a status");
    assert_eq!((status.blocks_stale, status.dead, status.live), (0, 0, 0));
    assert_eq!(
        script.begun()[&11],
        1,
        "only the chain's block 11 is proved"
    );
    mill.stop.raise(Level::Drain);
    mill.ended().await;
}

/// After a crash the source submits its last blocks again, and then waits with the next.
#[tokio::test(flavor = "multi_thread")]
async fn a_reorganisation_is_noticed_while_a_queue_is_full_after_a_crash() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let node = Node::start(13).await;
    let script = Script::closed();
    let text = narrow(&node, 8, 3, "from = 8\nreorg_depth = 5");
    let full = |core: &Core| core.status().producers_waiting == 1 && core.status().live == 4;
    for (from, fork) in [(11, 'b'), (10, 'c'), (8, 'd')] {
        node.forget_asked();
        let mill = Background::start(&text, &script, dir.path(), true).await;
        mill.until("the queue is full", full).await;
        // Blocks that the source brings only after the change are the new ones, and no change for it.
        is_read(&node, from).await;
        node.reorganise(from, fork);
        is_the_node_s(&mill, &node, from).await;
        mill.until("the queue is full", full).await;
        mill.crash().await;
    }
    let mut mill = Background::start(&text, &script, dir.path(), true).await;
    script.open_below(u64::MAX);
    for block in 8..14 {
        leaves(&mut mill, &node, block).await;
    }
    mill.until("all have left", |core| core.status().next_block == Some(14))
        .await;
    let status = mill.handle.operator().status().await.expect("a status");
    assert_eq!((status.blocks_stale, status.dead, status.live), (0, 0, 0));
    mill.stop.raise(Level::Drain);
    mill.ended().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payload_of_the_workflow_s_own_is_brought_instead() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let node = Node::start(10).await;
    let template = r#"payload = { height = "{block}", id = "{block}-{hash}", of = ["{parent}"] }"#;
    let text = workflow(&node, 8, &format!("from = 8\n{template}"));
    let script = Script::open();
    let mut mill = Background::start(&text, &script, dir.path(), true).await;
    for block in 8..=10 {
        let emitted = mill.next().await;
        let (hash, parent) = (node.hash(block), node.hash(block - 1));
        assert_eq!(
            payload(&emitted),
            json!({ "height": block, "id": format!("{block}-{hash}"), "of": [parent] })
        );
    }
    mill.stop.raise(Level::Drain);
    mill.ended().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn blocks_are_brought_when_enough_follow_them_and_whole_if_wanted() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let node = Node::start(10).await;
    let text = workflow(&node, 8, "from = 8\nconfirmations = 2\nfull = true");
    let script = Script::open();
    let mut mill = Background::start(&text, &script, dir.path(), true).await;
    let emitted = mill.next().await;
    assert_eq!(emitted.first, 8);
    let block = &payload(&emitted)["block"];
    assert_eq!(block["transactions"], json!([{ "nonce": "0x0" }]));
    node.extend(1);
    assert_eq!(mill.next().await.first, 9);
    mill.until("nothing more is brought", |core| core.status().live == 0)
        .await;
    mill.stop.raise(Level::Drain);
    mill.ended().await;
}
