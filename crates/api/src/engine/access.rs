//! Access control of the engine's listeners: the gate of each listener, and the tokens of clients.

use std::path::Path;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::future::{Either, Ready, ready};
use hyper::{Request, Response};
use tonic::Status;
use tonic::body::Body;
use tower_layer::Layer;
use tower_service::Service;

use crate::access::{AccessError, Clients, Token};
use crate::connections::AdmittedCall;
use crate::grpc::is_health_check;
use crate::page::{refuse_other_names, refuse_page};

/// The clients that may call, and their tokens.
#[derive(Clone, Debug)]
pub struct Tokens(Clients<Rights>);

/// Rights of a client beside those to its own jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rights {
    /// Whether the client is an operator, who may load and evict keys and see the paths of their files.
    pub(crate) operator: bool,
}

/// The client whose token a call carries.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub(crate) name: Arc<str>,
    pub(crate) rights: Rights,
}

/// The callers that a listener admits.
#[derive(Clone, Debug)]
pub(crate) enum Gate {
    /// All callers: a Unix socket of this user, or calls within the process.
    Open,
    /// Programs on this machine; pages in a browser are refused.
    Local,
    /// Callers with a token; health checks need none.
    Tokens(Tokens),
}

/// A service behind a [`Gate`].
#[derive(Clone)]
pub(crate) struct Gated<S> {
    inner: S,
    gate: Gate,
}

// === impl Tokens ===

impl Tokens {
    /// Reads a file with a client's name and its token on each line, such as `rollup 7f3c…`, followed by
    /// `operator` for a client that may load and evict keys and see their paths. Empty lines and comments
    /// after `#` are ignored.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or can be read by other users; or a message that names the malformed line.
    pub async fn read(path: &Path) -> Result<Self, AccessError> {
        Clients::read(path, None, rights).await.map(Self)
    }
}

fn rights(words: &[&str]) -> Result<Rights, String> {
    match words {
        [] => Ok(Rights::default()),
        ["operator"] => Ok(Rights { operator: true }),
        ["operator", other, ..] | [other, ..] => Err(format!(
            "{other:?} is not a right of a client: expected `operator`, or nothing"
        )),
    }
}

// === impl Gate ===

impl Gate {
    /// Admits a call and attaches its caller. A health check is let through without a caller.
    fn admit(&self, request: &mut Request<Body>) -> Result<(), Status> {
        let (uri, headers) = (request.uri(), request.headers());
        match self {
            Self::Open => {}
            Self::Local => {
                refuse_page(headers)?;
                refuse_other_names(uri, headers)?;
            }
            Self::Tokens(Tokens(clients)) => {
                refuse_page(headers)?;
                let shown = Token::shown(headers);
                let client = shown.as_ref().and_then(|it| clients.find_by_token(it));
                let caller = client.map(|client| Caller {
                    name: client.name.clone(),
                    rights: client.rights,
                });
                match (caller, shown) {
                    (Some(caller), _) => {
                        request.extensions_mut().insert(caller);
                    }
                    (None, _) if is_health_check(uri) => return Ok(()),
                    (None, Some(_)) => {
                        let none = "the engine does not know the token";
                        return Err(Status::unauthenticated(none));
                    }
                    (None, None) => {
                        return Err(Status::unauthenticated(
                            "the call needs a token: the header `authorization: Bearer TOKEN`",
                        ));
                    }
                }
            }
        }
        AdmittedCall::mark(request);
        Ok(())
    }
}

impl<S> Layer<S> for Gate {
    type Service = Gated<S>;

    fn layer(&self, inner: S) -> Gated<S> {
        Gated {
            inner,
            gate: self.clone(),
        }
    }
}

// === impl Gated ===

impl<S> Service<Request<Body>> for Gated<S>
where
    S: Service<Request<Body>, Response = Response<Body>>,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = Either<S::Future, Ready<Result<Response<Body>, S::Error>>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        match self.gate.admit(&mut request) {
            Ok(()) => Either::Left(self.inner.call(request)),
            Err(refused) => Either::Right(ready(Ok(refused.into_http()))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(gate: &Gate, uri: &str, headers: &[(&'static str, &str)]) -> tonic::Code {
        let mut request = Request::post(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let mut request = request.body(Body::default()).expect("a request");
        match gate.admit(&mut request) {
            Ok(()) => tonic::Code::Ok,
            Err(status) => status.code(),
        }
    }

    #[test]
    fn rights_of_operators_are_parsed() {
        let is_operator = |words| rights(words).map(|it| it.operator);
        assert_eq!(is_operator(&[]), Ok(false));
        assert_eq!(is_operator(&["operator"]), Ok(true));
        for wrong in [&["root"][..], &["operator", "root"], &["root", "operator"]] {
            let refused = rights(wrong).expect_err("refused");
            assert!(refused.starts_with("\"root\" is not a right"), "{refused}");
        }
    }

    #[test]
    fn requests_by_an_unknown_host_name_are_refused() {
        use tonic::Code::{Ok, PermissionDenied};
        let call = "/proofmill.engine.v1.ProvingEngine/GetStatus";
        let at = |host: &str| format!("http://{host}{call}");
        assert_eq!(code(&Gate::Local, &at("127.0.0.1:7400"), &[]), Ok);
        assert_eq!(code(&Gate::Local, &at("localhost:7400"), &[]), Ok);
        assert_eq!(
            code(&Gate::Local, &at("evil.example:7400"), &[]),
            PermissionDenied
        );
        let origin = [("origin", "http://localhost:7400")];
        assert_eq!(
            code(&Gate::Local, &at("localhost:7400"), &origin),
            PermissionDenied
        );
        assert_eq!(code(&Gate::Open, call, &[]), Ok);
    }
}
