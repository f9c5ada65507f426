//! HTTP requests on the port that also speaks gRPC: one proof each, and keys.

use std::sync::Arc;

use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post};
use axum::{Extension, Json, Router};
use bytes::Bytes;
use proofmill_telemetry::FrontPage;
use proofmill_verifier::KeyDigest;
use serde::Deserialize;
use serde_json::json;

use super::conversation::Conversation;
use super::framed;
use super::json::{read_request, verdict};
use super::message::{Answer, AnswerBody, KeyEntry};
use super::operation::{NumberedRequest, Operation};
use super::port_state::{PortState, Rights};
use crate::bodies::{BodyMemory, is_of_type};
use crate::gate::{Caller, Gate};
use crate::grpc::Calls;
use crate::page::front;
use crate::refused::Refused;

/// The message for requests to unknown paths, which names the known ones.
pub(super) const KNOWN: &str = "there is POST /v1/verify, GET and POST /v1/keys, DELETE /v1/keys/DIGEST, \
                                and GET /v1/kinds";

const MSGPACK: &str = "application/msgpack";

const FRONT: FrontPage<'_> = FrontPage {
    title: "proofmill verifier",
    about: "Proofs of several kinds are verified here, over HTTP and gRPC. Where tokens are configured, show \
            one: Authorization: Bearer TOKEN.",
    links: &[("/v1/kinds", "the kinds of proofs that are taken, as JSON")],
    calls: &[
        ("POST /v1/verify", "verifies a proof"),
        (
            "GET, POST /v1/keys; DELETE /v1/keys/DIGEST",
            "your verifying keys",
        ),
        (
            "proofmill.verifier.v1.Verifier",
            "streams of proofs over gRPC; the server has reflection, and grpc.health.v1",
        ),
    ],
    document: "verifier.md",
};

type AnswerResult = Result<Response, Refused>;

/// The state that the routes share.
#[derive(Clone)]
struct RouteState {
    port_state: Arc<PortState>,
    bodies: Arc<BodyMemory>,
}

/// The encoding of a request for a verdict, and of its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Encoding {
    Json,
    MessagePack,
}

/// A conversation of one request, which is cancelled if its client disconnects.
struct SingleRequest(Conversation);

pub(super) fn router(
    port_state: Arc<PortState>,
    bodies: Arc<BodyMemory>,
    calls: Calls,
    gate: Gate<Rights>,
) -> Router {
    let others = move |request: Request| calls.clone().answer(request);
    Router::new()
        .route("/v1/verify", post(verify))
        .route("/v1/keys", get(keys).post(add_key))
        .route("/v1/keys/{digest}", delete(remove_key))
        .route("/v1/kinds", get(kinds))
        .fallback(others)
        .layer(middleware::from_fn_with_state(gate, Gate::pass))
        .with_state(RouteState { port_state, bodies })
        // The front page shows nothing about requests, so it needs no token.
        .route("/", get(async || front(&FRONT)))
}

async fn verify(
    State(state): State<RouteState>,
    Extension(caller): Extension<Caller<Rights>>,
    request: Request,
) -> AnswerResult {
    let encoding = encoding(request.headers())?;
    let open_call = state.port_state.admit()?;
    let (room, body) = state.bodies.read(request).await?;
    let request = match encoding {
        Encoding::Json => read_request(&body)?,
        Encoding::MessagePack => framed::read_request(&body),
    };
    if let NumberedRequest {
        operation: Ok(operation),
        ..
    } = &request
        && !matches!(operation, Operation::Verify(_))
    {
        let why = "not a request to verify a proof: the requests for keys are at /v1/keys";
        return Err(Refused::new(StatusCode::BAD_REQUEST, why));
    }
    let conversation = SingleRequest(state.port_state.conversation(&caller));
    let permit = conversation.0.acquire_permit().await;
    let answer = conversation.0.answer(request).await;
    // The request is accepted: from here on the verifier's own limits count it.
    drop((room, body));
    let answer = answer.await;
    drop((permit, open_call));
    response(encoding, &answer)
}

/// The verdict, or the refusal of the request.
fn response(encoding: Encoding, answer: &Answer) -> AnswerResult {
    match (&answer.body, encoding) {
        (AnswerBody::Refused { error_message }, _) => {
            Err(Refused::new(StatusCode::BAD_REQUEST, error_message))
        }
        (AnswerBody::Result(result), Encoding::Json) => Ok(Json(verdict(result)).into_response()),
        _ => Ok(([(header::CONTENT_TYPE, MSGPACK)], answer.encode()).into_response()),
    }
}

fn encoding(headers: &HeaderMap) -> Result<Encoding, Refused> {
    if is_of_type(headers, "application/json") {
        Ok(Encoding::Json)
    } else if is_of_type(headers, MSGPACK) || is_of_type(headers, "application/x-msgpack") {
        Ok(Encoding::MessagePack)
    } else {
        Err(Refused::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            format!("Content-Type: application/json, or {MSGPACK} for the content of a frame"),
        ))
    }
}

async fn keys(
    State(state): State<RouteState>,
    Extension(caller): Extension<Caller<Rights>>,
) -> Json<serde_json::Value> {
    let keys = state
        .port_state
        .handle
        .keys(PortState::client(&caller))
        .into_iter();
    let keys: Vec<KeyEntry> = keys.map(KeyEntry::from).collect();
    Json(json!({ "keys": keys }))
}

/// The query parameters of a request to add a key.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AddKeyQuery {
    kind: String,
}

/// Adds a key, whose bytes are the body.
async fn add_key(
    State(state): State<RouteState>,
    Extension(caller): Extension<Caller<Rights>>,
    query: Result<Query<AddKeyQuery>, QueryRejection>,
    request: Request,
) -> AnswerResult {
    let Query(AddKeyQuery { kind }) = query.map_err(|rejection| {
        let why = format!(
            "name the kind of proofs that the key is for, as in POST /v1/keys?kind=groth16-bn254: {}",
            rejection.body_text()
        );
        Refused::new(StatusCode::BAD_REQUEST, why)
    })?;
    let form_types = [
        "application/x-www-form-urlencoded",
        "multipart/form-data",
        "text/plain",
    ];
    if form_types
        .iter()
        .any(|name| is_of_type(request.headers(), name))
    {
        return Err(Refused::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "Content-Type: application/json for a key in JSON, application/octet-stream for any other",
        ));
    }
    let open_call = state.port_state.admit()?;
    let (room, body): (_, Bytes) = state.bodies.read(request).await?;
    let client = PortState::client(&caller);
    let digest = state.port_state.handle.add_key(client, &kind, body).await?;
    drop((room, open_call));
    let added = json!({ "digest": digest.to_string(), "kind": kind });
    Ok((StatusCode::CREATED, Json(added)).into_response())
}

async fn remove_key(
    State(state): State<RouteState>,
    Extension(caller): Extension<Caller<Rights>>,
    digest: Result<Path<String>, PathRejection>,
) -> AnswerResult {
    let Path(digest) = digest?;
    let digest: KeyDigest = digest
        .parse()
        .map_err(|error| Refused::new(StatusCode::BAD_REQUEST, format!("{error}")))?;
    if state
        .port_state
        .handle
        .remove_key(PortState::client(&caller), digest)
    {
        Ok(StatusCode::NO_CONTENT.into_response())
    } else {
        let why = format!("you have no key {digest} here");
        Err(Refused::new(StatusCode::NOT_FOUND, why))
    }
}

async fn kinds(State(state): State<RouteState>) -> Json<serde_json::Value> {
    Json(json!({ "kinds": state.port_state.handle.kinds() }))
}

// === impl SingleRequest ===

impl Drop for SingleRequest {
    fn drop(&mut self) {
        self.0.cancel_all();
    }
}
