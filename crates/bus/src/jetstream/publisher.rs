//! Publishing to a stream that does not belong to this cluster.

use async_nats::HeaderMap;
use async_nats::jetstream::ErrorCode;
use async_nats::jetstream::context::{GetStreamByNameErrorKind, PublishErrorKind};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream::LastRawMessageErrorKind;
use bytes::Bytes;
use futures_util::future::BoxFuture;

use super::connection::{Connection, with_sources};

/// Header with the id by which a stream recognises a duplicate message.
const MESSAGE_ID: &str = "Nats-Msg-Id";

/// Publishes to one subject of an existing stream that does not belong to this cluster.
#[derive(Clone, Debug)]
pub struct Publisher {
    connection: Connection,
    subject: String,
    stream: Option<String>,
}

/// The reason why a message may not be in the stream.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PublishError {
    /// No stream has the subject.
    #[error(
        "no stream of the server has this subject: make one (`nats stream add NAME --subjects \
         {0}`), or give a subject of another stream"
    )]
    NoStream(String),
    /// Another stream has the subject.
    #[error("it belongs to stream {found}, not to {expected}: correct the subject or the stream")]
    OtherStream {
        /// Name of the stream that has the subject.
        found: String,
        /// Name of the stream that should have it.
        expected: String,
    },
    /// The message is larger than the server or the stream takes.
    #[error("{size} bytes are more than the server or the stream takes: raise its limit")]
    TooLarge {
        /// Bytes of the payload.
        size: usize,
    },
    /// The message may or may not be in the stream; publishing it again under the same id resolves
    /// this.
    #[error("{0}")]
    Failed(String),
}

// === impl Publisher ===

impl Publisher {
    /// A publisher to `subject`, which must belong to `stream` if that is given.
    ///
    /// # Errors
    /// [`PublishError`]: there is no such stream, or the server does not answer.
    pub fn open<'a>(
        connection: &'a Connection,
        subject: &'a str,
        stream: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Self, PublishError>> {
        // Boxed, so that it is compiled in this crate and not again in every caller's.
        Box::pin(async move {
            let publisher = Self {
                connection: connection.clone(),
                subject: subject.to_owned(),
                stream: stream.map(str::to_owned),
            };
            publisher.stream().await?;
            Ok(publisher)
        })
    }

    /// The subject published to.
    pub fn subject(&self) -> &str {
        &self.subject
    }

    /// Name of the stream that has the subject now.
    async fn stream(&self) -> Result<String, PublishError> {
        let found = self.connection.context.stream_by_subject(&self.subject);
        let found = found.await.map_err(|error| match error.kind() {
            GetStreamByNameErrorKind::NotFound => PublishError::NoStream(self.subject.clone()),
            _ => PublishError::Failed(with_sources(&error)),
        })?;
        match &self.stream {
            Some(expected) if *expected != found => {
                let expected = expected.clone();
                Err(PublishError::OtherStream { found, expected })
            }
            _ => Ok(found),
        }
    }

    /// Id of the subject's last message; `None` if there is no message, or it has no id.
    ///
    /// # Errors
    /// As [`Publisher::open`].
    pub async fn last_id(&self) -> Result<Option<String>, PublishError> {
        let name = self.stream().await?;
        let stream = self.connection.context.get_stream_no_info(name).await;
        let stream = stream.map_err(|error| PublishError::Failed(with_sources(&error)))?;
        let last = stream.get_last_raw_message_by_subject(&self.subject);
        match last.await {
            Ok(last) => {
                let id = last.headers.get(MESSAGE_ID);
                Ok(id.map(|id| id.as_str().to_owned()))
            }
            Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(None),
            Err(error) => Err(PublishError::Failed(with_sources(&error))),
        }
    }

    /// Publishes under `id`, and returns when the stream has stored the message.
    ///
    /// # Errors
    /// [`PublishError`]; after [`PublishError::Failed`] the stream may have stored the message
    /// nevertheless.
    pub async fn publish(
        &self,
        id: &str,
        headers: &[(String, String)],
        payload: Bytes,
    ) -> Result<(), PublishError> {
        let size = payload.len();
        let mut all = HeaderMap::new();
        for (name, value) in headers {
            all.insert(name.as_str(), value.as_str());
        }
        // The builder's headers replace what was set before.
        let mut message = PublishMessage::build()
            .payload(payload)
            .headers(all)
            .message_id(id);
        if let Some(stream) = &self.stream {
            message = message.expected_stream(stream);
        }
        let sent = async {
            let context = &self.connection.context;
            let sent = context.send_publish(self.subject.clone(), message).await?;
            sent.await
        };
        let Err(error) = sent.await else {
            return Ok(());
        };
        let server = std::error::Error::source(&error)
            .and_then(|source| source.downcast_ref::<async_nats::jetstream::Error>())
            .map(async_nats::jetstream::Error::error_code);
        Err(match (error.kind(), server) {
            (PublishErrorKind::StreamNotFound, _) => PublishError::NoStream(self.subject.clone()),
            (PublishErrorKind::MaxPayloadExceeded, _)
            | (_, Some(ErrorCode::STREAM_MESSAGE_EXCEEDS_MAXIMUM)) => {
                PublishError::TooLarge { size }
            }
            _ => PublishError::Failed(with_sources(&error)),
        })
    }
}
