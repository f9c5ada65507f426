//! The HTTP routes.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use proofmill_directory::KEY_BYTES_MAX;
use proofmill_directory::chain::Checkpoint;
use proofmill_directory::inclusion::KeyAnswer;
use proofmill_directory::store::{KeyDirectory, StoreError};
use proofmill_telemetry::FrontPage;
use serde::Deserialize;
use tokio::sync::OwnedSemaphorePermit;

use super::state::ServedDirectory;
use crate::gate::Gate;
use crate::page::front;
use crate::refused::Refused;

/// The answer to requests for anything else.
const KNOWN: &str =
    "there is GET /v1/root, /v1/keys/KEY, /v1/keys?hex=DIGITS, and /v1/epochs/NUMBER";

const FRONT: FrontPage<'_> = FrontPage {
    title: "proofmill: a key directory",
    about: "A verifiable key directory: keys with versions and values, proofs of their states, and proofs that every \
            epoch keeps the rules. Where tokens are configured, show one: Authorization: Bearer TOKEN.",
    links: &[("/v1/root", "the last epoch and its root, as JSON")],
    calls: &[
        (
            "GET /v1/keys/KEY, /v1/keys?hex=DIGITS",
            "the state of a key, with its proof",
        ),
        ("GET /v1/epochs/NUMBER", "the record of an epoch"),
        (
            "proofmill vkd verify",
            "verifies a key's state, and a chain of records",
        ),
    ],
    document: "key-directory.md",
};

/// The media type of answers.
const JSON: &str = "application/json";

type Answer = Result<Response, Refused>;

/// The rights of clients, which are all equal.
pub(super) type Rights = ();

pub(super) fn router(served: Arc<ServedDirectory>, gate: Gate<Rights>) -> Router {
    Router::new()
        .route("/v1/root", get(root))
        .route("/v1/keys", get(key_in_hex))
        .route("/v1/keys/{key}", get(key))
        .route("/v1/epochs/{number}", get(epoch))
        .fallback(async || Refused::new(StatusCode::NOT_FOUND, KNOWN))
        .layer(middleware::from_fn_with_state(gate, Gate::pass))
        .with_state(served)
        // The front page shows nothing of the directory, so it needs no token.
        .route("/", get(async || front(&FRONT)))
}

async fn root(State(served): State<Arc<ServedDirectory>>) -> Json<Checkpoint> {
    Json(served.current().checkpoint())
}

async fn key(
    State(served): State<Arc<ServedDirectory>>,
    key: Result<Path<String>, PathRejection>,
) -> Answer {
    let Path(key) = key?;
    answer(&served.current(), key.as_bytes())
}

/// The query of a key that is no text.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HexQuery {
    hex: String,
}

async fn key_in_hex(
    State(served): State<Arc<ServedDirectory>>,
    query: Result<Query<HexQuery>, QueryRejection>,
) -> Answer {
    let Query(HexQuery { hex }) = query.map_err(|rejection| {
        let why = format!(
            "name a key, as in /v1/keys/alice or /v1/keys?hex=00ff: {}",
            rejection.body_text()
        );
        Refused::new(StatusCode::BAD_REQUEST, why)
    })?;
    let key = hex::decode(&hex).map_err(|error| {
        Refused::new(StatusCode::BAD_REQUEST, format!("parameter `hex`: {error}"))
    })?;
    answer(&served.current(), &key)
}

/// The state of a key and its proof; that a key is absent is proved, and so an answer like any other.
fn answer(directory: &KeyDirectory, key: &[u8]) -> Answer {
    if key.len() > KEY_BYTES_MAX {
        let found = key.len();
        let why = format!("a key of {found} bytes: it has {KEY_BYTES_MAX} at most");
        return Err(Refused::new(StatusCode::BAD_REQUEST, why));
    }
    let json = KeyAnswer::new(directory, key).to_json();
    Ok(([(header::CONTENT_TYPE, JSON)], json).into_response())
}

async fn epoch(
    State(served): State<Arc<ServedDirectory>>,
    number: Result<Path<u64>, PathRejection>,
) -> Answer {
    let Path(number) = number?;
    let directory = served.current();
    let last = directory.epoch();
    if !(1..=last).contains(&number) {
        let error = StoreError::NoEpoch { number, last };
        return Err(Refused::new(StatusCode::NOT_FOUND, error.to_string()));
    }
    let place = served.record_place().await?;
    // The place goes with the work, which does not end with a client that has gone.
    let work = move || (record(&directory, number), place);
    match tokio::task::spawn_blocking(work).await {
        Ok((Ok(Some(json)), place)) => Ok(with_place(json, place)),
        Ok((Ok(None), _)) => Err(Refused::new(
            StatusCode::NOT_FOUND,
            format!("epoch {number} is not proved yet"),
        )),
        Ok((Err(error), _)) => Err(unreadable(number, &error)),
        Err(error) => Err(unreadable(number, &error.to_string())),
    }
}

/// The record of an epoch as JSON; `None` if the epoch is not proved.
fn record(directory: &KeyDirectory, number: u64) -> Result<Option<Vec<u8>>, String> {
    let record = directory
        .record(number)
        .map_err(|error| error.to_string())?;
    let json = record.map(|record| serde_json::to_vec(&record));
    json.transpose().map_err(|error| error.to_string())
}

/// The cause stays in the log: it has paths of this machine.
fn unreadable(number: u64, why: &str) -> Refused {
    tracing::warn!(number, why, "the record of an epoch cannot be read");
    Refused::new(
        StatusCode::INTERNAL_SERVER_ERROR,
        format!("the record of epoch {number} cannot be read: see the server's log"),
    )
}

/// A body of JSON that keeps its place in memory until it is sent.
fn with_place(json: Vec<u8>, place: OwnedSemaphorePermit) -> Response {
    let length = HeaderValue::from(json.len());
    let body = Full::new(Bytes::from(json)).map_frame(move |frame| {
        let _held: &OwnedSemaphorePermit = &place;
        frame
    });
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(JSON)),
        (header::CONTENT_LENGTH, length),
    ];
    (headers, Body::new(body)).into_response()
}
