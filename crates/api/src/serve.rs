//! Serving HTTP: on the control socket, for metrics, for messages; with and without TLS.

use std::pin::pin;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use axum::serve::Listener;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tower_service::Service;

/// Connections at a time; further ones wait until one has ended.
const CONNECTIONS_MAX: usize = 256;

/// How long agreeing on TLS may take.
const HANDSHAKE_TIME: Duration = Duration::from_secs(10);

/// How long the head of a request may take, and how long a connection may have nothing to ask.
const HEAD_TIME: Duration = Duration::from_secs(30);

/// Bytes of a request's head, at most.
const HEAD_MAX: usize = 64 * 1024;

/// How long a request that is under way may still take when its connection is to end.
const LAST_REQUEST: Duration = Duration::from_secs(60);

/// How long all of them may take once the service is to end.
const LAST_REQUESTS: Duration = Duration::from_secs(5);

/// Serves `router` until `stop`, then lets what is under way end, for 5 s at most. A connection is
/// closed when it is `lifetime` old, after its current request. Dropping the future closes all.
pub(crate) async fn serve<L: Listener>(
    mut listener: L,
    tls: Option<TlsAcceptor>,
    router: Router,
    lifetime: Duration,
    stop: impl Future<Output = ()>,
) {
    let (stopping, stopped) = watch::channel(false);
    let mut connections = JoinSet::new();
    let mut stop = pin!(stop);
    loop {
        tokio::select! {
            () = &mut stop => break,
            (stream, _) = listener.accept(), if connections.len() < CONNECTIONS_MAX => {
                let (tls, router, stopped) = (tls.clone(), router.clone(), stopped.clone());
                connections.spawn(connection(stream, tls, router, lifetime, stopped));
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

async fn connection(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    tls: Option<TlsAcceptor>,
    router: Router,
    lifetime: Duration,
    mut stopped: watch::Receiver<bool>,
) {
    let ended = async {
        tokio::select! {
            () = tokio::time::sleep(lifetime) => {}
            // If the sender is gone, so is the service.
            _ = stopped.wait_for(|stopped| *stopped) => {}
        }
    };
    let Some(acceptor) = tls else {
        return exchange(stream, router, ended).await;
    };
    match tokio::time::timeout(HANDSHAKE_TIME, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => exchange(stream, router, ended).await,
        Ok(Err(error)) => tracing::debug!(%error, "no agreement on TLS"),
        Err(_) => tracing::debug!("no agreement on TLS in time"),
    }
}

/// Answers the requests of one connection until it is to end.
async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    router: Router,
    ended: impl Future<Output = ()>,
) {
    let service = service_fn(move |request: Request<Incoming>| {
        // A router is always ready.
        router.clone().call(request.map(Body::new))
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_buf_size(HEAD_MAX)
        .max_header_size(HEAD_MAX)
        .serve_connection(TokioIo::new(stream), service);
    let mut serving = pin!(serving);
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
