//! The HTTP routes of the intake.

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path as UrlPath, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Json, Router};
use bytes::Bytes;
use futures_util::StreamExt;
use proofmill_orchestrator::plan::QueueIx;
use proofmill_orchestrator::source::{SourceMessage, parse_message};
use proofmill_telemetry::FrontPage;
use proofmill_trace::TraceContext;
use tokio::time::Instant;

use super::queues::Queues;
use super::taker::{AT_ONCE, TakeResult, Taker};
use crate::bodies::{Room, is_of_type};
use crate::gate::{Caller, Gate};
use crate::grpc::Calls;
use crate::page::front;
use crate::refused::Refused;
use crate::traces::caller_of;

/// Most messages in a request.
const MESSAGES_MAX: usize = 10_000;

/// Media type of a body with one message on each line.
const NDJSON: &str = "application/x-ndjson";

type Answer = Result<Response, Refused>;

/// The context of a request's trace: all its messages continue that trace.
type Trace = Option<Arc<TraceContext>>;

/// The form of a request's body.
enum BodyForm {
    /// One message.
    One,
    /// One message on each line.
    Lines,
}

pub(super) fn router(taker: Arc<Taker>, calls: Calls, gate: Gate<Queues>) -> Router {
    let others = move |request: Request| calls.clone().answer(request);
    Router::new()
        .route("/v1/queues/{queue}/messages", post(messages))
        .route("/v1/status", get(status))
        .fallback(others)
        .layer(middleware::from_fn_with_state(gate, Gate::pass))
        .with_state(taker)
        // The front page shows nothing about the workflow, so it needs no token.
        .route("/", get(async || front(&FRONT)))
}

const FRONT: FrontPage<'_> = FrontPage {
    title: "proofmill: the intake of a workflow",
    about: "Messages for the queues of a workflow are taken here, over HTTP and gRPC. Where tokens are \
            configured, show one: Authorization: Bearer TOKEN.",
    links: &[("/v1/status", "the state of the workflow, as JSON")],
    calls: &[
        (
            "POST /v1/queues/NAME/messages",
            "takes a message, or one on each line",
        ),
        (
            "proofmill.mill.v1.Intake",
            "the same over gRPC; the server has reflection",
        ),
    ],
    document: "submit.md",
};

async fn status(State(taker): State<Arc<Taker>>) -> Answer {
    let status = tokio::time::timeout_at(taker.until(), taker.submissions.status()).await;
    let status = status.map_err(|_| {
        Refused::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "no process leads the workflow",
        )
    })?;
    Ok(Json(status?).into_response())
}

async fn messages(
    State(taker): State<Arc<Taker>>,
    Extension(caller): Extension<Caller<Queues>>,
    queue: Result<UrlPath<String>, PathRejection>,
    request: Request,
) -> Answer {
    let form = body_form(request.headers())?;
    let trace = caller_of(request.headers());
    let queue = taker.submissions.queue(&queue?)?;
    caller.check(taker.submissions.plan(), queue)?;
    let (room, body) = taker.bodies.read(request).await?;
    match form {
        BodyForm::One => {
            let taken = take(&taker, queue, (&body, trace), room, taker.until());
            let (status, answer) = taken.await?;
            Ok((status, Json(answer)).into_response())
        }
        BodyForm::Lines => take_lines(&taker, queue, (body, trace), room).await,
    }
}

fn body_form(headers: &HeaderMap) -> Result<BodyForm, Refused> {
    if is_of_type(headers, "application/json") {
        Ok(BodyForm::One)
    } else if is_of_type(headers, NDJSON) {
        Ok(BodyForm::Lines)
    } else {
        Err(Refused::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            format!(
                "Content-Type: application/json for a message, {NDJSON} for a message on each line"
            ),
        ))
    }
}

/// Takes a message from each line, and answers with one line for each in the same order.
async fn take_lines(
    taker: &Arc<Taker>,
    queue: QueueIx,
    (body, trace): (Bytes, Trace),
    room: Room,
) -> Answer {
    let lines = body.split(|byte| *byte == b'\n');
    let lines: Vec<Bytes> = lines
        .filter(|line| !line.iter().all(u8::is_ascii_whitespace))
        .take(MESSAGES_MAX + 1)
        .map(|line| body.slice_ref(line))
        .collect();
    if lines.len() > MESSAGES_MAX {
        return Err(Refused::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!("a request has at most {MESSAGES_MAX} messages"),
        ));
    }
    let until = taker.until();
    let mut answer = String::new();
    let taken = futures_util::stream::iter(lines).map(|line| {
        let (taker, room, trace) = (taker.clone(), room.clone(), trace.clone());
        async move { take(&taker, queue, (&line, trace), room, until).await }
    });
    let mut taken = std::pin::pin!(taken.buffered(AT_ONCE));
    while let Some(outcome) = taken.next().await {
        answer.push_str(&answer_to_line(outcome));
        answer.push('\n');
    }
    Ok(([(header::CONTENT_TYPE, NDJSON)], answer).into_response())
}

/// Takes a message in JSON.
async fn take(
    taker: &Taker,
    queue: QueueIx,
    (text, trace): (&[u8], Trace),
    room: Room,
    until: Instant,
) -> TakeResult {
    let message = parse_message(text)
        .map_err(|why| Refused::new(StatusCode::BAD_REQUEST, format!("the message: {why}")))?;
    let message = SourceMessage {
        caller: trace,
        ..message
    };
    taker.take(queue, message, room, until).await
}

/// The line of the answer for one message.
fn answer_to_line(outcome: TakeResult) -> String {
    let (status, mut answer_line) = match outcome {
        Ok((status, answer)) => (status, serde_json::json!(answer)),
        Err(Refused { status, why }) => (status, serde_json::json!({ "error": why })),
    };
    answer_line["status"] = status.as_u16().into();
    answer_line.to_string()
}
