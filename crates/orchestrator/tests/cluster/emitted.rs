//! Emissions to a stream of the cluster's own server, on which each role is a user of its own
//! (deploy/nats/cluster.conf).

use std::path::Path;
use std::time::Duration;

use async_nats::ConnectOptions;
use async_nats::jetstream::consumer::{Consumer, pull};
use async_nats::jetstream::stream::{Config, Stream};
use async_nats::jetstream::{self, Context};
use futures_util::StreamExt as _;
use proofmill_bus::{Connection, NatsOptions};
use proofmill_nats_server::Deployed;
use proofmill_orchestrator::cluster::{self, ClusterError, LedWorkflows, ProcessContext};
use proofmill_orchestrator::mill::Registry;
use proofmill_orchestrator::remote::Role;
use proofmill_orchestrator::shutdown::{self, Level, Trigger};
use proofmill_workflow::Workflow;
use tokio::task::JoinHandle;

use crate::deployed::options;
use crate::support::PATIENCE;

const WORKFLOW: &str = r#"
    name = "streamed"
    [[source]]
    name = "blocks"
    kind = "range"
    end = 99
    rate = "200/s"
    output = "blocks"
    [sequencer]
    input = "blocks"
    [[sequencer.sink]]
    kind = "jetstream"
    subject = "proofmill.emitted.streamed"
    stream = "proofmill_emitted"
    backoff = { initial = "5ms", max = "50ms" }
"#;

/// Lifetime of the leases: longer than a machine stalls, and no longer than this test may wait for a killed process's.
const LEASE_TTL: Duration = Duration::from_secs(10);

/// The server, and sites for processes that are users of it.
struct Processes {
    server: Deployed,
    folder: tempfile::TempDir,
}

/// A role that runs until it is ended or killed.
struct Running {
    trigger: Trigger,
    ended: JoinHandle<Result<(), ClusterError>>,
}

// === impl Processes ===

impl Processes {
    fn start() -> Self {
        Self {
            server: Deployed::start(),
            folder: tempfile::tempdir().expect("a directory"),
        }
    }

    /// A context whose user is the user of its role.
    async fn context(&self, role: Role, name: &str) -> ProcessContext {
        let options = NatsOptions {
            lease_ttl: LEASE_TTL,
            ..options(&self.server, role)
        };
        let connection = Connection::open(options).await.expect("the bus");
        let workflow = Workflow::parse(WORKFLOW, Path::new("streamed.toml")).expect("a workflow");
        let state = self.folder.path().join(name);
        ProcessContext::open(connection, &workflow, Registry::default(), state, name)
            .await
            .expect("a site")
    }

    async fn sequencer(&self, name: &str) -> Running {
        let context = self.context(Role::Sequencer, name).await;
        let (trigger, shutdown) = shutdown::channel();
        let handing_out = async move {
            let sequencing = cluster::run_sequencer(context.clone(), Vec::new(), shutdown);
            context.or_refusal(sequencing).await
        };
        Running {
            trigger,
            ended: tokio::spawn(handing_out),
        }
    }

    /// A connection with the server operator's permissions, which may create streams and consumers.
    async fn administrator(&self) -> Context {
        let client = self.server.client.clone();
        let password = Deployed::password("coordinator");
        let client = ConnectOptions::with_user_and_password("coordinator".into(), password)
            .add_root_certificates(self.server.authority.clone())
            .add_client_certificate(client.certificate, client.key)
            .require_tls(true)
            .custom_inbox_prefix("_INBOX.proofmill.coordinator")
            .connect(self.server.server.url())
            .await;
        jetstream::new(client.expect("the server runs"))
    }
}

/// Ids of the stream's first `count` messages.
async fn ids(stream: &Stream, count: usize) -> Vec<String> {
    let consumer: Consumer<pull::OrderedConfig> = stream
        .create_consumer(pull::OrderedConfig::default())
        .await
        .expect("a consumer");
    let messages = consumer.messages().await.expect("messages");
    let ids = messages.take(count).map(|message| {
        let message = message.expect("a message");
        let headers = message.headers.clone().expect("headers");
        headers.get("Nats-Msg-Id").expect("an id").to_string()
    });
    tokio::time::timeout(PATIENCE, ids.collect())
        .await
        .expect("messages come")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_sequencers_user_publishes_each_block_once_whichever_process_dies() {
    let processes = Processes::start();
    let (stop, shutdown) = shutdown::channel();
    let context = processes.context(Role::Coordinator, "coordinator").await;
    let leading = tokio::spawn(cluster::lead(context, LedWorkflows::default(), shutdown));

    // Without the stream, the sequencer reports an error and nothing is emitted.
    let sequencer = processes.sequencer("early").await;
    let error = sequencer.ended.await.expect("no panic");
    let error = error.expect_err("there is no stream").to_string();
    assert!(
        error.contains("subject proofmill.emitted.streamed: no stream"),
        "{error}"
    );
    let config = Config {
        name: "proofmill_emitted".into(),
        subjects: vec!["proofmill.emitted.>".into()],
        ..Config::default()
    };
    let context = processes.administrator().await;
    let mut stream = context.create_stream(config).await.expect("a stream");

    let first = processes.sequencer("first").await;
    let source = processes.context(Role::Source, "source").await;
    let (_keep, unended) = shutdown::channel();
    let bringing = tokio::spawn(cluster::run_sources(source, unended));
    ids(&stream, 20).await;
    first.ended.abort();
    let second = processes.sequencer("second").await;

    let expected: Vec<String> = (0..100)
        .map(|block| format!("streamed/sequencer/{block}/0"))
        .collect();
    assert_eq!(ids(&stream, 100).await, expected);
    let brought = bringing.await.expect("no panic").expect("brought");
    assert_eq!(brought["blocks"].accepted, 100);
    second.trigger.raise(Level::Drain);
    second.ended.await.expect("no panic").expect("no failure");
    let info = stream.info().await.expect("known");
    assert_eq!(info.state.messages, 100);
    stop.raise(Level::Drain);
    leading.await.expect("no panic").expect("no failure");
}
