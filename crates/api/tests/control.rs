//! Tests of the control socket and its client, over a real socket, with a real mill.

use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::Path;
use std::time::Duration;

use proofmill_api::{
    Cancellation, Client, ClientError, OperationError, Operations, Submission, SubmitAnswer,
    TasksQuery, control, socket_path,
};
use proofmill_orchestrator::mill::{Mill, Options, Registry};
use proofmill_workflow::Workflow;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::task::JoinHandle;

/// A workflow in which two messages with the same `/group` make a task. It has no workers, so that tasks
/// stay as they are.
const WORKFLOW: &str = r#"
name = "still"
[[source]]
name = "outside"
kind = "submit"
output = "in"
[[collector]]
name = "gather"
inputs = ["in"]
output = "groups"
strategy = { kind = "match", k = 2, group_by = "/group" }
[[dispatcher]]
name = "prove"
input = "groups"
output = "proofs"
executor = { kind = "native", prover = "none" }
[sequencer]
input = "proofs"
"#;

/// A limit that is reached only if something is stuck.
const PATIENCE: Duration = Duration::from_secs(60);

struct Site {
    folder: tempfile::TempDir,
    mill: Mill,
    serving: JoinHandle<()>,
    client: Client,
}

// === impl Site ===

impl Site {
    async fn open() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let mill = open(folder.path()).await;
        let (serving, client) = serve(folder.path(), &mill).await;
        Self {
            folder,
            mill,
            serving,
            client,
        }
    }

    async fn submit(
        &self,
        queue: &str,
        block: u64,
        payload: &str,
    ) -> Result<SubmitAnswer, ClientError> {
        self.client.submit(&submission(queue, block, payload)).await
    }

    /// Sends raw bytes, and returns the answer.
    async fn raw(&self, request: &[u8]) -> String {
        let path = socket_path(self.folder.path());
        let mut stream = UnixStream::connect(path).await.expect("connected");
        // The server may answer and close before it has read everything.
        let _ = stream.write_all(request).await;
        let mut answer = Vec::new();
        let reading = stream.read_to_end(&mut answer);
        let _ = tokio::time::timeout(PATIENCE, reading)
            .await
            .expect("an answer, or the end");
        String::from_utf8_lossy(&answer).into_owned()
    }

    async fn request(&self, method: &str, path: &str, body: &str) -> (u16, Value) {
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\
             content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        let answer = self.raw(request.as_bytes()).await;
        let status = answer
            .get(9..12)
            .and_then(|status| status.parse().ok())
            .unwrap_or(0);
        let body = answer
            .split_once("\r\n\r\n")
            .map(|(_, body)| body)
            .unwrap_or_default();
        (status, serde_json::from_str(body).unwrap_or_default())
    }
}

async fn open(state: &Path) -> Mill {
    let workflow = Workflow::parse(WORKFLOW, Path::new("still.toml")).expect("a workflow");
    let options = Options::in_directory(state);
    Mill::open(&workflow, Registry::default(), options)
        .await
        .expect("open")
}

async fn serve(state: &Path, mill: &Mill) -> (JoinHandle<()>, Client) {
    let operations = Operations::new(
        mill.handle().operator(),
        mill.handle().source(),
        mill.blobs().clone(),
    );
    let directory = state.to_owned();
    let serving = tokio::spawn(async move {
        control::serve(&directory, operations)
            .await
            .expect("served");
    });
    for _ in 0..3000 {
        if let Some(client) = Client::connect(state).await.expect("ours") {
            return (serving, client);
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("nobody listens");
}

fn submission(queue: &str, block: u64, payload: &str) -> Submission {
    Submission {
        queue: queue.to_owned(),
        first: block,
        last: block,
        part: None,
        payload: RawValue::from_string(payload.to_owned()).expect("JSON"),
        requires: None,
        traceparent: None,
        tracestate: None,
    }
}

#[track_caller]
fn operation(error: ClientError) -> OperationError {
    match error {
        ClientError::Operation(error) => error,
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn each_operation_is_carried_out() {
    let site = Site::open().await;
    let client = &site.client;
    let status = client.status().await.expect("a status");
    assert_eq!(
        (&status["workflow"], &status["live"]),
        (&"still".into(), &0.into())
    );

    // Submitting: new, known, in conflict, without a group, and to a queue beyond the collector.
    let group = r#"{"group": 7}"#;
    assert_eq!(
        site.submit("in", 4, group).await.expect("told"),
        SubmitAnswer::Accepted
    );
    assert_eq!(
        site.submit("in", 4, group).await.expect("told"),
        SubmitAnswer::Duplicate { same: Some(true) }
    );
    let error = operation(
        site.submit("in", 4, r#"{"group": 8}"#)
            .await
            .expect_err("differs"),
    );
    assert!(
        matches!(&error, OperationError::Conflict(why) if why.contains("gather/4/")),
        "{error}"
    );
    let answer = site.submit("in", 5, r#"{"block": 5}"#).await.expect("told");
    assert!(
        matches!(&answer, SubmitAnswer::Rejected { why } if why.contains("/group")),
        "{answer:?}"
    );
    let answer = site.submit("in", 5, r#"{"block": 5}"#).await.expect("told");
    assert!(matches!(&answer, SubmitAnswer::Dead { task, .. } if task.starts_with("gather/5/")));
    let error = operation(site.submit("nowhere", 1, "1").await.expect_err("no queue"));
    assert!(matches!(&error, OperationError::NotFound(why) if why.contains("in, groups, proofs")));
    let backwards = Submission {
        first: 9,
        last: 8,
        ..submission("in", 9, group)
    };
    let error = operation(client.submit(&backwards).await.expect_err("backwards"));
    assert!(matches!(error, OperationError::Invalid(_)), "{error}");
    let odd = Submission {
        part: Some("../x".to_owned()),
        ..submission("in", 9, group)
    };
    let error = operation(client.submit(&odd).await.expect_err("an odd part"));
    assert!(matches!(&error, OperationError::Invalid(why) if why.contains("invalid part")));
    // A large payload is stored as a blob, and read back.
    let large = format!(r#"{{"filling": "{}"}}"#, "x".repeat(300_000));
    assert_eq!(
        site.submit("groups", 6, &large).await.expect("told"),
        SubmitAnswer::Accepted
    );

    // Reading.
    let queues = client.queues().await.expect("queues");
    let queue = |name: &str| {
        queues
            .iter()
            .find(|queue| queue.queue == name)
            .expect("there")
    };
    assert_eq!((queue("in").held, queue("in").dead), (1, 1));
    assert_eq!(
        (queue("groups").waiting, queue("groups").lowest),
        (1, Some(6))
    );
    let all = client.tasks(&TasksQuery::default()).await.expect("tasks");
    assert_eq!(all.len(), 2, "{all:?}");
    let query = TasksQuery {
        stage: Some("prove".to_owned()),
        ..TasksQuery::default()
    };
    let tasks = client.tasks(&query).await.expect("tasks");
    assert_eq!(
        (tasks.len(), &*tasks[0].phase, tasks[0].payload_bytes),
        (1, "waiting", large.len() as u64)
    );
    let query = TasksQuery {
        block: Some(4),
        limit: Some(5),
        ..TasksQuery::default()
    };
    let tasks = client.tasks(&query).await.expect("tasks");
    assert_eq!((tasks.len(), &*tasks[0].phase), (1, "held"));
    let query = TasksQuery {
        limit: Some(0),
        ..TasksQuery::default()
    };
    assert!(client.tasks(&query).await.expect("tasks").is_empty());

    // Dead letters.
    let dead = client.dead_letters().await.expect("letters");
    assert_eq!(dead.len(), 1);
    let task = &dead[0].task;
    let letter = client.dead_letter(task).await.expect("a letter");
    assert_eq!(
        (&*letter.payload, letter.payload_is_json),
        (r#"{"block": 5}"#, true)
    );
    assert!(
        letter.summary.reason.contains("/group"),
        "{}",
        letter.summary.reason
    );
    client.drop_dead(task).await.expect("dropped");
    let error = operation(client.drop_dead(task).await.expect_err("dropped already"));
    assert!(
        matches!(&error, OperationError::NotFound(why) if why.contains("dlq list")),
        "{error}"
    );
    assert!(client.dead_letters().await.expect("letters").is_empty());
    let error = operation(client.retry("gather/1/0").await.expect_err("not there"));
    assert!(matches!(error, OperationError::NotFound(_)), "{error}");

    // Cancelling.
    let cancel = async |cancellation| client.cancel(&cancellation).await;
    let missing = Cancellation::Task("prove/99/0".to_owned());
    let error = operation(cancel(missing).await.expect_err("not live"));
    assert!(
        matches!(&error, OperationError::NotFound(why) if why.contains("proofmill tasks")),
        "{error}"
    );
    let query = TasksQuery {
        stage: Some("prove".to_owned()),
        ..TasksQuery::default()
    };
    let tasks = client.tasks(&query).await.expect("tasks");
    cancel(Cancellation::Task(tasks[0].task.clone()))
        .await
        .expect("cancelled");
    cancel(Cancellation::Block(4)).await.expect("cancelled");
    let error = operation(
        cancel(Cancellation::Block(4))
            .await
            .expect_err("it is dead"),
    );
    assert!(matches!(error, OperationError::NotFound(_)), "{error}");
    cancel(Cancellation::All)
        .await
        .expect("none is left, and none has to be");
    assert!(
        client
            .tasks(&TasksQuery::default())
            .await
            .expect("tasks")
            .is_empty()
    );
    let dead = client.dead_letters().await.expect("letters");
    assert_eq!(dead.len(), 2, "{dead:?}");
    for letter in &dead {
        assert_eq!(letter.reason, "cancelled by an operator");
        client.retry(&letter.task).await.expect("back");
    }
    assert_eq!(client.status().await.expect("a status")["live"], 2);

    // Draining.
    site.mill.handle().drain().await.expect("drained");
    let error = operation(site.submit("in", 11, group).await.expect_err("draining"));
    assert!(
        matches!(&error, OperationError::Unavailable(why) if why.contains("drains")),
        "{error}"
    );
    assert_eq!(client.status().await.expect("a status")["draining"], true);
}

#[tokio::test]
async fn hostile_requests_are_refused_with_a_reason() {
    let site = Site::open().await;
    let long = format!("/v1/dead/prove/1/{}", "x".repeat(20_000));
    let cases: [(&str, &str, &str, &[u16]); 19] = [
        ("GET", "/v1/nothing", "", &[404]),
        ("GET", "/", "", &[404]),
        ("POST", "/v1/status", "", &[405]),
        ("GET", "/v1/tasks?block=x", "", &[400]),
        ("GET", "/v1/tasks?limit=-1", "", &[400]),
        ("GET", "/v1/dead/prove", "", &[400]),
        ("GET", "/v1/dead/prove/1/0", "", &[404]),
        ("GET", "/v1/dead/prove/99999999999999999999/0", "", &[400]),
        ("GET", "/v1/dead/..%2f..%2fetc%2fpasswd", "", &[400]),
        ("GET", "/v1/dead/%ff/1/0", "", &[400]),
        ("GET", "/v1/dead/prove/1/0%00", "", &[400]),
        ("DELETE", &long, "", &[400, 414, 431]),
        ("POST", "/v1/retry/prove/1/a%20b", "", &[400]),
        ("POST", "/v1/submit", "{", &[400]),
        ("POST", "/v1/cancel", "{\"block\": -1}", &[422]),
        ("POST", "/v1/cancel", "\"everything\"", &[422]),
        ("POST", "/v1/cancel", "{\"task\": \"prove\"}", &[400]),
        (
            "POST",
            "/v1/submit",
            r#"{"queue":"in","first":1,"last":1,"payload":1,"more":1}"#,
            &[422],
        ),
        (
            "POST",
            "/v1/submit",
            r#"{"queue":"in","first":-1,"last":1,"payload":1}"#,
            &[422],
        ),
    ];
    for (method, path, body, expected) in cases {
        let (status, answer) = site.request(method, path, body).await;
        assert!(
            expected.contains(&status),
            "{method} {path:.60} {body}: {status} {answer}"
        );
        let told = answer["error"].as_str().is_some_and(|why| !why.is_empty());
        assert!(
            told || [405, 414, 431].contains(&status),
            "{method} {path:.60}: {answer}"
        );
    }
    // A body that is too large is refused, whatever its content.
    let length = 66 * 1024 * 1024;
    let head = format!(
        "POST /v1/submit HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n\
         connection: close\r\ncontent-length: {length}\r\n\r\n"
    );
    let mut request = head.into_bytes();
    request.resize(request.len() + length, b' ');
    let answer = site.raw(&request).await;
    assert!(
        answer.is_empty() || answer.contains(" 413 "),
        "{answer:.300}"
    );
    site.raw(b"\x00\xff\r\n\r\n\r\n").await;
    // The client does not send a malformed id, nor one that would change the URL.
    for id in [
        "",
        "a/b",
        "prove/1/0?x=1",
        "prove/1/0/../../..",
        "prove/1/\u{1f}",
    ] {
        let error = operation(site.client.retry(id).await.expect_err("no id"));
        assert!(
            matches!(error, OperationError::Invalid(_)),
            "{id:?}: {error}"
        );
    }
    let query = TasksQuery {
        stage: Some("x&limit=1".to_owned()),
        ..TasksQuery::default()
    };
    assert!(site.client.tasks(&query).await.expect("none").is_empty());
    // The server still answers.
    assert_eq!(site.client.status().await.expect("a status")["live"], 0);
}

#[tokio::test]
async fn the_socket_is_private_replaced_when_stale_and_removed_at_the_end() {
    let site = Site::open().await;
    let path = socket_path(site.folder.path());
    let metadata = std::fs::symlink_metadata(&path).expect("there");
    assert!(metadata.file_type().is_socket());
    assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
    let left: Vec<_> = std::fs::read_dir(site.folder.path())
        .expect("the state")
        .map(|entry| entry.expect("an entry").file_name())
        .filter(|name| name.to_string_lossy().starts_with(".s"))
        .collect();
    assert!(left.is_empty(), "{left:?}");

    // The next process replaces the socket, which the end of the first process leaves alone.
    let (second, client) = {
        let operations = Operations::new(
            site.mill.handle().operator(),
            site.mill.handle().source(),
            site.mill.blobs().clone(),
        );
        let directory = site.folder.path().to_owned();
        let before = std::os::unix::fs::MetadataExt::ino(&metadata);
        let serving = tokio::spawn(async move {
            control::serve(&directory, operations)
                .await
                .expect("served");
        });
        while std::fs::symlink_metadata(&path)
            .is_ok_and(|now| std::os::unix::fs::MetadataExt::ino(&now) == before)
        {
            tokio::task::yield_now().await;
        }
        (serving, site.client.clone())
    };
    site.serving.abort();
    let _ = site.serving.await;
    client.status().await.expect("the second answers");
    second.abort();
    let _ = second.await;
    assert!(!path.exists());
    assert!(
        Client::connect(site.folder.path())
            .await
            .expect("nobody")
            .is_none()
    );
    let error = client.status().await.expect_err("nobody");
    assert!(error.to_string().contains("it has stopped"), "{error}");

    // The socket of a killed process counts as absent, and is replaced.
    drop(std::os::unix::net::UnixListener::bind(&path).expect("bound"));
    assert!(path.exists());
    assert!(
        Client::connect(site.folder.path())
            .await
            .expect("nobody")
            .is_none()
    );
    let (third, client) = serve(site.folder.path(), &site.mill).await;
    client.status().await.expect("the third answers");
    third.abort();
}
