//! Connections: so many at once, and none that says nothing.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::stream::{self, Stream};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Sleep;
use tonic::transport::server::Connected;

/// Connections of one listener at once; more wait to be accepted.
const CONNECTIONS: usize = 256;
/// How long a new connection may say nothing.
const SILENCE: Duration = Duration::from_secs(10);
/// How long the listener rests after it could not accept: the process may be out of descriptors.
const REST: Duration = Duration::from_millis(100);

/// What accepts connections.
pub(crate) trait Listener: Send + 'static {
    /// A connection.
    type Io: AsyncRead + AsyncWrite + Connected + Unpin + Send + 'static;

    /// The next one.
    fn accept(&self) -> impl Future<Output = io::Result<Self::Io>> + Send;
}

/// A connection that counts while it lasts.
pub(crate) struct Connection<T> {
    io: T,
    _counts: OwnedSemaphorePermit,
    /// Until it says something.
    silence: Option<Pin<Box<Sleep>>>,
}

/// The connections of a listener, for as long as it is asked.
pub(crate) fn connections<L: Listener>(
    listener: L,
) -> impl Stream<Item = io::Result<Connection<L::Io>>> {
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    stream::unfold((listener, room), |(listener, room)| async move {
        // Nobody closes it.
        let counts = room.clone().acquire_owned().await.ok()?;
        loop {
            match listener.accept().await {
                Ok(io) => {
                    let connection = Connection {
                        io,
                        _counts: counts,
                        silence: Some(Box::pin(tokio::time::sleep(SILENCE))),
                    };
                    return Some((Ok(connection), (listener, room)));
                }
                Err(error) => {
                    tracing::warn!("cannot accept a connection: {error}");
                    tokio::time::sleep(REST).await;
                }
            }
        }
    })
}

// === impl Listener ===

impl Listener for UnixListener {
    type Io = UnixStream;

    async fn accept(&self) -> io::Result<UnixStream> {
        Ok(Self::accept(self).await?.0)
    }
}

impl Listener for TcpListener {
    type Io = TcpStream;

    async fn accept(&self) -> io::Result<TcpStream> {
        let (connection, _) = Self::accept(self).await?;
        connection.set_nodelay(true)?;
        Ok(connection)
    }
}

// === impl Connection ===

impl<T: Connected> Connected for Connection<T> {
    type ConnectInfo = T::ConnectInfo;

    fn connect_info(&self) -> T::ConnectInfo {
        self.io.connect_info()
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Connection<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.io).poll_read(context, buffer);
        if outcome.is_ready() {
            self.silence = None;
            return outcome;
        }
        let Some(silence) = &mut self.silence else {
            return Poll::Pending;
        };
        let late = || Err(io::ErrorKind::TimedOut.into());
        silence.as_mut().poll(context).map(|()| late())
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Connection<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(context, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(context)
    }
}
