//! Submission of a single message from outside.

use std::sync::Arc;

use proofmill_bus::{BlobError, BlobStore};
use serde::de::IgnoredAny;

use super::service::{SourceMessage, request};
use crate::conversation::Reply;
use crate::coordinator::CoordinatorGone;
use crate::payload::Encoding;
use crate::plan::QueueIx;
use crate::port::SourcePort;

/// Maximum size of a submitted payload, in bytes.
pub const PAYLOAD_MAX: usize = 64 * 1024 * 1024;

/// The reason why a submission may not have been recorded.
#[derive(Debug, thiserror::Error)]
pub enum SubmitError {
    /// The payload could not be stored.
    #[error("cannot store the payload of block {block}")]
    Store {
        /// The block.
        block: u64,
        /// The error of the blob store.
        #[source]
        source: BlobError,
    },
    /// The coordinator has stopped.
    #[error(transparent)]
    CoordinatorGone(#[from] CoordinatorGone),
}

/// Submits one message, and waits until it is durable. Returns [`Reply::Invalid`] for a payload
/// that is too large, or labelled JSON without being JSON, and for a queue that the workflow does
/// not have. [`SourceMessage::next`] is ignored.
pub async fn submit(
    coordinator: &SourcePort,
    blobs: &BlobStore,
    producer: &Arc<str>,
    queue: QueueIx,
    message: SourceMessage,
) -> Result<Reply, SubmitError> {
    let block = message.first;
    if let Some(why) = fault(coordinator, queue, &message) {
        return Ok(Reply::Invalid { why });
    }
    let (request, _held) = request(producer, queue, message, coordinator, blobs)
        .await
        .map_err(|source| SubmitError::Store { block, source })?;
    Ok(coordinator.submit(request).await?)
}

/// The fault of a message by itself, before any part of it is stored; `None` if it is valid.
fn fault(coordinator: &SourcePort, queue: QueueIx, message: &SourceMessage) -> Option<String> {
    if queue.0 >= coordinator.plan().queues.len() {
        return Some(format!("the workflow has no queue number {}", queue.0));
    }
    if message.last < message.first {
        let (first, last) = (message.first, message.last);
        return Some(format!(
            "its last block {last} is before its first, {first}"
        ));
    }
    let size = message.bytes.len();
    if size > PAYLOAD_MAX {
        return Some(format!(
            "the payload has {size} bytes, the limit is {PAYLOAD_MAX}"
        ));
    }
    if message.encoding == Encoding::Json {
        let parsed = serde_json::from_slice::<IgnoredAny>(&message.bytes);
        return parsed
            .err()
            .map(|error| format!("the payload is not JSON: {error}"));
    }
    None
}
