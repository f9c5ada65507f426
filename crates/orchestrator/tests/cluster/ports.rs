//! Ports of another process work as the ports beside the coordinator do, and a leader lets each role send
//! only its own messages.

use bytes::Bytes;
use proofmill_nats_server::NatsServer;
use proofmill_orchestrator::cluster::{self, LedWorkflows, ProcessContext};
use proofmill_orchestrator::conversation::{Reply, Target, TaskSelection};
use proofmill_orchestrator::coordinator::Handle;
use proofmill_orchestrator::port::Ports;
use proofmill_orchestrator::remote::{Client, RemoteError, Role, Seat};
use proofmill_orchestrator::shutdown;
use proofmill_orchestrator::source::{SourceMessage, submit};
use tokio::task::JoinHandle;

use crate::roles::WORKFLOW;
use crate::support::context;

/// Number of blocks submitted; no worker runs them.
const BLOCKS: u64 = 5;

async fn open(
    context: &ProcessContext,
    role: Role,
) -> (JoinHandle<Result<(), RemoteError>>, Ports) {
    let (connection, blobs) = (context.connection.clone(), context.blobs.clone());
    let opened = Client::open(
        connection,
        blobs,
        context.plan.clone(),
        Seat::of(role),
        "client",
    );
    let (client, ports) = opened.await.expect("the bus");
    (tokio::spawn(client.run()), ports)
}

/// A workflow on a server of its own, and its leader.
struct Chain {
    context: ProcessContext,
    leader: Handle,
    _trigger: shutdown::Trigger,
    _server: NatsServer,
    _folder: tempfile::TempDir,
}

impl Chain {
    async fn lead() -> Self {
        let server = NatsServer::start();
        let folder = tempfile::tempdir().expect("a directory");
        let text = WORKFLOW.replace("END", "99");
        std::fs::write(folder.path().join("workflow.toml"), text).expect("written");
        let context = context(&server.url(), folder.path(), "here").await;
        let (trigger, running) = shutdown::channel();
        let leading = LedWorkflows::default();
        tokio::spawn(cluster::lead(context.clone(), leading.clone(), running));
        Self {
            leader: leading.wait_until_leading("chain").await,
            context,
            _trigger: trigger,
            _server: server,
            _folder: folder,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_elsewhere_asks_and_is_answered_as_one_beside_the_coordinator() {
    let chain = Chain::lead().await;
    let context = &chain.context;
    let here = chain.leader.operator();

    let (_submitting, ports) = open(context, Role::Source).await;
    let queue = context.plan.queue_named("blocks").expect("a queue");
    let (source, producer) = (ports.source(), "test".into());
    for block in 0..BLOCKS {
        let message = SourceMessage::of_json((block, block), None, Bytes::from("{}"), None);
        let message = message.expect("a message");
        let reply = submit(&source, &context.blobs, &producer, queue, message).await;
        assert_eq!(reply.expect("an answer"), Reply::Accepted);
    }

    let (_asking, operating) = open(context, Role::Operator).await;
    let there = operating.operator();
    let all = TaskSelection::default;
    assert_eq!(there.status().await.expect("a status").live, 5);
    let tasks = there.tasks_up_to(all(), usize::MAX).await.expect("tasks");
    assert_eq!(tasks.len() as u64, BLOCKS);
    assert_eq!(
        tasks,
        here.tasks_up_to(all(), 100).await.expect("the same tasks")
    );
    let first = there.tasks(all(), None, 2).await.expect("a page");
    let second = there.tasks(all(), first.next, 2).await.expect("a page");
    assert_eq!([first.rows, second.rows].concat(), tasks[..4]);
    let queues = there.queues().await.expect("queues");
    assert_eq!(queues, here.queues().await.expect("the same queues"));
    assert_eq!((queues[0].waiting, queues[0].lowest), (5, Some(0)));
    let workers = there.workers(None, 10).await.expect("workers");
    assert_eq!((workers.rows.len(), workers.next), (0, None));
    let blocks = there.blocks(0..=BLOCKS).await.expect("blocks");
    assert_eq!(blocks, here.blocks(0..=BLOCKS).await.expect("the same"));
    let block = there.block(1).await.expect("a block");
    assert_eq!((block.live.len(), block.summary.live), (1, 1));

    let cancelled = there.cancel(Target::Block(1)).await.expect("an answer");
    assert_eq!(cancelled, Reply::Accepted);
    let dead = there.all_dead_letters().await.expect("dead letters");
    assert_eq!(dead.len(), 1);
    let task = dead[0].task.clone();
    let letter = there.dead_letter(task.clone()).await.expect("an answer");
    assert_eq!(letter.expect("it is dead").reason, dead[0].reason);
    let retried = there.retry_dead(task.clone()).await.expect("an answer");
    assert_eq!(retried, Reply::Accepted);
    let dropped = there.drop_dead(task).await.expect("an answer");
    assert_eq!(dropped, Reply::NotFound);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_that_asks_what_operators_ask_is_refused() {
    let chain = Chain::lead().await;
    let context = &chain.context;

    let (client, ports) = open(context, Role::Source).await;
    let source = ports.source();
    assert_eq!(source.status().await.expect("a status").live, 0);
    let next = source.next_of(&"blocks".into()).await;
    assert_eq!(next.expect("an answer"), None);
    ports.operator().queues().await.expect_err("not its to ask");
    let ended = client.await.expect("no panic");
    assert!(
        matches!(ended, Err(RemoteError::NotPermitted { .. })),
        "{ended:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_console_asks_for_all_but_payloads_and_changes_nothing() {
    let chain = Chain::lead().await;
    let context = &chain.context;

    let (_submitting, ports) = open(context, Role::Source).await;
    let queue = context.plan.queue_named("blocks").expect("a queue");
    let message = SourceMessage::of_json((0, 0), None, Bytes::from("{}"), None);
    let message = message.expect("a message");
    let (source, producer) = (ports.source(), "test".into());
    let submitted = submit(&source, &context.blobs, &producer, queue, message);
    assert_eq!(submitted.await.expect("an answer"), Reply::Accepted);

    let (_watching, ports) = open(context, Role::Console).await;
    let console = ports.operator();
    assert_eq!(console.status().await.expect("a status").live, 1);
    assert_eq!(console.blocks(0..=1).await.expect("blocks").len(), 2);
    let block = console.block(0).await.expect("a block");
    let task = block.live[0].task.clone();
    assert_eq!(
        console.workers(None, 10).await.expect("workers").rows.len(),
        0
    );

    let answer = console.cancel(Target::Task(task.clone())).await;
    let refused = Reply::Invalid {
        why: "not permitted for a console".to_owned(),
    };
    assert_eq!(answer.expect("an answer"), refused);
    assert_eq!(console.status().await.expect("a status").live, 1);

    let (client, ports) = open(context, Role::Console).await;
    let asked = ports.operator().dead_letter(task).await;
    asked.expect_err("a letter has a payload");
    let ended = client.await.expect("no panic");
    assert!(
        matches!(ended, Err(RemoteError::NotPermitted { .. })),
        "{ended:?}"
    );
}
