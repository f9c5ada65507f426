//! The operations of a workflow's leader over the bus: the requests and answers of the control socket,
//! carried in messages.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Method, Request, StatusCode};
use bytes::Bytes;
use futures_util::StreamExt;
use http_body_util::{BodyExt, Limited};
use proofmill_bus::{BlobStore, Connection, RequestError};
use proofmill_orchestrator::remote::{RemoteError, decode, encode};
use serde::{Deserialize, Serialize};
use tower_service::Service;

use crate::audit::Actor;
use crate::client::{ANSWER_MAX, READ_TIME_MAX};
use crate::control::router;
use crate::operations::Operations;

/// A request of the control socket, as carried over the bus.
#[derive(Serialize, Deserialize)]
struct ControlRequest {
    /// Name of the operator, as the operator states it.
    who: String,
    method: String,
    path: String,
    body: Bytes,
}

/// The answer to a [`ControlRequest`].
#[derive(Serialize, Deserialize)]
struct ControlAnswer {
    status: u16,
    body: Bytes,
}

/// The last part of the subject that all leaders answer. It stands in place of a workflow's name, which cannot contain
/// `_`.
const ALL_LEADERS: &str = "_all";

/// Time for the leaders of a cluster to answer.
const DISCOVERY_TIMEOUT: Duration = Duration::from_secs(1);

/// Most workers that a leader lists by name.
const NAMED_MAX: usize = 500;

/// A workflow that has a leader, and its workers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedWorkflow {
    /// The workflow's name.
    pub workflow: String,
    /// The process that leads it.
    pub leader: String,
    /// Live tasks.
    pub live: usize,
    /// Dead letters.
    pub dead: usize,
    /// The next block that the sequencer emits; none without a sequencer.
    pub next_block: Option<u64>,
    /// Workers that have joined, including those not listed.
    pub worker_count: usize,
    /// The workers, by name, up to 500 of them.
    pub workers: Vec<WorkerSummary>,
    /// Processes that keep partitions of the workflow's collectors. Always empty, since the leader keeps them.
    pub collectors: Vec<String>,
}

/// A worker of a workflow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerSummary {
    /// The worker's name.
    pub worker: String,
    /// The worker group; by default the name of the stage.
    pub group: String,
    /// Number of tasks that the worker has.
    pub tasks: usize,
}

fn subject(connection: &Connection, workflow: &str) -> String {
    connection.subject(&["control", workflow])
}

/// The workflows on this bus that have a leader, by name.
///
/// # Errors
/// A message with the reason why the leaders cannot be asked.
pub async fn workflows(connection: &Connection) -> Result<Vec<LedWorkflow>, String> {
    let subject = subject(connection, ALL_LEADERS);
    let answers = connection.request_all(&subject, Bytes::new(), DISCOVERY_TIMEOUT);
    let answers = answers.await.map_err(|error| error.to_string())?;
    // A malformed answer comes from a version that does not know the request.
    let mut found: Vec<LedWorkflow> = answers
        .iter()
        .filter_map(|answer| serde_json::from_slice(answer).ok())
        .collect();
    found.sort_by(|a, b| a.workflow.cmp(&b.workflow));
    found.dedup_by(|a, b| a.workflow == b.workflow);
    Ok(found)
}

/// Answers requests to the workflow until the future is dropped. The leading process calls this; `leader` is its name.
pub async fn serve(
    connection: &Connection,
    blobs: &Arc<BlobStore>,
    workflow: &str,
    leader: &str,
    operations: Operations,
) -> Result<(), RemoteError> {
    let mut requests = connection.subscribe(&subject(connection, workflow)).await?;
    let mut discovery_requests = connection
        .subscribe(&subject(connection, ALL_LEADERS))
        .await?;
    let router = router(operations.clone());
    let mut answers = tokio::task::JoinSet::new();
    loop {
        tokio::select! {
            request = requests.next() => {
                let Some(request) = request else { return Ok(()) };
                let (connection, blobs) = (connection.clone(), blobs.clone());
                let router = router.clone();
                answers.spawn(async move {
                    match answer_request(&request.payload, &connection, &blobs, router).await {
                        Ok(bytes) => request.reply(bytes).await,
                        Err(error) => tracing::warn!(%error, "a question is not answered"),
                    }
                });
            }
            Some(request) = discovery_requests.next() => {
                let (operations, leader) = (operations.clone(), leader.to_owned());
                answers.spawn(async move {
                    // A leader that is ending does not answer.
                    if let Ok(summary) = operations.led_workflow(leader, NAMED_MAX).await
                        && let Ok(answer) = serde_json::to_vec(&summary)
                    {
                        request.reply(answer).await;
                    }
                });
            }
            Some(_) = answers.join_next(), if !answers.is_empty() => {}
        }
    }
}

async fn answer_request(
    bytes: &Bytes,
    connection: &Connection,
    blobs: &BlobStore,
    mut router: Router,
) -> Result<Bytes, RemoteError> {
    let asked: ControlRequest = decode(bytes, blobs).await?;
    let malformed = |error: axum::http::Error| RemoteError::Malformed(error.to_string());
    let request = Request::builder()
        .method(Method::from_bytes(asked.method.as_bytes()).unwrap_or(Method::GET))
        .uri(asked.path)
        .header("content-type", "application/json")
        .extension(Actor::on_bus(&asked.who))
        .body(Body::from(asked.body))
        .map_err(malformed)?;
    let Ok(response) = router.call(request).await;
    let status = response.status().as_u16();
    let body = Limited::new(response.into_body(), ANSWER_MAX)
        .collect()
        .await
        .map_err(|error| RemoteError::Malformed(error.to_string()))?;
    let body = body.to_bytes();
    encode(&ControlAnswer { status, body }, connection, blobs).await
}

/// Sends a request of `who` to the workflow's leader. A submission may wait for room in a queue for longer than the
/// limit of an answer; submitting again is safe.
pub(crate) async fn send_request(
    connection: &Connection,
    blobs: &BlobStore,
    workflow: &str,
    who: &str,
    method: Method,
    path: &str,
    body: Bytes,
) -> Result<(StatusCode, Bytes), String> {
    let request = ControlRequest {
        who: who.to_owned(),
        method: method.to_string(),
        path: path.to_owned(),
        body,
    };
    let to_text = |error: RemoteError| error.to_string();
    let bytes = encode(&request, connection, blobs).await.map_err(to_text)?;
    let subject = subject(connection, workflow);
    let answered = connection.request(&subject, bytes, READ_TIME_MAX).await;
    let bytes = answered.map_err(|error| match error {
        RequestError::NoResponders(_) => "no process leads the workflow now".to_owned(),
        error => error.to_string(),
    })?;
    let answer: ControlAnswer = decode(&bytes, blobs).await.map_err(to_text)?;
    let status = StatusCode::from_u16(answer.status).map_err(|error| error.to_string())?;
    Ok((status, answer.body))
}
