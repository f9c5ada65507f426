//! Conversations in frames of MessagePack.

use std::future::pending;
use std::io;

use bytes::Bytes;
use proofmill_shutdown::Shutdown;
use proofmill_verifier::Handle;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, BufReader, BufWriter};

use super::conversation::{AnswerSink, Peer, ReadError, RequestStream, converse_over};
use super::frame::{FrameError, Frames, write_frame};
use super::message::{Answer, decode_request};
use super::operation::NumberedRequest;

/// Answers requests in a stream as soon as answers are known, until the stream ends or `shutdown` reaches
/// [`Level::Drain`](proofmill_shutdown::Level::Drain); then accepted requests are still answered. If the
/// stream breaks, its requests are cancelled.
///
/// # Errors
///
/// [`FrameError`] if the stream breaks or has malformed frames.
pub async fn converse(
    handle: Handle,
    peer: Peer,
    reader: impl AsyncRead + Unpin + Send,
    writer: impl AsyncWrite + Unpin + Send,
    shutdown: Shutdown,
) -> Result<(), FrameError> {
    let requests = FramedRequests {
        // Buffered, since frames are small and often arrive many at a time.
        frames: Frames::new(BufReader::new(reader)),
        end: None,
    };
    let answers = FramedAnswers(BufWriter::new(writer));
    converse_over(handle, peer, requests, answers, shutdown)
        .await
        .map(|_| ())
}

/// The request in a frame.
pub(super) fn read_request(frame: &Bytes) -> NumberedRequest {
    match decode_request(frame) {
        Ok(request) => NumberedRequest {
            request_id: request.request_id,
            operation: request
                .body
                .into_operation(frame)
                .map_err(|error| error.to_string()),
        },
        Err((request_id, error)) => NumberedRequest {
            request_id,
            operation: Err(error.to_string()),
        },
    }
}

struct FramedRequests<R> {
    frames: Frames<BufReader<R>>,
    /// The error that ends the stream of frames. An answer reports it before the conversation ends.
    end: Option<FrameError>,
}

struct FramedAnswers<W: AsyncWrite>(BufWriter<W>);

// === impl FramedRequests ===

impl<R: AsyncRead + Unpin + Send> RequestStream for FramedRequests<R> {
    type Error = FrameError;

    async fn next(&mut self) -> Result<Option<NumberedRequest>, ReadError<FrameError>> {
        if let Some(error) = self.end.take() {
            return Err(ReadError::Malformed(error));
        }
        match self.frames.next().await {
            Ok(frame) => Ok(frame.map(|frame| read_request(&frame))),
            Err(error @ FrameError::TooLong(_)) => {
                let operation = Err(error.to_string());
                self.end = Some(error);
                Ok(Some(NumberedRequest {
                    request_id: 0,
                    operation,
                }))
            }
            Err(error) => Err(ReadError::Gone(error)),
        }
    }
}

// === impl FramedAnswers ===

impl<W: AsyncWrite + Unpin + Send> AnswerSink for FramedAnswers<W> {
    type Error = io::Error;

    async fn write(&mut self, answer: Answer) -> io::Result<()> {
        write_frame(&mut self.0, &answer.encode()).await
    }

    async fn flush(&mut self) -> io::Result<()> {
        self.0.flush().await
    }

    /// A closed stream is detected only when it is written to.
    async fn closed(&mut self) {
        pending().await
    }
}
