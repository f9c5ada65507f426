//! The control socket of a running mill: HTTP over a Unix socket of mode 0600.

use std::future::pending;
use std::path::{Path, PathBuf};
use std::time::Duration;

use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::extract::{Extension, Path as UrlPath, Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post};
use axum::{Json, Router};

use crate::actions::Action;
use crate::audit::Actor;
use crate::blocks::BlocksQuery;
use crate::operations::Operations;
use crate::refused::Refused;
use crate::serve::{self, HttpVersions, Terms};
use crate::socket::{self, socket_path};
use crate::types::{BundleQuery, Cancellation, Dropped, Submission, TasksQuery};

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
    let router = router(operations).layer(Extension(Actor::on_command_line()));
    let answer = serve::answers(router);
    serve::serve(listener, terms, answer, pending()).await;
    Ok(())
}

/// The routes. Whoever serves them adds the [`Actor`] of each request as an extension.
pub(crate) fn router(operations: Operations) -> Router {
    Router::new()
        .route("/v1/status", get(status))
        .route("/v1/queues", get(queues))
        .route("/v1/view", get(view))
        .route("/v1/tasks", get(tasks))
        .route("/v1/block/{block}", get(block))
        .route("/v1/blocks", get(blocks))
        .route("/v1/dead", get(dead_letters))
        .route("/v1/dead/{*task}", get(dead_letter))
        .route("/v1/dead/{*task}", delete(drop_dead))
        .route("/v1/retry/{*task}", post(retry))
        .route("/v1/bundle", get(bundle))
        .route("/v1/cancel", post(cancel))
        .route("/v1/action", post(act))
        .route("/v1/submit", post(submit))
        .fallback(unknown)
        .layer(axum::extract::DefaultBodyLimit::max(BODY_MAX))
        .with_state(operations)
}

pub(crate) type Answer = Result<Response, Refused>;

async fn status(State(operations): State<Operations>) -> Answer {
    Ok(Json(operations.status().await?).into_response())
}

async fn view(State(operations): State<Operations>) -> Answer {
    Ok(Json(operations.view().await?).into_response())
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

async fn bundle(
    State(operations): State<Operations>,
    Extension(actor): Extension<Actor>,
    query: Result<Query<BundleQuery>, QueryRejection>,
) -> Answer {
    let Query(query) = query?;
    bundle_download(&operations, &actor, &query).await
}

/// A bundle of dead letters as a download. It may hold witnesses: only for callers that may read every payload.
pub(crate) async fn bundle_download(
    operations: &Operations,
    actor: &Actor,
    query: &BundleQuery,
) -> Answer {
    let bundle = operations.bundle_for(actor, query).await?;
    let name = format!("attachment; filename=\"{}\"", query.file_name());
    let headers = [
        (header::CONTENT_TYPE, "application/octet-stream".to_owned()),
        (header::CONTENT_DISPOSITION, name),
        (header::CACHE_CONTROL, "no-store".to_owned()),
    ];
    Ok((headers, bundle).into_response())
}

async fn retry(
    State(operations): State<Operations>,
    Extension(actor): Extension<Actor>,
    task: Result<UrlPath<String>, PathRejection>,
) -> Answer {
    let UrlPath(task) = task?;
    let action = Action::Retry { task: task.clone() };
    operations.act(&actor, &action).await?;
    Ok(Json(serde_json::json!({ "task": task })).into_response())
}

async fn drop_dead(
    State(operations): State<Operations>,
    Extension(actor): Extension<Actor>,
    task: Result<UrlPath<String>, PathRejection>,
) -> Answer {
    let UrlPath(task) = task?;
    let action = Action::Drop { task: task.clone() };
    let gap = operations.act(&actor, &action).await?.gap;
    Ok(Json(Dropped { task, gap }).into_response())
}

async fn cancel(
    State(operations): State<Operations>,
    Extension(actor): Extension<Actor>,
    cancellation: Result<Json<Cancellation>, JsonRejection>,
) -> Answer {
    let Json(cancellation) = cancellation?;
    let target = cancellation.clone();
    operations.act(&actor, &Action::Cancel { target }).await?;
    Ok(Json(serde_json::json!({ "cancelled": cancellation })).into_response())
}

/// Any action; the calls for one kind of it are older.
async fn act(
    State(operations): State<Operations>,
    Extension(actor): Extension<Actor>,
    action: Result<Json<Action>, JsonRejection>,
) -> Answer {
    let Json(action) = action?;
    Ok(Json(operations.act(&actor, &action).await?).into_response())
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
