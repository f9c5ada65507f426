//! The engine's pages over HTTP.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use proofmill_engine::{Handle, Status};
use proofmill_telemetry::{CONTENT_TYPE, FrontPage};

use super::convert;
use super::history::History;
use super::metrics;
use super::timeline;
use crate::page::{PageGate, front};

const LINKS: &[(&str, &str)] = &[
    ("/metrics", "counters and histograms, for Prometheus"),
    ("/healthz", "whether it takes new jobs"),
    (
        "/status",
        "stages, devices, memory, circuits and jobs, as JSON",
    ),
    (
        "/timeline",
        "recent work, as a trace for Perfetto or Chrome",
    ),
];

const FRONT: FrontPage<'_> = FrontPage {
    title: "proofmill engine",
    about: "The state of a proving engine. Proofs are requested elsewhere: over gRPC, on its Unix \
            socket and on the port of --listen.",
    links: LINKS,
    calls: &[("proofmill engine top", "the same on a terminal")],
    document: "engine.md",
};

#[derive(Clone)]
struct PageState {
    handle: Handle,
    history: Arc<History>,
}

/// `/metrics` (Prometheus) and `/healthz`; on a loopback address also `/status` and `/timeline`, which name
/// jobs, clients and files. Pages in a browser are refused.
pub(crate) fn router(handle: Handle, history: Arc<History>, address: Option<SocketAddr>) -> Router {
    let is_local = address.is_some_and(|address| address.ip().is_loopback());
    // The front page has no links to pages that are not served.
    let links = if is_local { LINKS } else { &LINKS[..2] };
    let mut router = Router::new()
        .route("/", get(async || front(&FrontPage { links, ..FRONT })))
        .route("/metrics", get(page))
        .route("/healthz", get(health));
    if is_local {
        router = router
            .route("/status", get(status))
            .route("/timeline", get(trace));
    }
    router
        .layer(middleware::from_fn_with_state(
            PageGate::for_port(address),
            PageGate::pass,
        ))
        .with_state(PageState { handle, history })
}

async fn engine_status(state: &PageState) -> Result<Status, Response> {
    let status = state.handle.status().await;
    status.map_err(|error| (StatusCode::SERVICE_UNAVAILABLE, format!("{error}\n")).into_response())
}

async fn page(State(state): State<PageState>) -> Result<Response, Response> {
    let page = metrics::page(&engine_status(&state).await?, state.history.durations());
    Ok(([(header::CONTENT_TYPE, CONTENT_TYPE)], page).into_response())
}

async fn health(State(state): State<PageState>) -> Result<Response, Response> {
    if engine_status(&state).await?.draining {
        return Err((StatusCode::SERVICE_UNAVAILABLE, "draining\n").into_response());
    }
    Ok("ok\n".into_response())
}

async fn status(State(state): State<PageState>) -> Result<Response, Response> {
    Ok(Json(convert::status(&engine_status(&state).await?)).into_response())
}

async fn trace(State(state): State<PageState>) -> Response {
    let events = state.history.read(true, None).past;
    let trace = timeline::trace(&timeline::Timeline::of(&events));
    ([(header::CONTENT_TYPE, "application/json")], trace).into_response()
}
