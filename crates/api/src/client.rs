//! The client of the control socket, or of a workflow's leader over the bus.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use proofmill_bus::{BlobStore, Connection};
use proofmill_orchestrator::core::BlockSummary;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::actions::{Action, ActionResult};
use crate::blocks::{BlockStatus, BlocksQuery};
use crate::operations::OperationError;
use crate::types::{
    BundleQuery, Cancellation, DeadLetter, DeadSummary, Dropped, QueueStatus, Submission,
    SubmitAnswer, TaskSummary, TasksQuery,
};
use crate::view::MillView;
use crate::{over_bus, socket};

/// Time limit of a read-only request: a mill that is stopped (SIGSTOP) or hangs must not hang its clients.
pub(crate) const READ_TIME_MAX: Duration = Duration::from_secs(30);

/// Largest answer that is read, in bytes.
pub(crate) const ANSWER_MAX: usize = 256 * 1024 * 1024;

/// The reason that a running mill gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The mill answered with an error.
    #[error(transparent)]
    Operation(#[from] OperationError),
    /// The connection failed.
    #[error("{place} did not answer: {why}")]
    Connection {
        /// The mill or the coordinator that was asked.
        place: String,
        /// The cause.
        why: String,
    },
}

/// A client of one running mill, or of the leader of one workflow.
#[derive(Clone, Debug)]
pub struct Client(MillAddress);

/// Address of a running mill, or of the leader of a workflow.
#[derive(Clone, Debug)]
enum MillAddress {
    /// The state directory of the mill.
    Socket(PathBuf),
    /// The workflow of the leader, on a bus.
    Bus(Arc<BusAddress>),
}

#[derive(Debug)]
struct BusAddress {
    connection: Connection,
    blobs: Arc<BlobStore>,
    workflow: String,
    /// Name of the operator, for the coordinator's audit log.
    who: String,
}

// === impl Client ===

impl Client {
    /// A client of the mill that runs on `state`; `None` if none does.
    ///
    /// # Errors
    ///
    /// The socket belongs to another user, and may not be used.
    pub async fn connect(state: &Path) -> Result<Option<Self>, ClientError> {
        let client = Self(MillAddress::Socket(state.to_owned()));
        match socket::connect(&socket::socket_path(state)).await {
            Ok(connection) => Ok(connection.map(|_| client)),
            Err(error) => Err(client.no_answer(error.to_string())),
        }
    }

    /// A client of the leader of `workflow` on a cluster. `who` is the operator's name, for the leader's audit log.
    pub fn over_bus(
        connection: Connection,
        blobs: Arc<BlobStore>,
        workflow: &str,
        who: String,
    ) -> Self {
        Self(MillAddress::Bus(Arc::new(BusAddress {
            connection,
            blobs,
            workflow: workflow.to_owned(),
            who,
        })))
    }

    fn no_answer(&self, why: String) -> ClientError {
        let place = match &self.0 {
            MillAddress::Socket(state) => {
                format!("the mill at {}", socket::socket_path(state).display())
            }
            MillAddress::Bus(bus) => format!("the coordinator of workflow {:?}", bus.workflow),
        };
        ClientError::Connection { place, why }
    }

    /// See [`crate::Operations::status`]. Returned as JSON, since only people read it.
    pub async fn status(&self) -> Result<serde_json::Value, ClientError> {
        self.get("/v1/status").await
    }

    /// See [`crate::Operations::view`].
    pub async fn view(&self) -> Result<MillView, ClientError> {
        self.get("/v1/view").await
    }

    /// See [`crate::Operations::queues`].
    pub async fn queues(&self) -> Result<Vec<QueueStatus>, ClientError> {
        self.get("/v1/queues").await
    }

    /// See [`crate::Operations::tasks`].
    pub async fn tasks(&self, query: &TasksQuery) -> Result<Vec<TaskSummary>, ClientError> {
        let mut terms = Vec::new();
        // Stage names contain no characters that must be escaped in a URL; other names match no stage.
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
        if let Some(stage) = query.stage.as_deref() {
            if !stage.bytes().all(is_plain) {
                return Ok(Vec::new());
            }
            terms.push(format!("stage={stage}"));
        }
        terms.extend(query.block.map(|block| format!("block={block}")));
        terms.extend(query.limit.map(|limit| format!("limit={limit}")));
        self.get(&format!("/v1/tasks?{}", terms.join("&"))).await
    }

    /// See [`crate::Operations::block`].
    pub async fn block(&self, block: u64) -> Result<BlockStatus, ClientError> {
        self.get(&format!("/v1/block/{block}")).await
    }

    /// See [`crate::Operations::blocks`].
    pub async fn blocks(&self, query: BlocksQuery) -> Result<Vec<BlockSummary>, ClientError> {
        let BlocksQuery { first, last } = query;
        self.get(&format!("/v1/blocks?first={first}&last={last}"))
            .await
    }

    /// See [`crate::Operations::dead_letters`].
    pub async fn dead_letters(&self) -> Result<Vec<DeadSummary>, ClientError> {
        self.get("/v1/dead").await
    }

    /// See [`crate::Operations::dead_letter`].
    pub async fn dead_letter(&self, task: &str) -> Result<DeadLetter, ClientError> {
        self.get(&format!("/v1/dead/{}", check_path(task)?)).await
    }

    /// See [`crate::Operations::bundle`].
    pub async fn bundle(&self, query: &BundleQuery) -> Result<Bytes, ClientError> {
        let mut path = format!("/v1/bundle?with_programs={}", query.with_programs);
        if let Some(task) = query.task.as_deref() {
            path.push_str(&format!("&task={}", check_path(task)?));
        }
        self.answer(Method::GET, &path, Bytes::new()).await
    }

    /// See [`crate::Operations::retry`].
    pub async fn retry(&self, task: &str) -> Result<(), ClientError> {
        let path = format!("/v1/retry/{}", check_path(task)?);
        self.call::<serde_json::Value>(Method::POST, &path, Bytes::new())
            .await
            .map(drop)
    }

    /// See [`crate::Operations::drop_dead`].
    pub async fn drop_dead(&self, task: &str) -> Result<Dropped, ClientError> {
        let path = format!("/v1/dead/{}", check_path(task)?);
        self.call(Method::DELETE, &path, Bytes::new()).await
    }

    /// See [`crate::Operations::cancel`].
    pub async fn cancel(&self, cancellation: &Cancellation) -> Result<(), ClientError> {
        let body = encode(cancellation);
        self.call::<serde_json::Value>(Method::POST, "/v1/cancel", body)
            .await
            .map(drop)
    }

    /// See [`crate::Operations::act`].
    pub async fn act(&self, action: &Action) -> Result<ActionResult, ClientError> {
        self.call(Method::POST, "/v1/action", encode(action)).await
    }

    /// See [`crate::Operations::submit`].
    pub async fn submit(&self, submission: &Submission) -> Result<SubmitAnswer, ClientError> {
        self.call(Method::POST, "/v1/submit", encode(submission))
            .await
    }

    async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        self.call(Method::GET, path, Bytes::new()).await
    }

    async fn call<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Result<T, ClientError> {
        let bytes = self.answer(method, path, body).await?;
        serde_json::from_slice(&bytes)
            .map_err(|error| self.no_answer(format!("the answer does not parse: {error}")))
    }

    /// The body of a successful answer.
    async fn answer(&self, method: Method, path: &str, body: Bytes) -> Result<Bytes, ClientError> {
        let is_read = method == Method::GET;
        let exchange = self.exchange(method, path, body);
        let answer = if is_read {
            let late = || format!("no answer within {} s", READ_TIME_MAX.as_secs());
            tokio::time::timeout(READ_TIME_MAX, exchange)
                .await
                .unwrap_or_else(|_| Err(late()))
        } else {
            // A change has no time limit: it may wait for the log, or for room in a queue.
            exchange.await
        };
        let (status, bytes) = answer.map_err(|why| self.no_answer(why))?;
        if status.is_success() {
            return Ok(bytes);
        }
        let value: serde_json::Value = serde_json::from_slice(&bytes).unwrap_or_default();
        let text = value["error"].as_str().map_or_else(
            || format!("status {status}: {}", String::from_utf8_lossy(&bytes)),
            str::to_owned,
        );
        Err(match status {
            StatusCode::NOT_FOUND => OperationError::NotFound(text),
            StatusCode::CONFLICT => OperationError::Conflict(text),
            StatusCode::SERVICE_UNAVAILABLE => OperationError::Unavailable(text),
            _ => OperationError::Invalid(text),
        }
        .into())
    }

    async fn exchange(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Result<(StatusCode, Bytes), String> {
        let state = match &self.0 {
            MillAddress::Socket(state) => state,
            MillAddress::Bus(bus) => {
                let BusAddress {
                    connection,
                    blobs,
                    workflow,
                    who,
                } = &**bus;
                return over_bus::send_request(
                    connection, blobs, workflow, who, method, path, body,
                )
                .await;
            }
        };
        let text = |error: hyper::Error| error.to_string();
        let stream = socket::connect(&socket::socket_path(state))
            .await
            .map_err(|error| error.to_string())?;
        let stream = stream.ok_or("it has stopped")?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .map_err(text)?;
        let connection = tokio::spawn(connection);
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", "localhost")
            .header("content-type", "application/json")
            .body(Full::new(body))
            .map_err(|error| error.to_string())?;
        let response = sender.send_request(request).await.map_err(text)?;
        let status = response.status();
        let body = Limited::new(response.into_body(), ANSWER_MAX)
            .collect()
            .await;
        connection.abort();
        Ok((status, body.map_err(|error| error.to_string())?.to_bytes()))
    }
}

fn encode(value: &impl Serialize) -> Bytes {
    serde_json::to_vec(value)
        .map(Bytes::from)
        .unwrap_or_default()
}

/// Checks that a task id can be used in a URL's path without escapes.
fn check_path(task: &str) -> Result<&str, ClientError> {
    let id: Result<proofmill_orchestrator::id::TaskId, _> = task.parse();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-:~=/.".contains(&byte);
    match id {
        Ok(_) if task.bytes().all(is_plain) => Ok(task),
        Ok(_) => Err(OperationError::NotFound(format!("no dead letter {task}")).into()),
        Err(error) => Err(OperationError::Invalid(error.to_string()).into()),
    }
}
