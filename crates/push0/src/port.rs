//! A listener for untrusted clients, with limits on connections.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Sleep;

/// Most connections at a time; further ones wait until one has ended.
const CONNECTIONS_MAX: usize = 64;

/// Longest life of a connection. A scraper that keeps one open must then reconnect.
const LIFETIME: Duration = Duration::from_secs(120);

/// A listener with a bounded number of connections, each for a bounded time.
pub(crate) struct BoundedListener {
    listener: TcpListener,
    permits: Arc<Semaphore>,
    lifetime: Duration,
}

/// A connection with a limited lifetime, after which reading fails.
pub(crate) struct TimedConnection {
    stream: TcpStream,
    end: Pin<Box<Sleep>>,
    /// The permit of the connection, which is released when this is dropped. `None` only if the semaphore was
    /// closed, which never happens.
    _permit: Option<OwnedSemaphorePermit>,
}

// === impl BoundedListener ===

impl BoundedListener {
    pub(crate) fn new(listener: TcpListener) -> Self {
        Self {
            listener,
            permits: Arc::new(Semaphore::new(CONNECTIONS_MAX)),
            lifetime: LIFETIME,
        }
    }
}

impl Listener for BoundedListener {
    type Io = TimedConnection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        let permit = self.permits.clone().acquire_owned().await.ok();
        let (stream, address) = Listener::accept(&mut self.listener).await;
        let timed = TimedConnection {
            stream,
            end: Box::pin(tokio::time::sleep(self.lifetime)),
            _permit: permit,
        };
        (timed, address)
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.listener.local_addr()
    }
}

// === impl TimedConnection ===

impl AsyncRead for TimedConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.end.as_mut().poll(context).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for TimedConnection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    #[tokio::test]
    async fn a_silent_connection_is_closed_in_time_for_others() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let app = axum::Router::new().route("/", axum::routing::get(|| async { "here" }));
        let lifetime = Duration::from_millis(400);
        let bounded = BoundedListener {
            lifetime,
            ..BoundedListener::new(listener)
        };
        let serving = tokio::spawn(async move {
            axum::serve(bounded, app).await.unwrap();
        });
        let begun = tokio::time::Instant::now();
        let mut silent = Vec::new();
        for _ in 0..CONNECTIONS_MAX {
            silent.push(TcpStream::connect(address).await.unwrap());
        }
        // The time of a connection may end before its request is read if the machine stalls.
        loop {
            let answer = ask(address).await;
            if answer.as_ref().is_ok_and(|answer| answer.ends_with("here")) {
                break;
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "{answer:?}");
        }
        assert!(begun.elapsed() >= lifetime, "only once a place was free");
        serving.abort();
    }

    async fn ask(address: SocketAddr) -> io::Result<String> {
        let mut asking = TcpStream::connect(address).await?;
        let request = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
        asking.write_all(request).await?;
        let mut answer = String::new();
        asking.read_to_string(&mut answer).await?;
        Ok(answer)
    }
}
