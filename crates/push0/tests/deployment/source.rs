//! Tests of `STRATEGY=Block`.

use proofmill_orchestrator::mill::{Mill, Options, Registry};
use proofmill_orchestrator::shutdown::{self, Level};
use proofmill_push0::import::{Deployment as Imported, to_workflow};
use proofmill_workflow::Workflow;
use tokio::sync::mpsc;

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
    // Blocks 11 and 12 are replaced while no source runs.
    node.reorganise(11, 'b');
    node.extend(1);
    let second = source(&deployment, &node, "8");
    assert_eq!(
        numbers(&deployment, 8).await,
        [8, 9, 10, 11, 12, 11, 12, 13]
    );
    deployment
        .until("it says so", async || second.log().contains("reorganised"))
        .await;
    assert!(
        !second.log().contains("secret"),
        "the path of an endpoint may be a key"
    );
    let last = deployment.look("blocks").await.pop().unwrap();
    assert_eq!(
        last.headers.get("Proofmill-Block-Hash").unwrap().as_str(),
        node.hash(13)
    );
    // And while one runs; a second source stands by and emits nothing.
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

#[tokio::test(flavor = "multi_thread")]
async fn an_imported_source_makes_the_messages_that_it_made_before() {
    let deployment = Deployment::with_stream().await;
    let node = Node::start(10).await;
    let _source = source(&deployment, &node, "8");
    let before = deployment.read("blocks", 3).await;

    // The program copies its input to its output.
    let program = deployment.program("same.sh", r#"printf '%s' "$input" > "$out""#);
    let compose = format!(
        "services:\n  blocks:\n    command: collector\n    environment:\n      \
         - STRATEGY=Block\n      - L1_RPC=${{L1_RPC}}\n      - NEXT_BLOCK=8\n      \
         - OUTPUT_QUEUE=mo.blocks\n      - COLLECT_TIMEOUT_PERIOD_MILLIS=50\n  prove:\n    \
         command: dispatcher\n    environment:\n      - INPUT_QUEUE=mo.blocks\n      \
         - OUTPUT_QUEUE=mo.proofs\n      - BINARY={}\n",
        program.display()
    );
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("compose.yml");
    std::fs::write(&file, compose).unwrap();
    std::fs::write(folder.path().join(".env"), format!("L1_RPC={}\n", node.url)).unwrap();
    let imported = to_workflow(&Imported::read(&[&file]).unwrap()).unwrap();
    let workflow = Workflow::parse(&imported.workflow, folder.path().join("workflow.toml"));
    let workflow = workflow.unwrap();

    let (stream, mut emitted) = mpsc::channel(64);
    let options = Options {
        stream: Some(stream),
        ..Options::in_directory(folder.path().join("state"))
    };
    let mill = Mill::open(&workflow, Registry::default(), options)
        .await
        .unwrap();
    let (stop, shutdown) = shutdown::channel();
    let running = tokio::spawn(mill.run(shutdown));
    let mut after = Vec::new();
    for block in 8..=11 {
        if block == 11 {
            node.extend(1);
        }
        let next = tokio::time::timeout(crate::support::LIMIT, emitted.recv()).await;
        let next = next.expect("in time").expect("the mill runs");
        assert_eq!(next.first, block);
        after.push(String::from_utf8(next.bytes.to_vec()).unwrap());
    }
    stop.raise(Level::Drain);
    running.await.unwrap().unwrap();
    let before: Vec<String> = before.into_iter().map(|stored| stored.payload).collect();
    assert_eq!(after[..3], before[..]);
    assert_eq!(after[3], "11");
}
