//! Serving HTTP: on Unix sockets and TCP ports; version 1, or 2 for gRPC; with and without TLS.

use std::convert::Infallible;
use std::error::Error;
use std::pin::pin;
use std::time::Duration;

use axum::Router;
use axum::serve::Listener;
use hyper::body::{Body, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tower_service::Service;

use crate::prompt::Prompt;

/// Connections at a time; further ones wait until one has ended.
const CONNECTIONS_MAX: usize = 256;

/// How long agreeing on TLS may take.
const HANDSHAKE_TIME: Duration = Duration::from_secs(10);

/// How long the head of a request may take, and how long a connection may have nothing to ask. One of
/// version 2 is asked after that time whether it is still there, and then to answer.
const HEAD_TIME: Duration = Duration::from_secs(30);

/// Bytes of a request's head, at most.
const HEAD_MAX: usize = 64 << 10;

/// The same in version 2, where a connection may have many.
const HEADERS_MAX: u32 = 16 << 10;

/// Requests of a connection of version 2 at a time.
const REQUESTS_MAX: u32 = 256;

/// How long a request that is under way may still take when its connection is to end.
const LAST_REQUEST: Duration = Duration::from_secs(60);

/// How long all of them may take once the service is to end.
const LAST_REQUESTS: Duration = Duration::from_secs(5);

/// What is spoken on a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Versions {
    /// HTTP/1.1.
    One,
    /// HTTP/2, in which gRPC is spoken; without TLS by prior knowledge.
    Two,
    /// Whichever a connection begins with.
    Both,
}

/// How a listener is served.
pub(crate) struct Terms {
    pub(crate) versions: Versions,
    pub(crate) tls: Option<TlsAcceptor>,
    /// A connection that is so old is closed after its current requests.
    pub(crate) lifetime: Duration,
}

// === impl Terms ===

impl Terms {
    /// Without TLS: for what is not reached from elsewhere, or tells nothing that matters.
    pub(crate) fn plain(versions: Versions, lifetime: Duration) -> Self {
        Self {
            versions,
            tls: None,
            lifetime,
        }
    }
}

/// Serves what `answer` answers until `stop`, then lets what is under way end, for 5 s at most.
/// Dropping the future closes all.
pub(crate) async fn serve<L, A, F, B>(
    mut listener: L,
    terms: Terms,
    answer: A,
    stop: impl Future<Output = ()>,
) where
    L: Listener,
    A: Fn(Request<Incoming>) -> F + Clone + Send + 'static,
    F: Future<Output = Result<Response<B>, Infallible>> + Send + 'static,
    B: Body<Data: Send, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static,
{
    let (stopping, stopped) = watch::channel(false);
    let mut connections = JoinSet::new();
    let mut stop = pin!(stop);
    let server = server(terms.versions);
    loop {
        tokio::select! {
            () = &mut stop => break,
            (stream, _) = listener.accept(), if connections.len() < CONNECTIONS_MAX => {
                let (server, tls, answer) = (server.clone(), terms.tls.clone(), answer.clone());
                let ended = ended(terms.lifetime, stopped.clone());
                connections.spawn(async move {
                    let Some(acceptor) = tls else {
                        return exchange(&server, stream, answer, ended).await;
                    };
                    match tokio::time::timeout(HANDSHAKE_TIME, acceptor.accept(stream)).await {
                        Ok(Ok(stream)) => exchange(&server, stream, answer, ended).await,
                        Ok(Err(error)) => tracing::debug!(%error, "no agreement on TLS"),
                        Err(_) => tracing::debug!("no agreement on TLS in time"),
                    }
                });
            }
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
        }
    }
    drop(listener);
    stopping.send_replace(true);
    let all = async { while connections.join_next().await.is_some() {} };
    // Those that are left are closed.
    let _ = tokio::time::timeout(LAST_REQUESTS, all).await;
}

/// What a router answers.
pub(crate) fn answers(
    router: Router,
) -> impl Fn(Request<Incoming>) -> AnswerOf<Router> + Clone + Send + 'static {
    // A router is always ready.
    move |request| router.clone().call(request.map(axum::body::Body::new))
}

type AnswerOf<S> = <S as Service<axum::extract::Request>>::Future;

/// When a connection is to end.
async fn ended(lifetime: Duration, mut stopped: watch::Receiver<bool>) {
    tokio::select! {
        () = tokio::time::sleep(lifetime) => {}
        // If the sender is gone, so is the service.
        _ = stopped.wait_for(|stopped| *stopped) => {}
    }
}

fn server(versions: Versions) -> auto::Builder<TokioExecutor> {
    let server = auto::Builder::new(TokioExecutor::new());
    let mut server = match versions {
        Versions::One => server.http1_only(),
        Versions::Two => server.http2_only(),
        Versions::Both => server,
    };
    server
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_buf_size(HEAD_MAX);
    server
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(HEAD_TIME)
        .keep_alive_timeout(HEAD_TIME)
        .max_concurrent_streams(REQUESTS_MAX)
        .max_header_list_size(HEADERS_MAX);
    server
}

/// Answers the requests of one connection until it is to end.
async fn exchange<A, F, B>(
    server: &auto::Builder<TokioExecutor>,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    answer: A,
    ended: impl Future<Output = ()>,
) where
    A: Fn(Request<Incoming>) -> F,
    F: Future<Output = Result<Response<B>, Infallible>> + Send + 'static,
    B: Body<Data: Send, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static,
{
    let stream = TokioIo::new(Prompt::new(stream));
    let mut serving = pin!(server.serve_connection(stream, service_fn(answer)));
    let served = tokio::select! {
        served = &mut serving => Ok(served),
        () = ended => {
            serving.as_mut().graceful_shutdown();
            tokio::time::timeout(LAST_REQUEST, serving).await
        }
    };
    if let Ok(Err(error)) = served {
        tracing::debug!(%error, "a connection has failed");
    }
}
