//! A time limit on the first bytes of a connection.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

/// Longest time until a new connection has sent its first bytes.
const FIRST_BYTES_TIME_MAX: Duration = Duration::from_secs(10);

/// Number of bytes that distinguish HTTP/2 from HTTP/1: the length of HTTP/2's connection preface.
const PREFACE_BYTES: usize = 24;

/// A connection that fails if its first bytes do not come in time.
pub(crate) struct HandshakeDeadline<T> {
    io: T,
    /// The time limit, and the number of bytes that are missing; none once they have come.
    pending: Option<(Pin<Box<Sleep>>, usize)>,
}

// === impl HandshakeDeadline ===

impl<T> HandshakeDeadline<T> {
    pub(crate) fn new(io: T) -> Self {
        let deadline = Box::pin(tokio::time::sleep(FIRST_BYTES_TIME_MAX));
        Self {
            io,
            pending: Some((deadline, PREFACE_BYTES)),
        }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for HandshakeDeadline<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let outcome = Pin::new(&mut self.io).poll_read(context, buffer);
        let read = buffer.filled().len() - before;
        let Some((deadline, left)) = &mut self.pending else {
            return outcome;
        };
        *left = left.saturating_sub(read);
        if *left == 0 {
            self.pending = None;
            return outcome;
        }
        if outcome.is_ready() {
            return outcome;
        }
        let late = || Err(io::ErrorKind::TimedOut.into());
        deadline.as_mut().poll(context).map(|()| late())
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for HandshakeDeadline<T> {
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

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_connection_fails_without_its_first_bytes_and_may_be_silent_after_them() {
        for (sent, is_kept) in [
            (0, false),
            (PREFACE_BYTES - 1, false),
            (PREFACE_BYTES, true),
        ] {
            let (mut far, near) = duplex(64);
            let mut near = HandshakeDeadline::new(near);
            far.write_all(&vec![b'x'; sent]).await.expect("room");
            let mut buffer = vec![0; sent];
            near.read_exact(&mut buffer).await.expect("what was said");
            let next = tokio::time::timeout(FIRST_BYTES_TIME_MAX * 2, near.read_u8()).await;
            assert_eq!(next.is_err(), is_kept, "{sent}: {next:?}");
        }
    }
}
