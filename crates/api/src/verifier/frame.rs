//! Frames: a length as four big-endian bytes, and that many bytes.

use std::io;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Most bytes of a frame (17 MiB): a key, or a proof with its statement, and the fields' names.
pub const MAX_FRAME_BYTES: usize = 17 << 20;

/// Bytes that are read from a stream at a time. A frame's buffer grows as its bytes come, so a client that
/// announces many and sends few uses little memory.
const READ_BYTES_MAX: usize = 64 << 10;

/// Frames of a stream.
#[derive(Debug)]
pub struct Frames<R> {
    stream: R,
}

/// An error after which no further frame can be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// A frame is too long.
    #[error("a frame of {0} bytes: at most {MAX_FRAME_BYTES} are taken")]
    TooLong(usize),
    /// The stream ended in a frame.
    #[error("the stream ended {missing} bytes before the end of a frame")]
    Incomplete {
        /// Bytes that are missing.
        missing: usize,
    },
    /// The stream cannot be read.
    #[error("the stream cannot be read")]
    Io(#[from] io::Error),
}

// === impl Frames ===

impl<R: AsyncRead + Unpin> Frames<R> {
    /// The frames of a stream.
    pub fn new(stream: R) -> Self {
        Self { stream }
    }

    /// The next frame; none if the stream ends between two frames.
    ///
    /// # Errors
    ///
    /// [`FrameError`], after which no more can be read.
    pub async fn next(&mut self) -> Result<Option<Bytes>, FrameError> {
        let mut head = [0; 4];
        let mut read_bytes = 0;
        while read_bytes < head.len() {
            match self.stream.read(&mut head[read_bytes..]).await? {
                0 if read_bytes == 0 => return Ok(None),
                0 => {
                    let missing = head.len() - read_bytes;
                    return Err(FrameError::Incomplete { missing });
                }
                read => read_bytes += read,
            }
        }
        // A length beyond the address space exceeds every limit.
        let length = usize::try_from(u32::from_be_bytes(head)).unwrap_or(usize::MAX);
        if length > MAX_FRAME_BYTES {
            return Err(FrameError::TooLong(length));
        }
        let mut frame = BytesMut::with_capacity(length.min(READ_BYTES_MAX));
        while frame.len() < length {
            let missing = length - frame.len();
            let mut part = (&mut self.stream).take(missing.min(READ_BYTES_MAX) as u64);
            if part.read_buf(&mut frame).await? == 0 {
                return Err(FrameError::Incomplete { missing });
            }
        }
        Ok(Some(frame.freeze()))
    }
}

/// Writes a frame.
///
/// # Errors
///
/// The stream cannot be written, or the content is longer than a 32-bit length can express.
pub async fn write_frame(stream: &mut (impl AsyncWrite + Unpin), content: &[u8]) -> io::Result<()> {
    let length = u32::try_from(content.len()).map_err(io::Error::other)?;
    stream.write_all(&length.to_be_bytes()).await?;
    stream.write_all(content).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn frames_are_read_as_they_are_written() {
        let mut stream = Vec::new();
        let long = vec![7; 3 * READ_BYTES_MAX + 1];
        for content in [&b"abc"[..], b"", &long] {
            write_frame(&mut stream, content).await.unwrap();
        }
        let mut frames = Frames::new(&*stream);
        for content in [&b"abc"[..], b"", &long] {
            assert_eq!(frames.next().await.unwrap().unwrap(), content);
        }
        assert!(frames.next().await.unwrap().is_none());
        for cut in [1, 3, 6] {
            let mut frames = Frames::new(&stream[..cut]);
            let refused = frames.next().await.unwrap_err();
            assert!(
                matches!(refused, FrameError::Incomplete { .. }),
                "{cut}: {refused}"
            );
        }
    }

    #[tokio::test]
    async fn a_length_alone_takes_no_memory() {
        let refused = Frames::new(&[0xff; 8][..]).next().await.unwrap_err();
        assert!(matches!(refused, FrameError::TooLong(0xffff_ffff)));
        let announced = (MAX_FRAME_BYTES as u32).to_be_bytes();
        let refused = Frames::new(&announced[..]).next().await.unwrap_err();
        let missing = MAX_FRAME_BYTES;
        assert!(matches!(refused, FrameError::Incomplete { missing: it } if it == missing));
    }
}
