//! Pages in a browser, which may not ask: neither as themselves nor by a name that they have given this
//! machine (DNS rebinding).

use std::net::{IpAddr, SocketAddr};

use axum::extract::{Request, State};
use axum::http::header::{CONTENT_TYPE, HOST, HeaderMap, ORIGIN};
use axum::http::{HeaderValue, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use proofmill_telemetry::{FRONT_PAGE_TYPE, FrontPage};

use crate::connections::Admitted;
use crate::refused::Refused;

/// Keeps pages out of a port that needs no token.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageGate {
    /// Whether it may be asked by any name: other machines reach it, and know it by one.
    any_name: bool,
}

// === impl PageGate ===

impl PageGate {
    /// On loopback only an address or `localhost` may be asked for. A port that other machines reach has names
    /// that are not known here.
    pub(crate) fn on(address: Option<SocketAddr>) -> Self {
        Self {
            any_name: address.is_some_and(|address| !address.ip().is_loopback()),
        }
    }

    /// Lets a request pass, or answers it.
    pub(crate) async fn pass(
        State(gate): State<Self>,
        mut request: Request,
        next: Next,
    ) -> Response {
        let (uri, headers) = (request.uri(), request.headers());
        let checked = if gate.any_name {
            refuse_page(headers)
        } else {
            refuse_page(headers).and_then(|()| refuse_other_names(uri, headers))
        };
        match checked {
            Ok(()) => {
                let _admitted = Admitted::mark(&mut request);
                next.run(request).await
            }
            Err(refused) => refused.into_response(),
        }
    }
}

/// The answer to `GET /`.
pub(crate) fn front(page: &FrontPage<'_>) -> Response {
    ([(CONTENT_TYPE, FRONT_PAGE_TYPE)], page.html()).into_response()
}

/// Refuses what says that it comes from a page.
pub(crate) fn refuse_page(headers: &HeaderMap) -> Result<(), Refused> {
    if headers.contains_key(ORIGIN) {
        return Err(Refused::new(
            StatusCode::FORBIDDEN,
            "pages in a browser may not ask: there is an Origin header",
        ));
    }
    Ok(())
}

/// Refuses what asks by another name than this machine's address or `localhost`: a page that has its own
/// name point here asks by that name.
pub(crate) fn refuse_other_names(uri: &Uri, headers: &HeaderMap) -> Result<(), Refused> {
    if is_local(uri, headers) {
        return Ok(());
    }
    Err(Refused::new(
        StatusCode::FORBIDDEN,
        "without a token, ask by an address or as localhost: the Host header has another name",
    ))
}

fn is_local(uri: &Uri, headers: &HeaderMap) -> bool {
    let mut hosts = headers.get_all(HOST).iter();
    // HTTP/2 has the name beside the path.
    let named = uri.host();
    let (first, None) = (hosts.next().map(HeaderValue::to_str), hosts.next()) else {
        return false;
    };
    match (named, first) {
        (Some(name), None) | (None, Some(Ok(name))) => names_this_machine(name),
        (Some(name), Some(Ok(other))) => names_this_machine(name) && names_this_machine(other),
        (None, None) | (_, Some(Err(_))) => false,
    }
}

fn names_this_machine(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok()
}
