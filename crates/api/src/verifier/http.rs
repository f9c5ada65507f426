//! Metrics and health of a verifier over HTTP.

use std::net::SocketAddr;

use axum::Router;
use axum::extract::State;
use axum::http::header;
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use proofmill_telemetry::{CONTENT_TYPE, FrontPage};
use proofmill_verifier::Handle;

use super::metrics;
use super::simulator::simulator;
use crate::page::{PageGate, front};

const FRONT: FrontPage<'_> = FrontPage {
    title: "proofmill verifier",
    about: "A verifier takes proofs of several kinds, and gives a verdict for each.",
    links: &[
        ("/metrics", "counters, for Prometheus"),
        ("/healthz", "whether it runs"),
        (
            "/simulator",
            "a simulation of batches, false proofs and load",
        ),
    ],
    calls: &[(
        "proofmill verifier serve --help",
        "how to start a verifier, and where it takes proofs: for example on the port of --listen",
    )],
    document: "verifier.md",
};

/// The pages. They show the amount of work for each client, and nothing of proofs.
pub(super) fn router(handle: Handle, address: Option<SocketAddr>) -> Router {
    Router::new()
        .route("/", get(async || front(&FRONT)))
        .route("/metrics", get(scrape))
        .route("/healthz", get(async || "ok\n"))
        .route("/simulator", get(simulator))
        .layer(middleware::from_fn_with_state(
            PageGate::for_port(address),
            PageGate::pass,
        ))
        .with_state(handle)
}

async fn scrape(State(handle): State<Handle>) -> Response {
    let page = metrics::page(&handle.report());
    ([(header::CONTENT_TYPE, CONTENT_TYPE)], page).into_response()
}
