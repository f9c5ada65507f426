//! Tests of messages for a workflow on a cluster, through a process that forwards them to the leader.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use proofmill_api::Submissions;
use proofmill_api::intake::Intake;
use proofmill_bus::{Connection, NatsOptions};
use proofmill_nats_server::NatsServer;
use proofmill_orchestrator::cluster::{self, ClusterError, LedWorkflows, ProcessContext};
use proofmill_orchestrator::mill::Registry;
use proofmill_orchestrator::remote::Role;
use proofmill_orchestrator::shutdown::{self, Level};
use proofmill_workflow::Workflow;
use tokio::task::JoinHandle;

use crate::support::{PATIENCE, address_of, options_on_loopback, post, request, submission};

const WORKFLOW: &str = r#"
name = "far"
[[source]]
name = "outside"
kind = "submit"
output = "blocks"
[[dispatcher]]
name = "prove"
input = "blocks"
output = "proofs"
executor = { kind = "native", prover = "none" }
[sequencer]
input = "proofs"
"#;

const MESSAGES: &str = "/v1/queues/blocks/messages";

async fn context(server: &NatsServer, role: Role, name: &str, state: &Path) -> ProcessContext {
    let workflow = Workflow::parse(WORKFLOW, Path::new("far.toml")).expect("a workflow");
    let mut options = NatsOptions::new(&server.url());
    options.membership = role.membership();
    // A machine that stalls may take longer for an answer than one attempt lasts.
    options.connect_timeout = PATIENCE;
    let connection = Connection::open(options).await.expect("the bus");
    ProcessContext::open(
        connection,
        &workflow,
        Registry::default(),
        state.into(),
        name,
    )
    .await
    .expect("a site")
}

/// A process that leads, or stands by to lead, until it is dropped.
struct Leader {
    leading: LedWorkflows,
    running: JoinHandle<Result<(), ClusterError>>,
    _trigger: shutdown::Trigger,
}

impl Leader {
    async fn start(server: &NatsServer, name: &str, state: &Path) -> Self {
        let context = context(server, Role::Coordinator, name, state).await;
        let leading = LedWorkflows::default();
        let (trigger, shutdown) = shutdown::channel();
        let running = tokio::spawn(cluster::lead(context, leading.clone(), shutdown));
        Self {
            leading,
            running,
            _trigger: trigger,
        }
    }

    /// Ends the leader as if its process had been killed.
    async fn kill(self) {
        self.running.abort();
        let ended = self.running.await.expect_err("it leads until then");
        assert!(ended.is_cancelled());
    }
}

/// The status of a posted message.
async fn posted(address: SocketAddr, block: u64, payload: &str) -> u16 {
    post(address, MESSAGES, &submission(block, payload))
        .await
        .status
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_outlives_the_leader_that_it_was_sent_to() {
    let server = NatsServer::start();
    let folder = tempfile::tempdir().expect("a folder");
    let first = Leader::start(&server, "a", folder.path()).await;
    let led = tokio::time::timeout(PATIENCE, first.leading.wait_until_leading("far")).await;
    led.expect("it leads");
    let second = Leader::start(&server, "b", folder.path()).await;

    let source = context(&server, Role::Source, "s", folder.path()).await;
    let intake = Intake::open(&options_on_loopback())
        .await
        .expect("it listens");
    let address = address_of(&intake);
    let (trigger, mut shutdown) = shutdown::channel();
    let blobs = source.blobs.clone();
    let taking = tokio::spawn(cluster::run_submissions(source, |handle| {
        let stop = async move { shutdown.reached(Level::Drain).await };
        intake.serve(Submissions::new(handle, blobs), stop)
    }));

    assert_eq!(posted(address, 0, "0").await, 201);
    assert_eq!(posted(address, 0, "0").await, 200);
    assert_eq!(posted(address, 0, "1").await, 409);
    // A payload larger than any message of the bus.
    let large = format!("{:?}", "x".repeat(2_000_000));
    assert_eq!(posted(address, 1, &large).await, 201);

    // There is no leader while these are on their way.
    first.kill().await;
    let mut waiting = tokio::task::JoinSet::new();
    for block in 2..20 {
        waiting.spawn(async move { posted(address, block, "2").await });
    }
    assert!(waiting.join_all().await.iter().all(|status| *status == 201));
    let handle = second.leading.wait_until_leading("far").await;
    let status = handle.operator().status().await.expect("it leads");
    assert_eq!((status.live, status.dead), (20, 0));
    for block in 2..20 {
        assert_eq!(posted(address, block, "2").await, 200);
    }
    let headers = [("host", "localhost")];
    let answer = request(address, "GET", "/v1/status", &headers, "").await;
    assert_eq!((answer.status, &answer.json()["live"]), (200, &20.into()));
    let answer = post(address, "/v1/queues/proofs2/messages", "").await;
    assert!(answer.body.contains("it has blocks, proofs"), "{answer:?}");

    trigger.raise(Level::Drain);
    let taken = tokio::time::timeout(PATIENCE, taking).await;
    taken
        .expect("it ends")
        .expect("no panic")
        .expect("no failure");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_without_an_answer_may_be_sent_again() {
    let server = NatsServer::start();
    let folder = tempfile::tempdir().expect("a folder");
    let leader = Leader::start(&server, "a", folder.path()).await;
    let source = context(&server, Role::Source, "s", folder.path()).await;
    let mut options = options_on_loopback();
    options.patience = Duration::from_millis(200);
    let intake = Intake::open(&options).await.expect("it listens");
    let address = address_of(&intake);
    let blobs = source.blobs.clone();
    let taking = tokio::spawn(cluster::run_submissions(source, |handle| {
        intake.serve(Submissions::new(handle, blobs), std::future::pending())
    }));
    let led = tokio::time::timeout(PATIENCE, leader.leading.wait_until_leading("far")).await;
    led.expect("it leads");
    leader.kill().await;
    let answer = post(address, MESSAGES, &submission(1, "1")).await;
    assert_eq!(
        (answer.status, answer.header("retry-after")),
        (503, Some("1")),
        "{answer:?}"
    );
    let headers = [("host", "localhost")];
    let answer = request(address, "GET", "/v1/status", &headers, "").await;
    assert_eq!(answer.status, 503, "{answer:?}");

    // It is forwarded as soon as there is a leader, even if it was submitted again by then.
    let leader = Leader::start(&server, "b", folder.path()).await;
    let handle = tokio::time::timeout(PATIENCE, leader.leading.wait_until_leading("far")).await;
    let handle = handle.expect("it leads");
    let recorded = async {
        while handle.operator().status().await.expect("it leads").live == 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let recorded = tokio::time::timeout(PATIENCE, recorded).await;
    recorded.expect("it is recorded");
    // On a loaded machine the patience may end before the answer is there.
    let known = async {
        loop {
            match posted(address, 1, "1").await {
                503 => {}
                status => break status,
            }
        }
    };
    let known = tokio::time::timeout(PATIENCE, known).await;
    assert_eq!(known.expect("an answer"), 200);
    taking.abort();
}
