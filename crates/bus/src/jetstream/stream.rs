//! The stream of a log.

use std::time::Duration;

use async_nats::jetstream::consumer::{DeliverPolicy, pull};
use async_nats::jetstream::context::{PublishAckFuture, PublishError};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream::{Config, DirectGetErrorKind, RetentionPolicy, Stream};
use bytes::Bytes;
use futures_util::StreamExt;
use rand::Rng;

use super::connection::{Connection, RetryDeadline, retry, with_sources};
use super::frame::{Assembly, Frame, Malformed};
use super::options::ConnectError;
use super::resource::open_stream;
use crate::log::LogUsage;

/// Longest wait for a message of the stream, after which a new consumer is made.
const MESSAGE_TIMEOUT: Duration = Duration::from_secs(2);

/// The stream of one log.
#[derive(Clone, Debug)]
pub(super) struct LogStream {
    pub(super) connection: Connection,
    pub(super) stream: Stream,
    pub(super) subject: String,
}

// === impl LogStream ===

impl LogStream {
    /// Opens the stream of the log `name`, which is created if necessary.
    ///
    /// Its subject ends with a secret random word: the server sends its answers to any subject that
    /// an asker names, whatever the asker itself may publish to.
    pub(super) async fn open(connection: &Connection, name: &str) -> Result<Self, ConnectError> {
        let word: u128 = rand::rng().random();
        let config = Config {
            name: format!("{}_log_{name}", connection.options().prefix),
            description: Some(format!("Proofmill: the log of {name}")),
            subjects: vec![connection.subject(&["log", name, &format!("{word:032x}")])],
            retention: RetentionPolicy::Limits,
            allow_direct: true,
            ..Config::default()
        };
        let stream = open_stream(connection, config).await?;
        let found = &stream.cached_info().config;
        let ours = connection.subject(&["log", name, ""]);
        let subject = match &found.subjects[..] {
            [subject] if subject.starts_with(&ours) => subject.clone(),
            others => {
                return Err(ConnectError::Resource {
                    what: format!("the stream {}", found.name),
                    why: format!("its subjects are {others:?}, not one that begins with {ours:?}"),
                });
            }
        };
        Ok(Self {
            connection: connection.clone(),
            stream,
            subject,
        })
    }

    pub(super) fn name(&self) -> &str {
        &self.stream.cached_info().config.name
    }

    /// First and last sequence number of the stream, as its leader knows them.
    pub(super) async fn bounds(&self) -> Result<(u64, u64), ConnectError> {
        let info = retry(|| self.stream.get_info()).await;
        let info = info.map_err(|error| self.unusable(with_sources(&error)))?;
        Ok((info.state.first_sequence, info.state.last_sequence))
    }

    /// The bytes of the stream, and its own limit; `None` if the server does not answer now.
    pub(super) async fn usage(&self) -> Option<LogUsage> {
        let info = self.stream.get_info().await.ok()?;
        let limit = u64::try_from(info.config.max_bytes).ok();
        Some(LogUsage {
            bytes: info.state.bytes,
            limit: limit.filter(|limit| *limit > 0),
        })
    }

    /// Passes every message from sequence number `from` to `last` to `take`, each once. If a server
    /// fails meanwhile, reading resumes after the last message taken.
    pub(super) async fn read(
        &self,
        from: u64,
        last: u64,
        mut take: impl FnMut(u64, &Bytes) -> Result<(), ConnectError>,
    ) -> Result<(), ConnectError> {
        let mut next = from.max(1);
        let mut deadline = RetryDeadline::new();
        while next <= last {
            let before = next;
            let Err(stopped) = self.read_on(&mut next, last, &mut take).await else {
                return Ok(());
            };
            if next > before {
                deadline = RetryDeadline::new();
            }
            match stopped {
                Stopped::Refused(error) => return Err(error),
                Stopped::Unread(why) => {
                    if !deadline.pause(&why).await {
                        return Err(self.unusable(why));
                    }
                }
            }
        }
        Ok(())
    }

    /// Reads with one consumer; `next` is the first message that has not been taken.
    async fn read_on(
        &self,
        next: &mut u64,
        last: u64,
        take: &mut impl FnMut(u64, &Bytes) -> Result<(), ConnectError>,
    ) -> Result<(), Stopped> {
        let unread = |error: &dyn std::error::Error| Stopped::Unread(with_sources(error));
        let config = pull::OrderedConfig {
            deliver_policy: DeliverPolicy::ByStartSequence {
                start_sequence: *next,
            },
            ..pull::OrderedConfig::default()
        };
        let consumer = self.stream.create_consumer(config).await;
        let consumer = consumer.map_err(|error| unread(&error))?;
        let messages = consumer.messages().await;
        let mut messages = messages.map_err(|error| unread(&error))?;
        while *next <= last {
            let message = tokio::time::timeout(MESSAGE_TIMEOUT, messages.next())
                .await
                .map_err(|_| Stopped::Unread("no message came in time".into()))?
                .ok_or_else(|| Stopped::Unread("its messages end early".into()))?
                .map_err(|error| unread(&error))?;
            let info = message.info();
            let sequence = info
                .map_err(|error| Stopped::Unread(error.to_string()))?
                .stream_sequence;
            if sequence > last {
                return Ok(());
            }
            take(sequence, &message.payload).map_err(Stopped::Refused)?;
            *next = sequence + 1;
        }
        Ok(())
    }

    /// One message, from any server with a copy; a copy that lags may lack a new message. `None` if
    /// it is not found.
    pub(super) async fn message(&self, sequence: u64) -> Result<Option<Bytes>, String> {
        match self.stream.direct_get(sequence).await {
            Ok(message) => Ok(Some(message.payload)),
            Err(error) if error.kind() == DirectGetErrorKind::NotFound => Ok(None),
            Err(error) => Err(with_sources(&error)),
        }
    }

    /// The frame whose messages have these sequence numbers. Retries if a server fails.
    pub(super) async fn frame(&self, first: u64, last: u64) -> Result<Frame, String> {
        let deadline = RetryDeadline::new();
        loop {
            match self.frame_now(first, last).await {
                Ok(frame) => return Ok(frame),
                Err(why) if !deadline.pause(&why).await => return Err(why),
                Err(_) => {}
            }
        }
    }

    async fn frame_now(&self, first: u64, last: u64) -> Result<Frame, String> {
        let mut assembly = Assembly::default();
        for sequence in first..=last {
            let message = self.message(sequence).await?;
            let message = message.ok_or_else(|| format!("message {sequence} is missing"))?;
            let taken = assembly.take(sequence, &message);
            if let Some((_, frame)) = taken.map_err(|error| error.to_string())? {
                return Ok(frame);
            }
        }
        Err(format!("messages {first} to {last} are not a frame"))
    }

    /// Sends a message that must get the sequence number `sequence`.
    pub(super) async fn publish(
        &self,
        payload: &Bytes,
        sequence: u64,
    ) -> Result<PublishAckFuture, PublishError> {
        let message = PublishMessage::build()
            .payload(payload.clone())
            .expected_last_sequence(sequence - 1);
        let context = &self.connection.context;
        context.send_publish(self.subject.clone(), message).await
    }

    pub(super) fn damaged(&self, sequence: u64, why: Malformed) -> ConnectError {
        ConnectError::Damaged {
            stream: self.name().to_owned(),
            sequence,
            why: why.to_string(),
        }
    }

    /// Removes every message before `sequence`.
    pub(super) async fn purge_before(&self, sequence: u64) -> Result<(), String> {
        let purged = self.stream.purge().sequence(sequence).await;
        purged.map(|_| ()).map_err(|error| with_sources(&error))
    }

    pub(super) fn unusable(&self, why: String) -> ConnectError {
        ConnectError::Resource {
            what: format!("the stream {}", self.name()),
            why,
        }
    }
}

/// The reason why reading stopped early.
enum Stopped {
    /// The messages do not arrive.
    Unread(String),
    /// A message is invalid.
    Refused(ConnectError),
}
