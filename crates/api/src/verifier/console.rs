//! The console of a verifier: a page in the browser that shows it, read only, on loopback.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::Uri;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures_util::future::BoxFuture;
use proofmill_verifier::{Handle, KindFigures, Report};
use serde::Serialize;
use tokio::net::TcpListener;

use super::simulator::simulator;
use crate::console::{Look, Watched, asset, serve_pages};

/// Most sources that are shown: those with the most false proofs, then with the most requests under way.
const SOURCES_MAX: usize = 200;

/// A verifier, as pages watch it.
struct VerifierLook(Handle);

/// The state of a verifier.
#[derive(Serialize)]
struct Overview {
    /// Requests that have no verdict yet.
    under_way: usize,
    kinds: BTreeMap<String, Kind>,
    sources: Vec<Source>,
    /// Number of the sources that are remembered, those not shown included.
    source_count: usize,
}

/// Figures of the proofs of a kind. Times are microseconds of threads.
#[derive(Serialize)]
struct Kind {
    reductions: u64,
    reduce_us: u64,
    batches: u64,
    proofs: u64,
    check_us: u64,
    together: u64,
    alone: u64,
    screens: u64,
    /// Checks that one by one would have taken, less those that were made.
    saved: i64,
    /// Batches of at most 1, 2, 4, 8 and so on proofs.
    sizes: Vec<u64>,
}

/// A source of proofs, and its verdicts.
#[derive(Serialize)]
struct Source {
    source: Arc<str>,
    under_way: usize,
    /// Whether its proofs are checked apart, after false ones.
    apart: bool,
    valid: u64,
    invalid: u64,
    unavailable: u64,
}

// === impl Overview ===

impl Overview {
    fn of(report: Report) -> Self {
        let kinds = report.kinds.into_iter();
        let source_count = report.sources.len();
        let sources = report.sources.into_iter().map(|it| Source {
            source: it.source,
            under_way: it.under_way,
            apart: it.is_quarantined,
            valid: it.valid,
            invalid: it.invalid,
            unavailable: it.unavailable,
        });
        let mut sources: Vec<Source> = sources.collect();
        sources.sort_by(|a, b| {
            let rank = |it: &Source| (it.invalid, it.under_way, it.valid);
            rank(b).cmp(&rank(a)).then_with(|| a.source.cmp(&b.source))
        });
        sources.truncate(SOURCES_MAX);
        Self {
            under_way: report.under_way,
            kinds: kinds.map(|(name, it)| (name, Kind::of(&it))).collect(),
            sources,
            source_count,
        }
    }
}

// === impl Kind ===

impl Kind {
    fn of(figures: &KindFigures) -> Self {
        Self {
            reductions: figures.reductions,
            reduce_us: figures.reduce_us,
            batches: figures.batches,
            proofs: figures.proofs,
            check_us: figures.check_us,
            together: figures.checks.together,
            alone: figures.checks.alone,
            screens: figures.checks.screens,
            saved: figures.checks_saved(),
            sizes: figures.sizes.to_vec(),
        }
    }
}

// === impl VerifierLook ===

impl Look for VerifierLook {
    fn look(&mut self) -> BoxFuture<'_, Result<String, String>> {
        Box::pin(async move {
            let overview = Overview::of(self.0.report());
            serde_json::to_string(&overview).map_err(|error| error.to_string())
        })
    }

    fn no_answer(&self) -> String {
        "the verifier does not answer".to_owned()
    }
}

/// Serves the page until `stop`, and closes all connections then.
pub(super) async fn serve(listener: TcpListener, handle: Handle, stop: impl Future<Output = ()>) {
    let watched = Watched::new();
    let app = Router::new()
        .route("/api/events", get(events))
        .route("/simulator", get(simulator))
        .fallback(get(page))
        .with_state(watched.clone());
    tokio::select! {
        () = serve_pages(listener, app) => {}
        () = watched.keep(VerifierLook(handle)) => {}
        () = stop => {}
    }
}

async fn page(uri: Uri) -> Response {
    asset(match uri.path() {
        "/" => "/verifier.html",
        path => path,
    })
}

async fn events(State(watched): State<Arc<Watched>>) -> impl IntoResponse {
    watched.events(|| true)
}
