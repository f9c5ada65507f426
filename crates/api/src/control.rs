//! The control socket of a running mill: HTTP over a Unix socket of mode 0600.

use std::path::{Path, PathBuf};

use axum::Router;
use axum::extract::{Path as UrlPath, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post};
use axum::Json;

use crate::operations::{OperationError, Operations};
use crate::socket::{self, socket_path};
use crate::types::{Submission, TasksQuery};

/// Largest request body, in bytes: a payload and what surrounds it.
const BODY_MAX: usize = 65 * 1024 * 1024;

/// The socket cannot be offered.
#[derive(Debug, thiserror::Error)]
#[error("cannot offer the control socket {}: {source}", path.display())]
pub struct ControlError {
    path: PathBuf,
    source: std::io::Error,
}

/// Serves `operations` on the control socket in `state` until the future is dropped. A socket that
/// an earlier process left is replaced: the caller holds the lock of the state directory.
pub async fn serve(state: &Path, operations: Operations) -> Result<(), ControlError> {
    let failed = |source| ControlError { path: socket_path(state), source };
    let (listener, _removed_with_us) = socket::bind(state).map_err(failed)?;
    axum::serve(listener, router(operations)).await.map_err(failed)
}

/// The routes; also what tests call.
pub fn router(operations: Operations) -> Router {
    Router::new()
        .route("/v1/status", get(status))
        .route("/v1/queues", get(queues))
        .route("/v1/tasks", get(tasks))
        .route("/v1/dead", get(dead_letters))
        .route("/v1/dead/{*task}", get(dead_letter))
        .route("/v1/dead/{*task}", delete(drop_dead))
        .route("/v1/retry/{*task}", post(retry))
        .route("/v1/submit", post(submit))
        .layer(axum::extract::DefaultBodyLimit::max(BODY_MAX))
        .with_state(operations)
}

async fn status(State(operations): State<Operations>) -> Result<Response, OperationError> {
    Ok(Json(operations.status().await?).into_response())
}

async fn queues(State(operations): State<Operations>) -> Result<Response, OperationError> {
    Ok(Json(operations.queues().await?).into_response())
}

async fn tasks(
    State(operations): State<Operations>,
    Query(query): Query<TasksQuery>,
) -> Result<Response, OperationError> {
    Ok(Json(operations.tasks(query).await?).into_response())
}

async fn dead_letters(State(operations): State<Operations>) -> Result<Response, OperationError> {
    Ok(Json(operations.dead_letters().await?).into_response())
}

async fn dead_letter(
    State(operations): State<Operations>,
    UrlPath(task): UrlPath<String>,
) -> Result<Response, OperationError> {
    Ok(Json(operations.dead_letter(&task).await?).into_response())
}

async fn retry(
    State(operations): State<Operations>,
    UrlPath(task): UrlPath<String>,
) -> Result<Response, OperationError> {
    operations.retry(&task).await?;
    Ok(Json(serde_json::json!({ "task": task })).into_response())
}

async fn drop_dead(
    State(operations): State<Operations>,
    UrlPath(task): UrlPath<String>,
) -> Result<Response, OperationError> {
    operations.drop_dead(&task).await?;
    Ok(Json(serde_json::json!({ "task": task })).into_response())
}

async fn submit(
    State(operations): State<Operations>,
    Json(submission): Json<Submission>,
) -> Result<Response, OperationError> {
    Ok(Json(operations.submit(submission).await?).into_response())
}

impl OperationError {
    fn code(&self) -> StatusCode {
        match self {
            Self::NotFound(_) => StatusCode::NOT_FOUND,
            Self::Invalid(_) => StatusCode::BAD_REQUEST,
            Self::Conflict(_) => StatusCode::CONFLICT,
            Self::Unavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

impl IntoResponse for OperationError {
    fn into_response(self) -> Response {
        let body = serde_json::json!({ "error": self.to_string() });
        (self.code(), Json(body)).into_response()
    }
}
