//! Checks of the messages in a call's body, before memory is allocated for them.
//!
//! A message is a byte (whether it is compressed), its length as four big-endian bytes, and its content:
//! "gRPC over HTTP2", `Length-Prefixed-Message`.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tonic::Status;

use super::bounds::MessageLimit;
use super::retry::try_again;
use crate::body_timeout::{BodyTimeout, Pressure};

/// Size in bytes above which a message counts as large, and needs room while it is read.
const LARGE_MESSAGE_BYTES: usize = 64 << 10;
/// Suggested wait for a caller that sends a large message while there is no room.
const RETRY_WAIT: Duration = Duration::from_millis(200);

/// A body that fails if a message is longer than `limit`, if there is no room for a large one, or if a message is not
/// complete within a time limit, which is shorter while other requests wait.
pub(crate) struct CheckedMessages<B> {
    body: B,
    limit: MessageLimit,
    time_max: Duration,
    /// Memory for large messages: one permit for each KiB.
    room: Arc<Semaphore>,
    pressure: Pressure,
    position: Position,
    /// The share of `room` for the current message. It is held until the reader asks for more, since the message may
    /// be in memory until then.
    permit: Option<OwnedSemaphorePermit>,
    /// The time limit of the message that has begun.
    timeout: Option<BodyTimeout>,
    /// Time at which the reader got bytes; none while it waits for more.
    delivered_at: Option<Instant>,
    /// The fault of a message after complete ones in the same frame; the next call returns it.
    refused: Option<Status>,
}

/// The position in the message stream.
enum Position {
    /// In the five bytes before a message, of which this many have come.
    Head([u8; 5], usize),
    /// In a message, of which this many bytes are still to come.
    Message(usize),
}

// === impl CheckedMessages ===

impl<B> CheckedMessages<B> {
    pub(crate) fn new(
        body: B,
        limit: MessageLimit,
        time_max: Duration,
        room: Arc<Semaphore>,
        pressure: Pressure,
    ) -> Self {
        Self {
            body,
            limit,
            time_max,
            room,
            pressure,
            position: Position::Head([0; 5], 0),
            permit: None,
            timeout: None,
            delivered_at: None,
            refused: None,
        }
    }

    /// Checks bytes. The error has the number of bytes that belong to complete messages before the faulty
    /// one.
    fn check(&mut self, mut bytes: &[u8]) -> Result<(), (usize, Status)> {
        let total = bytes.len();
        let mut complete = 0;
        while !bytes.is_empty() {
            match &mut self.position {
                Position::Head(head, received) => {
                    if *received == 0 {
                        complete = total - bytes.len();
                    }
                    let take = bytes.len().min(head.len() - *received);
                    head[*received..*received + take].copy_from_slice(&bytes[..take]);
                    *received += take;
                    bytes = &bytes[take..];
                    if *received == head.len() {
                        let [_, length @ ..] = *head;
                        self.begin(u32::from_be_bytes(length))
                            .map_err(|status| (complete, status))?;
                    }
                }
                Position::Message(missing) => {
                    let take = bytes.len().min(*missing);
                    *missing -= take;
                    bytes = &bytes[take..];
                    if *missing == 0 {
                        self.position = Position::Head([0; 5], 0);
                        self.timeout = None;
                    } else if let Some(timeout) = &mut self.timeout {
                        timeout.received(take);
                    }
                }
            }
        }
        Ok(())
    }

    /// Begins a message of `length` bytes.
    fn begin(&mut self, length: u32) -> Result<(), Status> {
        // A length beyond the address space exceeds every limit.
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let MessageLimit { bytes, beyond } = self.limit;
        if length > bytes {
            return Err(Status::invalid_argument(format!(
                "a message of {length} bytes; this call takes at most {bytes}{beyond}"
            )));
        }
        if length > LARGE_MESSAGE_BYTES {
            let kib = u32::try_from(length.div_ceil(1024)).unwrap_or(u32::MAX);
            let permit = self.room.clone().try_acquire_many_owned(kib);
            self.permit = Some(permit.map_err(|_| {
                self.pressure.refused();
                try_again("too many large messages are being read", RETRY_WAIT)
            })?);
        }
        if length == 0 {
            self.position = Position::Head([0; 5], 0);
        } else {
            self.position = Position::Message(length);
            self.timeout = Some(BodyTimeout::new(self.time_max, self.pressure.clone()));
        }
        Ok(())
    }
}

impl<B> Body for CheckedMessages<B>
where
    B: Body<Data = Bytes, Error = Status> + Unpin,
{
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if let Some(refused) = self.refused.take() {
            return Poll::Ready(Some(Err(refused)));
        }
        if matches!(self.position, Position::Head(_, 0)) {
            // A reader that asks for more has taken the complete messages.
            self.permit = None;
        }
        // Time during which the reader did not ask for more does not count against the sender.
        let this = &mut *self;
        if let (Some(since), Some(timeout)) = (this.delivered_at.take(), &mut this.timeout) {
            timeout.pause(since.elapsed());
        }
        match Pin::new(&mut self.body).poll_frame(context) {
            Poll::Ready(Some(Ok(frame))) => {
                self.delivered_at = Some(Instant::now());
                let Some(data) = frame.data_ref() else {
                    return Poll::Ready(Some(Ok(frame)));
                };
                match self.check(data) {
                    Ok(()) => Poll::Ready(Some(Ok(frame))),
                    Err((0, refused)) => Poll::Ready(Some(Err(refused))),
                    // Valid messages before a faulty one are delivered before the error.
                    Err((complete, refused)) => {
                        self.refused = Some(refused);
                        Poll::Ready(Some(Ok(Frame::data(data.slice(..complete)))))
                    }
                }
            }
            Poll::Ready(end) => Poll::Ready(end),
            Poll::Pending => {
                let Some(timeout) = &mut self.timeout else {
                    return Poll::Pending;
                };
                timeout.poll_late(context).map(|()| {
                    let late = "a message that began was not complete in time";
                    Some(Err(Status::deadline_exceeded(late)))
                })
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.refused.is_none() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use tonic::Code;

    use super::*;

    fn messages(bytes: usize, room: &Arc<Semaphore>) -> CheckedMessages<()> {
        let limit = MessageLimit { bytes, beyond: "" };
        CheckedMessages::new(
            (),
            limit,
            Duration::from_secs(60),
            room.clone(),
            Pressure::default(),
        )
    }

    fn message(length: u32) -> Vec<u8> {
        let mut bytes = vec![0];
        bytes.extend(length.to_be_bytes());
        bytes
    }

    #[tokio::test]
    async fn lengths_are_checked_however_the_bytes_come() {
        let room = Arc::new(Semaphore::new(0));
        let mut body = message(3);
        body.extend(b"abc");
        body.extend(message(0));
        body.extend(message(5));
        for piece in 1..body.len() {
            let mut checked = messages(4, &room);
            let outcome = body.chunks(piece).try_for_each(|it| checked.check(it));
            let (_, refused) = outcome.unwrap_err();
            assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
            assert!(refused.message().contains("5 bytes"), "{refused}");
        }
    }

    #[tokio::test]
    async fn messages_before_a_faulty_one_are_counted() {
        let room = Arc::new(Semaphore::new(0));
        let mut body = message(3);
        body.extend(b"abc");
        let before = body.len();
        body.extend(message(5));
        let (complete, _) = messages(4, &room).check(&body).unwrap_err();
        assert_eq!(complete, before);
        // The head of the message began in a frame that was delivered.
        let mut checked = messages(4, &room);
        checked.check(&body[..before + 2]).unwrap();
        let (complete, _) = checked.check(&body[before + 2..]).unwrap_err();
        assert_eq!(complete, 0);
    }

    #[tokio::test]
    async fn large_messages_are_read_while_there_is_room() {
        let large = Arc::new(Semaphore::new(LARGE_MESSAGE_BYTES / 1024 + 1));
        let length = u32::try_from(LARGE_MESSAGE_BYTES + 1).unwrap();
        let mut first = messages(LARGE_MESSAGE_BYTES + 1, &large);
        first.check(&message(length)).unwrap();
        let (_, refused) = messages(LARGE_MESSAGE_BYTES + 1, &large)
            .check(&message(length))
            .unwrap_err();
        assert_eq!(refused.code(), Code::ResourceExhausted);
        drop(first);
        messages(LARGE_MESSAGE_BYTES + 1, &large)
            .check(&message(length))
            .unwrap();
    }
}
