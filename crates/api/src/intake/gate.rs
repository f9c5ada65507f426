//! Who may ask: whoever shows the token, and no page in a browser.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{HOST, HeaderMap, ORIGIN};
use axum::http::{HeaderValue, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tonic::Status;
use tonic::body::Body;

use super::calls::{is_call, is_health};
use crate::access::Token;
use crate::refused::Refused;

/// Keeps out who may not ask.
pub(super) struct Gate {
    pub(super) token: Option<Token>,
}

// === impl Gate ===

impl Gate {
    /// Lets a request pass, or answers it.
    pub(super) async fn pass(
        State(gate): State<Arc<Self>>,
        request: Request,
        next: Next,
    ) -> Response {
        if is_health(request.uri()) {
            return next.run(request).await;
        }
        let Err(refused) = gate.admit(request.uri(), request.headers()) else {
            return next.run(request).await;
        };
        if is_call(request.headers()) {
            return Status::from(refused).into_http::<Body>().into_response();
        }
        let status = refused.status;
        let mut response = refused.into_response();
        let headers = response.headers_mut();
        if status == StatusCode::UNAUTHORIZED {
            let scheme = HeaderValue::from_static("Bearer");
            headers.insert(header::WWW_AUTHENTICATE, scheme);
        }
        // What it still sends is not read.
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        response
    }

    fn admit(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Refused> {
        let forbidden = |why: &str| Err(Refused::new(StatusCode::FORBIDDEN, why));
        if headers.contains_key(ORIGIN) {
            return forbidden("pages in a browser may not ask: there is an Origin header");
        }
        match &self.token {
            // A page in a browser has no token, whatever name it has given this machine.
            Some(token) if Token::shown(headers).is_some_and(|it| token.is(&it).into()) => Ok(()),
            Some(_) => Err(Refused::new(
                StatusCode::UNAUTHORIZED,
                "show the token of --submit-token: `Authorization: Bearer TOKEN`",
            )),
            None if is_local(uri, headers) => Ok(()),
            None => forbidden(
                "without a token, ask by an address or as localhost: the Host header has another \
                 name",
            ),
        }
    }
}

/// Whether this machine is asked by an address, or as `localhost`: a page that has its own name
/// point here (DNS rebinding) asks by that name.
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

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "0123456789abcdef";

    fn status(token: Option<&str>, headers: &[(&'static str, &str)]) -> u16 {
        asked("/", token, headers)
    }

    fn asked(uri: &str, token: Option<&str>, headers: &[(&'static str, &str)]) -> u16 {
        let token = token.map(|word| Token::try_new(word).expect("a token"));
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().expect("a value"));
        }
        let uri = uri.parse().expect("an address");
        let refused = Gate { token }.admit(&uri, &map).err();
        refused.map_or(200, |refused| refused.status.as_u16())
    }

    #[test]
    fn without_a_token_only_an_address_or_localhost_is_asked() {
        for host in [
            "127.0.0.1",
            "127.0.0.1:9465",
            "localhost",
            "LOCALHOST:9465",
            "[::1]",
            "[::1]:9465",
        ] {
            assert_eq!(status(None, &[("host", host)]), 200, "{host}");
        }
        for host in [
            "evil.example",
            "evil.example:9465",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "",
            "[",
            ":9465",
            "localhost@evil.example",
        ] {
            assert_eq!(status(None, &[("host", host)]), 403, "{host}");
        }
        assert_eq!(status(None, &[]), 403);
        let two = [("host", "localhost"), ("host", "evil.example")];
        assert_eq!(status(None, &two), 403);
    }

    #[test]
    fn a_page_is_refused_with_the_token_too() {
        for origin in ["null", "http://127.0.0.1:9465", "https://evil.example"] {
            let bearer = format!("Bearer {TOKEN}");
            let headers = [
                ("host", "127.0.0.1"),
                ("origin", origin),
                ("authorization", &bearer),
            ];
            assert_eq!(status(None, &headers), 403, "{origin}");
            assert_eq!(status(Some(TOKEN), &headers), 403, "{origin}");
        }
    }

    #[test]
    fn http_2_names_whom_it_asks_beside_the_path() {
        let host = [("host", "localhost")];
        assert_eq!(asked("http://127.0.0.1:9465/v1/status", None, &[]), 200);
        assert_eq!(asked("http://127.0.0.1:9465/v1/status", None, &host), 200);
        assert_eq!(asked("http://evil.example/v1/status", None, &[]), 403);
        assert_eq!(asked("http://evil.example/v1/status", None, &host), 403);
        assert_eq!(
            asked("http://localhost/", None, &[("host", "evil.example")]),
            403
        );
    }

    #[test]
    fn who_shows_the_token_may_ask_by_any_name() {
        let with = |value: &str| {
            let headers = [("host", "a.name.of.ours"), ("authorization", value)];
            status(Some(TOKEN), &headers)
        };
        assert_eq!(with(&format!("Bearer {TOKEN}")), 200);
        assert_eq!(with("Bearer 0123456789abcdeF"), 401);
        assert_eq!(status(Some(TOKEN), &[("host", "localhost")]), 401);
    }
}
