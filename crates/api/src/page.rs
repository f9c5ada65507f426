//! Refusal of requests from pages in a browser: by their `Origin`, or by a host name that a page made to
//! point to this machine (DNS rebinding).

use std::net::{IpAddr, SocketAddr};

use axum::extract::{Request, State};
use axum::http::header::{CONTENT_TYPE, HOST, HeaderMap, ORIGIN};
use axum::http::{HeaderValue, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use proofmill_telemetry::{FRONT_PAGE_TYPE, FrontPage};

use crate::connections::AdmittedCall;
use crate::refused::Refused;

/// Refuses pages at a port that needs no token.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageGate {
    /// Whether any host name is allowed, as on a port that other machines reach by names that this process cannot know.
    any_name: bool,
}

// === impl PageGate ===

impl PageGate {
    /// The gate for a port at `address`. On loopback, only an IP address or `localhost` is allowed as host name;
    /// elsewhere any name is.
    pub(crate) fn for_port(address: Option<SocketAddr>) -> Self {
        Self {
            any_name: address.is_some_and(|address| !address.ip().is_loopback()),
        }
    }

    /// Passes a request on, or answers it with a refusal.
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
                let _admitted = AdmittedCall::mark(&mut request);
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

/// Refuses a request with an `Origin` header, which comes from a page.
pub(crate) fn refuse_page(headers: &HeaderMap) -> Result<(), Refused> {
    if headers.contains_key(ORIGIN) {
        return Err(Refused::new(
            StatusCode::FORBIDDEN,
            "requests from pages in a browser are refused: there is an Origin header",
        ));
    }
    Ok(())
}

/// Refuses a request whose host name is neither an address nor `localhost`: a page whose own name points to
/// this machine uses that name.
pub(crate) fn refuse_other_names(uri: &Uri, headers: &HeaderMap) -> Result<(), Refused> {
    if is_local(uri, headers) {
        return Ok(());
    }
    Err(Refused::new(
        StatusCode::FORBIDDEN,
        "without a token, address the server by an IP address or as localhost: the Host header \
         has another name",
    ))
}

fn is_local(uri: &Uri, headers: &HeaderMap) -> bool {
    let mut hosts = headers.get_all(HOST).iter();
    // In HTTP/2 the name is in the URI.
    let uri_host = uri.host();
    let (first, None) = (hosts.next().map(HeaderValue::to_str), hosts.next()) else {
        return false;
    };
    match (uri_host, first) {
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
