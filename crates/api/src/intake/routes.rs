//! What can be asked.

use std::sync::Arc;
use std::time::Duration;

use axum::body::HttpBody;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path as UrlPath, Request, State};
use axum::http::header::{CONTENT_TYPE, HeaderMap};
use axum::http::{StatusCode, header};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Json, Router};
use bytes::Bytes;
use futures_util::StreamExt;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use proofmill_orchestrator::plan::QueueIx;
use proofmill_orchestrator::source::parse_message;
use proofmill_telemetry::FrontPage;
use tokio::time::Instant;

use super::calls::Calls;
use super::gate::Gate;
use super::queues::Caller;
use super::taker::{AT_ONCE, Room, Taker, Told};
use crate::control::BODY_MAX;
use crate::pace::{Pace, Paced, TooSlow};
use crate::page::front;
use crate::refused::Refused;

/// Longest time that the body of a request may take; less while others wait.
const BODY_TIME: Duration = Duration::from_secs(60);

/// Messages in a request, at most.
const LINES_MAX: usize = 10_000;

const LINES: &str = "application/x-ndjson";

type Answer = Result<Response, Refused>;

/// What the body of a request is.
enum Form {
    /// A message.
    One,
    /// A message on each line.
    Lines,
}

pub(super) fn router(taker: Arc<Taker>, calls: Calls, gate: Gate) -> Router {
    let others = move |request: Request| calls.clone().answer(request);
    Router::new()
        .route("/v1/queues/{queue}/messages", post(messages))
        .route("/v1/status", get(status))
        .fallback(others)
        .layer(middleware::from_fn_with_state(gate, Gate::pass))
        .with_state(taker)
        // It tells nothing of the workflow, and so needs no token.
        .route("/", get(async || front(&FRONT)))
}

const FRONT: FrontPage<'_> = FrontPage {
    title: "proofmill: the intake of a workflow",
    about: "Messages for the queues of a workflow are taken here, over HTTP and gRPC. Where tokens are \
            configured, show one: Authorization: Bearer TOKEN.",
    links: &[("/v1/status", "what becomes of the workflow, as JSON")],
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
    let status = tokio::time::timeout_at(taker.until(), taker.operations.status()).await;
    let status = status
        .map_err(|_| Refused::new(StatusCode::SERVICE_UNAVAILABLE, "nobody leads the workflow"))?;
    Ok(Json(status?).into_response())
}

async fn messages(
    State(taker): State<Arc<Taker>>,
    Extension(caller): Extension<Caller>,
    queue: Result<UrlPath<String>, PathRejection>,
    request: Request,
) -> Answer {
    let form = form(request.headers())?;
    let queue = taker.operations.queue(&queue?)?;
    caller.check(taker.operations.plan(), queue)?;
    let (room, body) = read(&taker, request).await?;
    match form {
        Form::One => {
            let (status, answer) = take(&taker, queue, &body, room, taker.until()).await?;
            Ok((status, Json(answer)).into_response())
        }
        Form::Lines => lines(&taker, queue, body, room).await,
    }
}

/// A page in a browser cannot send these types without asking first, which it may not.
fn form(headers: &HeaderMap) -> Result<Form, Refused> {
    let value = headers.get(CONTENT_TYPE);
    let value = value.and_then(|value| value.to_str().ok());
    let essence = value.map(|value| value.split(';').next().unwrap_or_default().trim());
    match essence {
        Some(name) if name.eq_ignore_ascii_case("application/json") => Ok(Form::One),
        Some(name) if name.eq_ignore_ascii_case(LINES) => Ok(Form::Lines),
        _ => Err(Refused::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            format!(
                "Content-Type: application/json for a message, {LINES} for a message on each line"
            ),
        )),
    }
}

/// The body of a request; there is room for it before it is read.
async fn read(taker: &Taker, request: Request) -> Result<(Room, Bytes), Refused> {
    let too_large = || {
        let why = format!("a request has at most {BODY_MAX} bytes");
        Refused::new(StatusCode::PAYLOAD_TOO_LARGE, why)
    };
    let length = match request.body().size_hint().upper() {
        Some(length) => usize::try_from(length).unwrap_or(usize::MAX),
        None => BODY_MAX,
    };
    if length > BODY_MAX {
        return Err(too_large());
    }
    let room = taker.room(length).await?;
    let pace = Pace::new(BODY_TIME, taker.pressure.clone());
    let body = Paced::new(request.into_body(), pace);
    match Limited::new(body, length).collect().await {
        Ok(body) => Ok((room, body.to_bytes())),
        Err(error) if error.is::<LengthLimitError>() => Err(too_large()),
        Err(error) if error.is::<TooSlow>() => Err(Refused::new(
            StatusCode::REQUEST_TIMEOUT,
            format!(
                "the body did not come within {} s, or brought too little while others waited",
                BODY_TIME.as_secs()
            ),
        )),
        Err(error) => Err(Refused::new(StatusCode::BAD_REQUEST, error.to_string())),
    }
}

/// Takes a message from each line; what became of each is on the same line of the answer.
async fn lines(taker: &Arc<Taker>, queue: QueueIx, body: Bytes, room: Room) -> Answer {
    let lines = body.split(|byte| *byte == b'\n');
    let lines: Vec<Bytes> = lines
        .filter(|line| !line.iter().all(u8::is_ascii_whitespace))
        .take(LINES_MAX + 1)
        .map(|line| body.slice_ref(line))
        .collect();
    if lines.len() > LINES_MAX {
        return Err(Refused::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!("a request has at most {LINES_MAX} messages"),
        ));
    }
    let until = taker.until();
    let mut answer = String::new();
    let taken = futures_util::stream::iter(lines).map(|line| {
        let (taker, room) = (taker.clone(), room.clone());
        async move { take(&taker, queue, &line, room, until).await }
    });
    let mut taken = std::pin::pin!(taken.buffered(AT_ONCE));
    while let Some(told) = taken.next().await {
        answer.push_str(&line(told));
        answer.push('\n');
    }
    Ok(([(header::CONTENT_TYPE, LINES)], answer).into_response())
}

/// Takes a message, as JSON.
async fn take(taker: &Taker, queue: QueueIx, text: &[u8], room: Room, until: Instant) -> Told {
    let message = parse_message(text)
        .map_err(|why| Refused::new(StatusCode::BAD_REQUEST, format!("the message: {why}")))?;
    taker.take(queue, message, room, until).await
}

/// What became of one of several messages.
fn line(told: Told) -> String {
    let (status, mut said) = match told {
        Ok((status, answer)) => (status, serde_json::json!(answer)),
        Err(Refused { status, why }) => (status, serde_json::json!({ "error": why })),
    };
    said["status"] = status.as_u16().into();
    said.to_string()
}
