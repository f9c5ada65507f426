//! An HTTP client: each request has a connection of its own.

use futures_util::future::BoxFuture;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::header::{CONNECTION, CONTENT_TYPE, HOST, HeaderMap, HeaderValue, USER_AGENT};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use proofmill_workflow::HttpUrl;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::tls::connector;

/// A client for one address.
pub struct HttpClient {
    url: HttpUrl,
    tls: Option<(TlsConnector, ServerName<'static>)>,
}

/// The response of a server.
#[derive(Debug)]
pub struct Answer {
    /// The response's status.
    pub status: StatusCode,
    /// The response's body, if it could be read.
    pub body: Result<Bytes, HttpError>,
}

/// The reason why there is no response. Never shows the path of the address.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HttpError {
    /// The client's settings are invalid.
    #[error("{0}")]
    Setup(String),
    /// The time limit passed.
    #[error("no answer within {} s", .0.as_secs_f64())]
    TimedOut(Duration),
    /// The connection could not be made, or broke.
    #[error("no connection: {0}")]
    Connect(std::io::Error),
    /// The response is not HTTP, or the connection broke.
    #[error("the request failed: {0}")]
    Http(String),
    /// The response is larger than the caller allows.
    #[error("its answer is over {0} bytes")]
    TooLarge(usize),
}

// === impl HttpClient ===

impl HttpClient {
    /// A client of `url` that trusts the system's authorities and those in the file `ca` (PEM).
    /// Does not connect yet.
    ///
    /// # Errors
    /// [`HttpError::Setup`]: the file cannot be read, or the host cannot be in a certificate.
    pub fn new(url: HttpUrl, ca: Option<&Path>) -> Result<Self, HttpError> {
        let tls = match url.is_tls() {
            true => {
                let host = url.host().trim_start_matches('[').trim_end_matches(']');
                let name = ServerName::try_from(host.to_owned());
                let name = name.map_err(|error| HttpError::Setup(format!("{host}: {error}")))?;
                Some((connector(ca)?, name))
            }
            false => None,
        };
        Ok(Self { url, tls })
    }

    /// Address of the server.
    pub fn url(&self) -> &HttpUrl {
        &self.url
    }

    /// Sends `body`, and returns the response, whose body may have up to `answer_max` bytes.
    /// `headers` are added to the standard ones.
    ///
    /// # Errors
    /// [`HttpError`]; the server may have received the request nevertheless, except after
    /// [`HttpError::Connect`].
    pub fn post(
        &self,
        headers: HeaderMap,
        body: Bytes,
        answer_max: usize,
        time_limit: Duration,
    ) -> BoxFuture<'_, Result<Answer, HttpError>> {
        self.send(Method::POST, headers, body, answer_max, time_limit)
    }

    /// As [`post`](Self::post), with another method.
    ///
    /// # Errors
    /// As [`post`](Self::post).
    pub fn send(
        &self,
        method: Method,
        headers: HeaderMap,
        body: Bytes,
        answer_max: usize,
        time_limit: Duration,
    ) -> BoxFuture<'_, Result<Answer, HttpError>> {
        // Boxed, so that it is compiled in this crate and not again in every caller's.
        Box::pin(async move {
            let exchange = async {
                let place = format!("{}:{}", self.url.host(), self.url.port());
                let stream = TcpStream::connect(place).await;
                let stream = stream.map_err(HttpError::Connect)?;
                let request = self.request(method, headers, body)?;
                match &self.tls {
                    None => exchange(stream, request, answer_max).await,
                    Some((connector, name)) => {
                        let stream = connector.connect(name.clone(), stream).await;
                        exchange(stream.map_err(HttpError::Connect)?, request, answer_max).await
                    }
                }
            };
            let answer = tokio::time::timeout(time_limit, exchange).await;
            answer.unwrap_or(Err(HttpError::TimedOut(time_limit)))
        })
    }

    fn request(
        &self,
        method: Method,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Request<Full<Bytes>>, HttpError> {
        let request = Request::builder().method(method).uri(self.url.path());
        let request = request.header(HOST, self.url.authority());
        let mut request = request
            .body(Full::new(body))
            .map_err(|error| HttpError::Http(error.to_string()))?;
        let own = request.headers_mut();
        own.insert(CONNECTION, HeaderValue::from_static("close"));
        own.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        own.insert(USER_AGENT, HeaderValue::from_static(USER));
        own.extend(headers);
        Ok(request)
    }
}

const USER: &str = concat!("proofmill/", env!("CARGO_PKG_VERSION"));

async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: Request<Full<Bytes>>,
    answer_max: usize,
) -> Result<Answer, HttpError> {
    let http = |error: hyper::Error| HttpError::Http(proofmill_bus::with_sources(&error));
    let connected = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = connected.map_err(http)?;
    let exchange = async {
        let response = sender.send_request(request).await.map_err(http)?;
        let status = response.status();
        let body = Limited::new(response.into_body(), answer_max)
            .collect()
            .await;
        let body = body.map(|body| body.to_bytes()).map_err(|error| {
            if error.is::<LengthLimitError>() {
                HttpError::TooLarge(answer_max)
            } else {
                HttpError::Http(error.to_string())
            }
        });
        Ok(Answer { status, body })
    };
    // The connection is driven beside the exchange, and dropped with it.
    let mut exchange = std::pin::pin!(exchange);
    tokio::select! {
        biased;
        answer = &mut exchange => answer,
        ended = connection => {
            ended.map_err(http)?;
            exchange.await
        }
    }
}
