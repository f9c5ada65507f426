//! Reading the last messages of a queue, from which a process learns what its predecessor emitted.

use std::time::Duration;

use async_nats::jetstream::consumer::{DeliverPolicy, pull};
use async_nats::jetstream::stream::{LastRawMessageErrorKind, Stream};
use async_nats::{HeaderMap, Message};
use futures_util::StreamExt as _;

use super::with_sources;

/// Longest wait for one message.
const MESSAGE: Duration = Duration::from_secs(10);

/// Passes the messages of `queue` among the last `most` of its stream to `take`, in order; at least the
/// queue's last one, however old it is.
pub(crate) async fn tail(
    stream: &Stream,
    queue: &str,
    most: u64,
    mut take: impl FnMut(&HeaderMap, &[u8]),
) -> Result<(), String> {
    let last = match stream.get_last_raw_message_by_subject(queue).await {
        Ok(last) => last.sequence,
        Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => return Ok(()),
        Err(error) => return Err(with_sources(&error)),
    };
    let info = stream
        .get_info()
        .await
        .map_err(|error| with_sources(&error))?;
    let first = info
        .state
        .last_sequence
        .saturating_sub(most)
        .min(last)
        .max(1);
    let consumer = stream
        .create_consumer(pull::OrderedConfig {
            deliver_policy: DeliverPolicy::ByStartSequence {
                start_sequence: first,
            },
            filter_subject: queue.to_owned(),
            ..pull::OrderedConfig::default()
        })
        .await
        .map_err(|error| with_sources(&error))?;
    let mut messages = consumer
        .messages()
        .await
        .map_err(|error| with_sources(&error))?;
    loop {
        let message = match tokio::time::timeout(MESSAGE, messages.next()).await {
            Ok(Some(Ok(message))) => message,
            Ok(Some(Err(error))) => return Err(with_sources(&error)),
            Ok(None) => return Err("its messages end early".to_owned()),
            Err(_) => return Err("no message came in time".to_owned()),
        };
        let sequence = message
            .info()
            .map_err(|error| error.to_string())?
            .stream_sequence;
        let Message {
            headers, payload, ..
        } = message.message;
        take(&headers.unwrap_or_default(), &payload);
        if sequence >= last {
            return Ok(());
        }
    }
}
