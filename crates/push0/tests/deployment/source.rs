//! `STRATEGY=Block`.

use crate::chain::Node;
use crate::support::{Deployment, Role};

fn source(deployment: &Deployment, node: &Node, next_block: &str) -> Role {
    let variables = [
        ("INPUT_QUEUE", "unused"),
        ("OUTPUT_QUEUE", "blocks"),
        ("STRATEGY", "Block"),
        ("NUM_INPUTS", "1"),
        ("SINGLE_OUTPUT", "true"),
        ("COLLECT_TIMEOUT_PERIOD_MILLIS", "50"),
        ("L1_RPC", node.url.as_str()),
        ("NEXT_BLOCK", next_block),
    ];
    deployment.role("collector", &variables)
}

async fn numbers(deployment: &Deployment, at_least: usize) -> Vec<u64> {
    let stored = deployment.read("blocks", at_least).await;
    stored
        .iter()
        .map(|stored| stored.payload.parse().unwrap())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_follows_the_chain_over_failures_restarts_and_forks() {
    let deployment = Deployment::with_stream().await;
    let node = Node::start(10).await;
    node.fail(2);
    let mut first = source(&deployment, &node, "8");
    assert_eq!(numbers(&deployment, 3).await, [8, 9, 10]);
    node.extend(2);
    assert_eq!(numbers(&deployment, 5).await, [8, 9, 10, 11, 12]);
    first.kill();
    // Blocks 11 and 12 are replaced while nobody looks.
    node.reorganise(11, 'b');
    node.extend(1);
    let second = source(&deployment, &node, "8");
    assert_eq!(
        numbers(&deployment, 8).await,
        [8, 9, 10, 11, 12, 11, 12, 13]
    );
    assert!(second.log().contains("reorganised"), "{}", second.log());
    assert!(
        !second.log().contains("secret"),
        "the path of an endpoint may be a key"
    );
    let last = deployment.look("blocks").await.pop().unwrap();
    assert_eq!(
        last.headers.get("Proofmill-Block-Hash").unwrap().as_str(),
        node.hash(13)
    );
    // And while somebody does; a second source stands by and emits nothing.
    let _third = source(&deployment, &node, "8");
    node.reorganise(13, 'c');
    node.extend(1);
    assert_eq!(numbers(&deployment, 10).await[8..], [13, 14]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_begins_behind_the_head_or_at_it() {
    for (next_block, expected) in [("-3", [7, 8, 9, 10].as_slice()), ("", &[10])] {
        let deployment = Deployment::start().await;
        let node = Node::start(10).await;
        let _source = source(&deployment, &node, next_block);
        assert_eq!(numbers(&deployment, expected.len()).await, expected);
    }
}
