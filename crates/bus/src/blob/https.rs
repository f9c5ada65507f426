//! HTTP and HTTPS requests for the object store, made with the HTTP libraries that this program
//! already uses elsewhere.

use std::time::Duration;

use async_trait::async_trait;
use futures_util::stream::try_unfold;
use http_body_util::{BodyExt, StreamBody};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector as Tcp;
use hyper_util::client::legacy::{Client, Error};
use hyper_util::rt::TokioExecutor;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody,
    HttpResponse, HttpResponseBody, HttpService,
};
use tokio::time::timeout;

/// Time limit for making a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Longest wait for the beginning of a response, and for each further part of it.
const SILENCE_MAX: Duration = Duration::from_secs(30);

/// Makes HTTP clients.
#[derive(Debug)]
pub(super) struct Https;

#[derive(Debug)]
struct Service(Client<HttpsConnector<Tcp>, HttpRequestBody>);

impl HttpConnector for Https {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        let mut tcp = Tcp::new();
        tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
        tcp.set_nodelay(true);
        tcp.enforce_http(false);
        let roots = HttpsConnectorBuilder::new().with_native_roots();
        let roots = roots.map_err(|error| object_store::Error::Generic {
            store: "S3",
            source: Box::new(error),
        })?;
        let connector = roots.https_or_http().enable_http1().wrap_connector(tcp);
        let client = Client::builder(TokioExecutor::new()).build(connector);
        Ok(HttpClient::new(Service(client)))
    }
}

#[async_trait]
impl HttpService for Service {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let answer = timeout(SILENCE_MAX, self.0.request(request)).await;
        let answer = answer.map_err(silent)?.map_err(failed)?;
        let (parts, body) = answer.into_parts();
        let frames = try_unfold(body, |mut body| async {
            let frame = timeout(SILENCE_MAX, body.frame()).await.map_err(silent)?;
            let frame = frame.transpose().map_err(cut_off)?;
            Ok(frame.map(|frame| (frame, body)))
        });
        let body = HttpResponseBody::new(StreamBody::new(Box::pin(frames)));
        Ok(HttpResponse::from_parts(parts, body))
    }
}

fn silent(error: tokio::time::error::Elapsed) -> HttpError {
    HttpError::new(HttpErrorKind::Timeout, error)
}

fn cut_off(error: hyper::Error) -> HttpError {
    HttpError::new(HttpErrorKind::Interrupted, error)
}

fn failed(error: Error) -> HttpError {
    let kind = if error.is_connect() {
        HttpErrorKind::Connect
    } else {
        HttpErrorKind::Interrupted
    };
    HttpError::new(kind, error)
}
