//! The console of an engine: a page in the browser that shows it, read only, on loopback.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures_util::future::BoxFuture;
use proofmill_engine::Handle;
use tokio::net::TcpListener;

use super::convert;
use super::history::History;
use super::overview;
use crate::console::{Look, Watched, asset, serve_pages};

/// An engine, as pages watch it.
struct EngineLook(Handle);

#[derive(Clone)]
struct PageState {
    watched: Arc<Watched>,
    history: Arc<History>,
}

// === impl EngineLook ===

impl Look for EngineLook {
    fn look(&mut self) -> BoxFuture<'_, Result<String, String>> {
        Box::pin(async move {
            let status = self.0.status().await.map_err(|error| error.to_string())?;
            overview::overview(convert::status(&status))
        })
    }

    fn no_answer(&self) -> String {
        "the engine does not answer".to_owned()
    }
}

/// Serves the page until `stop`, and closes all connections then.
pub(super) async fn serve(
    listener: TcpListener,
    handle: Handle,
    history: Arc<History>,
    stop: impl Future<Output = ()>,
) {
    let watched = Watched::new();
    let app = Router::new()
        .route("/api/events", get(events))
        .route("/timeline.svg", get(drawing))
        .fallback(get(page))
        .with_state(PageState {
            watched: watched.clone(),
            history,
        });
    tokio::select! {
        () = serve_pages(listener, app) => {}
        () = watched.keep(EngineLook(handle)) => {}
        () = stop => {}
    }
}

async fn page(uri: Uri) -> Response {
    asset(match uri.path() {
        "/" => "/engine.html",
        path => path,
    })
}

async fn events(State(state): State<PageState>) -> impl IntoResponse {
    state.watched.events(|| true)
}

/// The waterfall of the last partitions.
async fn drawing(State(state): State<PageState>) -> Response {
    let events = state.history.read(true, None).past;
    let drawing = overview::drawing(&events);
    ([(header::CONTENT_TYPE, "image/svg+xml")], drawing).into_response()
}
