//! A time limit on the first bytes of a connection.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

/// Longest time until a new connection has sent its first bytes.
const SILENCE: Duration = Duration::from_secs(10);

/// Bytes that tell HTTP/2 from HTTP/1: the length of HTTP/2's preface.
const PREFACE: usize = 24;

/// A connection that fails if its first bytes do not come in time.
pub(crate) struct HandshakeDeadline<T> {
    io: T,
    /// The time limit, and the number of bytes still to come; none once they have come.
    awaited: Option<(Pin<Box<Sleep>>, usize)>,
}

// === impl HandshakeDeadline ===

impl<T> HandshakeDeadline<T> {
    pub(crate) fn new(io: T) -> Self {
        let until = Box::pin(tokio::time::sleep(SILENCE));
        Self {
            io,
            awaited: Some((until, PREFACE)),
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
        let Some((until, left)) = &mut self.awaited else {
            return outcome;
        };
        *left = left.saturating_sub(read);
        if *left == 0 {
            self.awaited = None;
            return outcome;
        }
        if outcome.is_ready() {
            return outcome;
        }
        let late = || Err(io::ErrorKind::TimedOut.into());
        until.as_mut().poll(context).map(|()| late())
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
    async fn who_says_too_little_is_cut_off_and_who_has_said_it_may_be_silent() {
        for (said, is_kept) in [(0, false), (PREFACE - 1, false), (PREFACE, true)] {
            let (mut far, near) = duplex(64);
            let mut near = HandshakeDeadline::new(near);
            far.write_all(&vec![b'x'; said]).await.expect("room");
            let mut buffer = vec![0; said];
            near.read_exact(&mut buffer).await.expect("what was said");
            let next = tokio::time::timeout(SILENCE * 2, near.read_u8()).await;
            assert_eq!(next.is_err(), is_kept, "{said}: {next:?}");
        }
    }
}
