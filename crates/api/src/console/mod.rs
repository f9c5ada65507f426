//! The console: a page in the browser that shows a mill, read only.
//!
//! It is served on loopback without a token, to pages of its own only: requests that name another host, which a page whose
//! name points to this machine does, and requests of other pages are refused. All pages share one look at the mill, which
//! nobody takes while nobody watches.

mod assets;
mod overview;

use std::convert::Infallible;
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::middleware::{self, Next};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures_util::{Stream, StreamExt, stream};
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::connections::AdmittedCall;
use crate::operations::{OperationError, Operations};
use crate::page::refuse_other_names;
use crate::refused::Refused;
use crate::serve::{self, HttpVersions, Terms};
use overview::Latest;

/// Longest life of a connection; the page then connects anew and gets a whole overview.
const LIFETIME: Duration = Duration::from_secs(3600);
/// Time between two signs of life to a page that watches.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

#[derive(Clone)]
struct Shared {
    operations: Operations,
    latest: watch::Sender<Option<Latest>>,
}

/// Serves the console until the future is dropped.
pub async fn serve(listener: TcpListener, operations: Operations) {
    let (latest, _) = watch::channel(None);
    let looking = overview::look(operations.clone(), latest.clone());
    let app = Router::new()
        .route("/api/block/{block}", get(block))
        .route("/api/events", get(events))
        .fallback(get(page))
        .layer(middleware::from_fn(guard))
        .with_state(Shared { operations, latest });
    let (terms, answer) = (
        Terms::plain(HttpVersions::Http1, LIFETIME),
        serve::answers(app),
    );
    let serving = serve::serve(listener, terms, answer, std::future::pending());
    tokio::join!(serving, looking);
}

/// Admits requests of the console's own pages, and protects the answers.
async fn guard(mut request: Request, next: Next) -> Response {
    let checked = refuse_other_names(request.uri(), request.headers())
        .and_then(|()| refuse_other_pages(request.headers()));
    let mut response = match checked {
        Ok(()) => {
            let _admitted = AdmittedCall::mark(&mut request);
            next.run(request).await
        }
        Err(refused) => refused.into_response(),
    };
    assets::protect(response.headers_mut());
    response
}

/// Refuses a request that another page makes: it names another origin than this server, or the browser says that it comes
/// from another site. The server's own pages name its origin when they load modules.
fn refuse_other_pages(headers: &HeaderMap) -> Result<(), Refused> {
    let is_own_site = headers
        .get("sec-fetch-site")
        .is_none_or(|site| site == "same-origin" || site == "none");
    let host = headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok());
    let is_own_origin = headers.get(header::ORIGIN).is_none_or(|origin| {
        let authority = origin
            .to_str()
            .ok()
            .and_then(|it| it.strip_prefix("http://"));
        authority.is_some() && authority == host
    });
    if is_own_site && is_own_origin {
        return Ok(());
    }
    Err(Refused::new(
        StatusCode::FORBIDDEN,
        "the console answers its own pages only",
    ))
}

async fn page(uri: Uri) -> Response {
    assets::asset(uri.path())
}

async fn block(State(shared): State<Shared>, Path(block): Path<u64>) -> Response {
    match shared.operations.block(block).await {
        Ok(status) => axum::Json(status).into_response(),
        Err(error) => refused(&error),
    }
}

fn refused(error: &OperationError) -> Response {
    let status = match error {
        OperationError::Unavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::BAD_REQUEST,
    };
    (status, format!("{error}\n")).into_response()
}

/// The overview, whole, at once and after every change.
async fn events(
    State(shared): State<Shared>,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let mut seen = shared.latest.subscribe();
    seen.mark_changed();
    let events = stream::unfold(seen, |mut seen| async move {
        loop {
            seen.changed().await.ok()?;
            let latest = seen.borrow_and_update().clone();
            let event = match latest {
                Some(Ok(overview)) => Event::default().event("overview").data(&*overview),
                Some(Err(error)) => Event::default().event("lost").data(&*error),
                // Nobody has looked yet.
                None => continue,
            };
            return Some((event, seen));
        }
    });
    Sse::new(events.map(Ok)).keep_alive(KeepAlive::new().interval(KEEP_ALIVE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_servers_own_pages_are_answered() {
        let passes = |pairs: &[(&'static str, &'static str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in pairs {
                headers.insert(*name, header::HeaderValue::from_static(value));
            }
            refuse_other_pages(&headers).is_ok()
        };
        let host = ("host", "127.0.0.1:9467");
        assert!(passes(&[host]));
        assert!(passes(&[
            host,
            ("origin", "http://127.0.0.1:9467"),
            ("sec-fetch-site", "same-origin")
        ]));
        assert!(passes(&[host, ("sec-fetch-site", "none")]));
        for other in [
            ("origin", "http://127.0.0.1:9468"),
            ("origin", "https://127.0.0.1:9467"),
            ("origin", "http://evil.example"),
            ("origin", "null"),
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-site", "same-site"),
        ] {
            assert!(!passes(&[host, other]), "{other:?}");
        }
    }
}
