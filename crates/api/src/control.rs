//! The control socket of a running mill: HTTP over a Unix socket of mode 0600.

use std::future::pending;
use std::path::{Path, PathBuf};
use std::time::Duration;

use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::extract::{Path as UrlPath, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post};
use axum::{Json, Router};

use crate::blocks::BlocksQuery;
use crate::operations::Operations;
use crate::refused::Refused;
use crate::serve::{self, HttpVersions, Terms};
use crate::socket::{self, socket_path};
use crate::types::{Cancellation, Submission, TasksQuery};

/// Most bytes of a request's body: a payload and its envelope.
pub(crate) const BODY_MAX: usize = 65 * 1024 * 1024;

/// The control socket cannot be made.
#[derive(Debug, thiserror::Error)]
#[error("cannot offer the control socket {}: {source}", path.display())]
pub struct ControlError {
    path: PathBuf,
    source: std::io::Error,
}

/// Serves `operations` on the control socket in `state` until the future is dropped. A socket left by an
/// earlier process is replaced, since the caller holds the lock of the state directory.
///
/// # Errors
/// The socket cannot be made.
pub async fn serve(state: &Path, operations: Operations) -> Result<(), ControlError> {
    let failed = |source| ControlError {
        path: socket_path(state),
        source,
    };
    let (listener, _removed_with_us) = socket::bind(&socket_path(state)).map_err(failed)?;
    // A submission may wait for room in its queue without a limit.
    let terms = Terms::local(HttpVersions::Http1, Duration::MAX);
    let answer = serve::answers(router(operations));
    serve::serve(listener, terms, answer, pending()).await;
    Ok(())
}

/// The routes, which tests call too.
pub fn router(operations: Operations) -> Router {
    Router::new()
        .route("/v1/status", get(status))
        .route("/v1/queues", get(queues))
        .route("/v1/tasks", get(tasks))
        .route("/v1/block/{block}", get(block))
        .route("/v1/blocks", get(blocks))
        .route("/v1/dead", get(dead_letters))
        .route("/v1/dead/{*task}", get(dead_letter))
        .route("/v1/dead/{*task}", delete(drop_dead))
        .route("/v1/retry/{*task}", post(retry))
        .route("/v1/cancel", post(cancel))
        .route("/v1/submit", post(submit))
        .fallback(unknown)
        .layer(axum::extract::DefaultBodyLimit::max(BODY_MAX))
        .with_state(operations)
}

type Answer = Result<Response, Refused>;

async fn status(State(operations): State<Operations>) -> Answer {
    Ok(Json(operations.status().await?).into_response())
}

async fn queues(State(operations): State<Operations>) -> Answer {
    Ok(Json(operations.queues().await?).into_response())
}

async fn tasks(
    State(operations): State<Operations>,
    query: Result<Query<TasksQuery>, QueryRejection>,
) -> Answer {
    let Query(query) = query?;
    Ok(Json(operations.tasks(query).await?).into_response())
}

async fn block(
    State(operations): State<Operations>,
    block: Result<UrlPath<u64>, PathRejection>,
) -> Answer {
    let UrlPath(block) = block?;
    Ok(Json(operations.block(block).await?).into_response())
}

async fn blocks(
    State(operations): State<Operations>,
    query: Result<Query<BlocksQuery>, QueryRejection>,
) -> Answer {
    let Query(query) = query?;
    Ok(Json(operations.blocks(query).await?).into_response())
}

async fn dead_letters(State(operations): State<Operations>) -> Answer {
    Ok(Json(operations.dead_letters().await?).into_response())
}

async fn dead_letter(
    State(operations): State<Operations>,
    task: Result<UrlPath<String>, PathRejection>,
) -> Answer {
    let UrlPath(task) = task?;
    Ok(Json(operations.dead_letter(&task).await?).into_response())
}

async fn retry(
    State(operations): State<Operations>,
    task: Result<UrlPath<String>, PathRejection>,
) -> Answer {
    let UrlPath(task) = task?;
    operations.retry(&task).await?;
    Ok(Json(serde_json::json!({ "task": task })).into_response())
}

async fn drop_dead(
    State(operations): State<Operations>,
    task: Result<UrlPath<String>, PathRejection>,
) -> Answer {
    let UrlPath(task) = task?;
    Ok(Json(operations.drop_dead(&task).await?).into_response())
}

async fn cancel(
    State(operations): State<Operations>,
    cancellation: Result<Json<Cancellation>, JsonRejection>,
) -> Answer {
    let Json(cancellation) = cancellation?;
    operations.cancel(&cancellation).await?;
    Ok(Json(serde_json::json!({ "cancelled": cancellation })).into_response())
}

async fn submit(
    State(operations): State<Operations>,
    submission: Result<Json<Submission>, JsonRejection>,
) -> Answer {
    let Json(submission) = submission?;
    Ok(Json(operations.submit(submission).await?).into_response())
}

async fn unknown() -> Refused {
    Refused::new(StatusCode::NOT_FOUND, "no such operation")
}
