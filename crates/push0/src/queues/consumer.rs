//! Durable pull consumers with explicit acknowledgement.

use std::time::Duration;

use async_nats::jetstream::Message;
use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, PullConsumer, pull};
use async_nats::jetstream::stream::Stream;
use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;

use super::delivery::Delivery;
use super::with_sources;
use crate::error::RunError;

/// Time that the server keeps a request for one message. It is also the time that an idle dispatcher takes
/// to stop, since a dropped request may have a message on its way.
const PULL: Duration = Duration::from_secs(1);

/// Extra time that the server may leave a request's answer open.
const SLACK: Duration = Duration::from_secs(4);

/// Settings of a consumer, used if it has to be made.
#[derive(Clone, Debug)]
pub(crate) struct ConsumerOptions {
    pub(crate) name: String,
    pub(crate) queues: Vec<String>,
    pub(crate) ack_wait: Duration,
    pub(crate) max_ack_pending: i64,
}

/// A durable consumer.
#[derive(Clone, Debug)]
pub(crate) struct Consumer {
    consumer: PullConsumer,
    /// The server's setting.
    pub(crate) ack_wait: Duration,
    /// Deliveries after which the server itself gives up; `None` if it never does.
    pub(crate) max_deliver: Option<u64>,
}

// === impl Consumer ===

impl Consumer {
    /// Opens the consumer, or makes it if it does not exist. An existing one keeps its settings, since
    /// others may be reading through it.
    pub(crate) async fn ensure(
        stream: &Stream,
        options: &ConsumerOptions,
    ) -> Result<Self, RunError> {
        let fault = |why: String| RunError::Consumer {
            consumer: options.name.clone(),
            stream: stream.cached_info().config.name.clone(),
            why,
        };
        let mut config = pull::Config {
            durable_name: Some(options.name.clone()),
            description: Some("Proofmill".to_owned()),
            deliver_policy: DeliverPolicy::All,
            ack_policy: AckPolicy::Explicit,
            ack_wait: options.ack_wait,
            // This process counts deliveries itself, since the server would drop a message without notice.
            max_deliver: -1,
            max_ack_pending: options.max_ack_pending,
            ..pull::Config::default()
        };
        match options.queues.as_slice() {
            [one] => config.filter_subject.clone_from(one),
            several => config.filter_subjects = several.to_vec(),
        }
        let consumer: PullConsumer = match stream.get_consumer(&options.name).await {
            Ok(found) => found,
            Err(error) if error.to_string().contains("not found") => {
                match stream.create_consumer_strict(config.clone()).await {
                    Ok(consumer) => consumer,
                    // Another process made it at the same moment.
                    Err(_) => stream
                        .create_consumer(config.clone())
                        .await
                        .map_err(|error| fault(with_sources(&error)))?,
                }
            }
            Err(error) => return Err(fault(error.to_string())),
        };
        let found = &consumer.cached_info().config;
        if found.deliver_subject.is_some() {
            return Err(fault(
                "it pushes messages: choose another CONSUMER_NAME".to_owned(),
            ));
        }
        if found.ack_policy != AckPolicy::Explicit {
            let why =
                "it does not ask for each message's acknowledgement: choose another CONSUMER_NAME";
            return Err(fault(why.to_owned()));
        }
        let mut queues: Vec<&String> = found.filter_subjects.iter().collect();
        if !found.filter_subject.is_empty() {
            queues.push(&found.filter_subject);
        }
        let mut wanted: Vec<&String> = options.queues.iter().collect();
        queues.sort();
        wanted.sort();
        if queues != wanted {
            return Err(fault(format!(
                "it reads {queues:?}, not {wanted:?}: choose another CONSUMER_NAME, or remove it if \
                 nobody uses it (`nats consumer rm {} {}`)",
                stream.cached_info().config.name,
                options.name
            )));
        }
        if found.ack_wait != options.ack_wait {
            tracing::warn!(
                consumer = options.name,
                theirs = ?found.ack_wait,
                "the consumer is there already, with another ACK_WAIT: kept as it is"
            );
        }
        if found.max_ack_pending > 0 && found.max_ack_pending < options.max_ack_pending {
            tracing::warn!(
                consumer = options.name,
                max_ack_pending = found.max_ack_pending,
                "the consumer is there already, and lets fewer messages be held than may be needed"
            );
        }
        Ok(Self {
            ack_wait: found.ack_wait.max(Duration::from_millis(1)),
            max_deliver: u64::try_from(found.max_deliver)
                .ok()
                .filter(|&most| most > 0),
            consumer,
        })
    }

    /// The next message, if one comes within about a second.
    pub(crate) async fn next(&self) -> Result<Option<Delivery>, String> {
        let request = async {
            let mut batch = self
                .consumer
                .batch()
                .max_messages(1)
                .expires(PULL)
                .messages()
                .await
                .map_err(|error| error.to_string())?;
            match batch.next().await {
                Some(Ok(message)) => Delivery::new(message).map(Some),
                Some(Err(error)) => Err(error.to_string()),
                None => Ok(None),
            }
        };
        tokio::time::timeout(PULL + SLACK, request)
            .await
            .unwrap_or_else(|_| Err("the server does not answer".to_owned()))
    }

    /// A stream of messages. It ends with an error, after which this must be called again.
    pub(crate) async fn messages(
        &self,
    ) -> Result<BoxStream<'static, Result<Delivery, String>>, String> {
        let messages = self
            .consumer
            .stream()
            .max_messages_per_batch(256)
            .expires(Duration::from_secs(10))
            .heartbeat(Duration::from_secs(3))
            .messages()
            .await
            .map_err(|error| error.to_string())?;
        let deliver = |message: Result<Message, _>| match message {
            Ok(message) => Delivery::new(message),
            Err(error) => {
                let error: async_nats::error::Error<pull::MessagesErrorKind> = error;
                Err(with_sources(&error))
            }
        };
        Ok(messages.map(deliver).boxed())
    }
}
