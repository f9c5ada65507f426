//! Serving HTTP on Unix sockets and TCP ports: version 1, or 2 for gRPC; with and without TLS.

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
use tokio_rustls::TlsAcceptor;
use tower_service::Service;

use crate::body_timeout::Pressure;
use crate::connections::{Address, Connection, ConnectionLimits, ConnectionRoom, Connections};
use crate::handshake_deadline::HandshakeDeadline;

/// Most connections of a Unix socket at a time; further ones wait until one has ended.
const LOCAL_CONNECTIONS_MAX: usize = 256;

/// Longest TLS handshake.
const HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(10);

/// Longest time for the head of a request, and for a connection without requests. An HTTP/2 connection is
/// pinged after that time, and has the same time to answer.
const HEAD_TIME_MAX: Duration = Duration::from_secs(30);

/// Most bytes of a request's head.
const HEAD_BYTES_MAX: usize = 64 << 10;

/// Most bytes of a request's head in HTTP/2. The limit is lower than in HTTP/1, as a connection may have many requests
/// at a time.
const HTTP2_HEAD_BYTES_MAX: u32 = 16 << 10;

/// Most requests of an HTTP/2 connection at a time.
const HTTP2_REQUESTS_MAX: u32 = 256;

/// Longest time that an admitted request may still take when its connection is to end.
const LAST_REQUEST_TIME_MAX: Duration = Duration::from_secs(60);

/// Longest time that a request that was not admitted may still take when its connection is to end.
const LAST_REFUSAL_TIME_MAX: Duration = Duration::from_secs(1);

/// Longest time that all requests together may still take when the service is to end.
const STOP_TIME_MAX: Duration = Duration::from_secs(5);

/// The versions of HTTP on a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HttpVersions {
    /// HTTP/1.1.
    Http1,
    /// HTTP/2, which gRPC uses; without TLS by prior knowledge.
    Http2,
    /// Both, as the client chooses.
    Both,
}

/// The terms on which a listener's connections are served.
pub(crate) struct Terms {
    pub(crate) versions: HttpVersions,
    pub(crate) tls: Option<TlsAcceptor>,
    /// Age at which a connection is closed after its current requests.
    pub(crate) lifetime: Duration,
    /// Limits on connections; none for a socket that only this user can connect to.
    pub(crate) limits: Option<ConnectionLimits>,
    /// Signalled while a connection waits for a place.
    pub(crate) pressure: Pressure,
}

/// Settings that all connections of a listener share.
struct Serving<A> {
    server: auto::Builder<TokioExecutor>,
    tls: Option<TlsAcceptor>,
    answer: A,
    lifetime: Duration,
    idle: Duration,
    stopped: watch::Receiver<bool>,
}

// === impl Terms ===

impl Terms {
    /// Terms for a socket that only this user can connect to: no TLS, no limits.
    pub(crate) fn local(versions: HttpVersions, lifetime: Duration) -> Self {
        Self {
            versions,
            tls: None,
            lifetime,
            limits: None,
            pressure: Pressure::default(),
        }
    }

    /// Terms for a TCP port without TLS: for loopback, or for pages that reveal nothing sensitive.
    pub(crate) fn plain(versions: HttpVersions, lifetime: Duration) -> Self {
        Self {
            limits: Some(ConnectionLimits::default()),
            ..Self::local(versions, lifetime)
        }
    }
}

/// Serves requests with `answer` until `stop`, then lets requests in progress end, for 5 s at most.
/// Dropping the future closes all connections.
///
/// Each request has its [`Connection`] among its extensions. The code that admits the request must call
/// [`AdmittedCall::mark`](crate::connections::AdmittedCall::mark); otherwise the connection is soon closed as idle.
pub(crate) async fn serve<L, A, F, B>(
    mut listener: L,
    terms: Terms,
    answer: A,
    stop: impl Future<Output = ()>,
) where
    L: Listener<Addr: Address>,
    A: Fn(Request<Incoming>) -> F + Clone + Send + 'static,
    F: Future<Output = Result<Response<B>, Infallible>> + Send + 'static,
    B: Body<Data: Send, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static,
{
    let (stopping, stopped) = watch::channel(false);
    let limits = terms.limits.unwrap_or(ConnectionLimits {
        total: LOCAL_CONNECTIONS_MAX,
        per_peer: LOCAL_CONNECTIONS_MAX,
        idle: Duration::MAX,
    });
    let serving = Serving {
        server: server(terms.versions),
        tls: terms.tls,
        answer,
        lifetime: terms.lifetime,
        idle: limits.idle,
        stopped,
    };
    let mut connections = Connections::new(limits.total, limits.per_peer);
    // A connection that has no place yet, with its share of the pressure.
    let mut next = None;
    let mut stop = pin!(stop);
    loop {
        tokio::select! {
            () = &mut stop => break,
            (stream, address) = listener.accept(), if next.is_none() => {
                next = Some((stream, address.peer(), None));
            }
            () = connections.ended(), if !connections.is_empty() => {}
        }
        let Some((stream, peer, waiting)) = next.take() else {
            continue;
        };
        match connections.make_room(peer) {
            ConnectionRoom::Free => {
                let connection = Connection::new(peer);
                let served = serving.clone().serve_connection(stream, connection.clone());
                connections.spawn(peer, connection, served);
            }
            ConnectionRoom::None => {
                let waiting = waiting.or_else(|| Some(terms.pressure.wait()));
                next = Some((stream, peer, waiting));
            }
            ConnectionRoom::NoneForPeer => {
                tracing::debug!("a peer has as many connections as it may have");
                terms.pressure.refused();
            }
        }
    }
    drop((listener, next));
    stopping.send_replace(true);
    let all = async {
        while !connections.is_empty() {
            connections.ended().await;
        }
    };
    // Connections that are left are closed.
    let _ = tokio::time::timeout(STOP_TIME_MAX, all).await;
}

/// A function that answers requests with a router.
pub(crate) fn answers(
    router: Router,
) -> impl Fn(Request<Incoming>) -> AnswerOf<Router> + Clone + Send + 'static {
    // A router is always ready.
    move |request| router.clone().call(request.map(axum::body::Body::new))
}

type AnswerOf<S> = <S as Service<axum::extract::Request>>::Future;

fn server(versions: HttpVersions) -> auto::Builder<TokioExecutor> {
    let server = auto::Builder::new(TokioExecutor::new());
    let mut server = match versions {
        HttpVersions::Http1 => server.http1_only(),
        HttpVersions::Http2 => server.http2_only(),
        HttpVersions::Both => server,
    };
    server
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME_MAX)
        .max_buf_size(HEAD_BYTES_MAX);
    server
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(HEAD_TIME_MAX)
        .keep_alive_timeout(HEAD_TIME_MAX)
        .max_concurrent_streams(HTTP2_REQUESTS_MAX)
        .max_header_list_size(HTTP2_HEAD_BYTES_MAX);
    server
}

// === impl Serving ===

impl<A: Clone> Clone for Serving<A> {
    fn clone(&self) -> Self {
        Self {
            server: self.server.clone(),
            tls: self.tls.clone(),
            answer: self.answer.clone(),
            lifetime: self.lifetime,
            idle: self.idle,
            stopped: self.stopped.clone(),
        }
    }
}

impl<A> Serving<A> {
    /// Serves the requests of one connection until it ends.
    async fn serve_connection<F, B>(
        self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        connection: Connection,
    ) where
        A: Fn(Request<Incoming>) -> F,
        F: Future<Output = Result<Response<B>, Infallible>> + Send + 'static,
        B: Body<Data: Send, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static,
    {
        let Some(acceptor) = self.tls.clone() else {
            return self.serve_requests(stream, connection).await;
        };
        match tokio::time::timeout(HANDSHAKE_TIME_MAX, acceptor.accept(stream)).await {
            Ok(Ok(stream)) => self.serve_requests(stream, connection).await,
            Ok(Err(error)) => tracing::debug!(%error, "no agreement on TLS"),
            Err(_) => tracing::debug!("no agreement on TLS in time"),
        }
    }

    /// Serves the requests of a connection after its TLS handshake, if it has TLS.
    async fn serve_requests<F, B>(
        self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        connection: Connection,
    ) where
        A: Fn(Request<Incoming>) -> F,
        F: Future<Output = Result<Response<B>, Infallible>> + Send + 'static,
        B: Body<Data: Send, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static,
    {
        let Self {
            server,
            answer,
            lifetime,
            idle,
            mut stopped,
            ..
        } = self;
        let shared = connection.clone();
        let service = service_fn(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(shared.clone());
            answer(request)
        });
        let stream = TokioIo::new(HandshakeDeadline::new(stream));
        let mut serving = pin!(server.serve_connection(stream, service));
        let ended = async {
            tokio::select! {
                () = tokio::time::sleep(lifetime) => {}
                () = connection.until_idle(idle) => {}
                // If the sender is gone, so is the service.
                _ = stopped.wait_for(|stopped| *stopped) => {}
            }
        };
        let served = tokio::select! {
            served = &mut serving => Ok(served),
            () = ended => {
                serving.as_mut().graceful_shutdown();
                let last = if connection.was_admitted() {
                    LAST_REQUEST_TIME_MAX
                } else {
                    LAST_REFUSAL_TIME_MAX
                };
                tokio::time::timeout(last, serving).await
            }
        };
        if let Ok(Err(error)) = served {
            tracing::debug!(%error, "a connection has failed");
        }
    }
}
