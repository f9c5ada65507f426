//! Access control of ports that speak HTTP and gRPC: a caller shows a token where tokens are configured,
//! and pages in a browser are refused.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::HeaderMap;
use axum::http::{HeaderValue, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tonic::Status;
use tonic::body::Body;

use crate::access::{Client, Clients, Token};
use crate::connections::AdmittedCall;
use crate::grpc::{is_call, is_health_check};
use crate::page::{refuse_other_names, refuse_page};
use crate::refused::Refused;

/// Admits or refuses requests.
#[derive(Debug)]
pub(crate) struct Gate<R> {
    clients: Option<Clients<R>>,
    /// The option that names the file of tokens, for the refusal.
    option: &'static str,
}

/// The caller of a request. The gate puts one into the extensions of each request that it admits.
#[derive(Clone, Debug)]
pub(crate) struct Caller<R> {
    /// The client's name; none if no token is needed.
    pub(crate) client: Option<Arc<str>>,
    pub(crate) rights: R,
}

// === impl Gate ===

impl<R> Gate<R> {
    /// A gate that admits programs on this machine.
    pub(crate) fn local() -> Self {
        Self {
            clients: None,
            option: "",
        }
    }

    /// A gate that admits callers with a token of these clients. `option` is the command line's option for their file.
    pub(crate) fn with_tokens(clients: Clients<R>, option: &'static str) -> Self {
        Self {
            clients: Some(clients),
            option,
        }
    }

    /// The clients that are admitted; none if no token is needed.
    pub(crate) fn clients(&self) -> impl Iterator<Item = &Client<R>> {
        self.clients.iter().flat_map(Clients::iter)
    }
}

impl<R> Gate<R>
where
    R: Clone + Default + Send + Sync + 'static,
{
    /// Passes a request on, or answers it with a refusal.
    pub(crate) async fn pass(
        State(gate): State<Self>,
        mut request: Request,
        next: Next,
    ) -> Response {
        let refused = match gate.admit(request.uri(), request.headers()) {
            Ok(caller) => {
                // The guard is kept until there is an answer. gRPC calls keep a clone until the answer's body ends.
                let _admitted = caller.map(|caller| {
                    request.extensions_mut().insert(caller);
                    AdmittedCall::mark(&mut request)
                });
                return next.run(request).await;
            }
            Err(refused) => refused,
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
        // The rest of the request is not read.
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        response
    }

    /// The caller of a request; `None` for a health check from a caller that may ask for nothing else.
    fn admit(&self, uri: &Uri, headers: &HeaderMap) -> Result<Option<Caller<R>>, Refused> {
        let admitted = refuse_page(headers).and_then(|()| self.caller(uri, headers));
        match admitted {
            Ok(caller) => Ok(Some(caller)),
            Err(_) if is_health_check(uri) => Ok(None),
            Err(refused) => Err(refused),
        }
    }

    fn caller(&self, uri: &Uri, headers: &HeaderMap) -> Result<Caller<R>, Refused> {
        let Some(clients) = &self.clients else {
            refuse_other_names(uri, headers)?;
            return Ok(Caller::local());
        };
        // A page in a browser has no token, so the host name that it uses does not matter.
        let client = Token::shown(headers).and_then(|it| {
            clients.find_by_token(&it).map(|client| Caller {
                client: Some(client.name.clone()),
                rights: client.rights.clone(),
            })
        });
        client.ok_or_else(|| {
            Refused::new(
                StatusCode::UNAUTHORIZED,
                format!(
                    "show a token of {}: `Authorization: Bearer TOKEN`",
                    self.option
                ),
            )
        })
    }
}

impl<R> Clone for Gate<R> {
    fn clone(&self) -> Self {
        Self {
            clients: self.clients.clone(),
            option: self.option,
        }
    }
}

// === impl Caller ===

impl<R: Default> Caller<R> {
    /// A caller on this machine, where no token is needed.
    fn local() -> Self {
        Self {
            client: None,
            rights: R::default(),
        }
    }
}

impl<R: Clone + Send + Sync + 'static> Caller<R> {
    /// The caller of a call, as attached by the gate.
    pub(crate) fn of_call<T>(request: &tonic::Request<T>) -> Result<Self, Status> {
        let caller = request.extensions().get().cloned();
        caller.ok_or_else(|| Status::internal("the caller is unknown"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "0123456789abcdef";

    fn status(token: Option<&str>, headers: &[(&'static str, &str)]) -> u16 {
        status_at("/", token, headers)
    }

    fn status_at(uri: &str, token: Option<&str>, headers: &[(&'static str, &str)]) -> u16 {
        let parse = |word| Clients::parse(word, Some("sole"), |_| Ok(()));
        let clients = token.map(|word| parse(word).expect("a token"));
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().expect("a value"));
        }
        let uri = uri.parse().expect("an address");
        let gate = Gate {
            clients,
            option: "--tokens",
        };
        let refused = gate.admit(&uri, &map).err();
        refused.map_or(200, |refused| refused.status.as_u16())
    }

    #[test]
    fn without_a_token_only_an_ip_address_or_localhost_is_admitted() {
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
    fn a_page_is_refused_even_with_the_token() {
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
    fn host_names_in_the_uri_of_http_2_are_checked() {
        let host = [("host", "localhost")];
        assert_eq!(status_at("http://127.0.0.1:9465/v1/status", None, &[]), 200);
        assert_eq!(
            status_at("http://127.0.0.1:9465/v1/status", None, &host),
            200
        );
        assert_eq!(status_at("http://evil.example/v1/status", None, &[]), 403);
        assert_eq!(status_at("http://evil.example/v1/status", None, &host), 403);
        assert_eq!(
            status_at("http://localhost/", None, &[("host", "evil.example")]),
            403
        );
    }

    #[test]
    fn a_caller_with_the_token_may_use_any_host_name() {
        let with = |value: &str| {
            let headers = [("host", "a.name.of.ours"), ("authorization", value)];
            status(Some(TOKEN), &headers)
        };
        assert_eq!(with(&format!("Bearer {TOKEN}")), 200);
        assert_eq!(with("Bearer 0123456789abcdeF"), 401);
        assert_eq!(status(Some(TOKEN), &[("host", "localhost")]), 401);
    }
}
