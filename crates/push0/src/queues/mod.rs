//! Queues of the deployment: subjects of JetStream streams, read by durable consumers.

mod consumer;
mod delivery;
mod publish;
mod stream;
mod tail;
mod trace;

use std::time::Duration;

use async_nats::jetstream::{self, Context};
use proofmill_bus::{ConnectError, Connection, NatsOptions};
use proofmill_orchestrator::remote::Role;
use proofmill_orchestrator::shutdown::{Level, Shutdown};
use sha2::{Digest, Sha256};

use crate::error::RunError;

pub(crate) use proofmill_bus::with_sources;

pub(crate) use consumer::{Consumer, ConsumerOptions};
pub(crate) use delivery::Delivery;
pub(crate) use publish::{Outgoing, PublishError};
pub(crate) use stream::Streams;
pub(crate) use tail::tail;
pub(crate) use trace::add_trace;

/// Time that a server may take to start, since containers of one deployment start together.
const CONNECT_LIMIT: Duration = Duration::from_secs(60);

/// Connects, and waits for a server that has not started yet. `None` if it was told to stop first.
pub(crate) async fn connect(
    url: &str,
    mut shutdown: Shutdown,
) -> Result<Option<(Connection, Context)>, RunError> {
    let begun = tokio::time::Instant::now();
    let mut backoff = Backoff::new(Duration::from_millis(250), Duration::from_secs(5));
    let mut options = NatsOptions::new(url);
    // Permissions on the server may name the coordinator's inbox: earlier releases used it.
    options.membership = Role::Coordinator.membership();
    loop {
        match Connection::open(options.clone()).await {
            Ok(connection) => {
                let mut context = jetstream::new(connection.client().clone());
                context.set_timeout(Duration::from_secs(5));
                return Ok(Some((connection, context)));
            }
            Err(error @ ConnectError::Unreachable { .. }) if begun.elapsed() < CONNECT_LIMIT => {
                tracing::warn!(%error, "tried again");
            }
            Err(error) => return Err(error.into()),
        }
        tokio::select! {
            () = shutdown.reached(Level::Drain) => return Ok(None),
            () = backoff.wait() => {}
        }
    }
}

/// The id under which a stream recognises a repeated message. It is a hash of the parts, never of a
/// program's output, which may differ between attempts.
pub(crate) fn message_id(parts: &[&[u8]]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hex::encode(hash.finalize())
}

/// Waits that double up to a maximum.
#[derive(Debug)]
pub(crate) struct Backoff {
    next: Duration,
    first: Duration,
    max: Duration,
}

// === impl Backoff ===

impl Backoff {
    pub(crate) fn new(first: Duration, max: Duration) -> Self {
        Self {
            next: first,
            first,
            max,
        }
    }

    pub(crate) async fn wait(&mut self) {
        let wait = self.next;
        self.next = (wait * 2).min(self.max);
        tokio::time::sleep(wait).await;
    }

    pub(crate) fn reset(&mut self) {
        self.next = self.first;
    }
}
