//! The state shared by the conversations of a TCP port: limits on each client's requests, and the open calls, which
//! the port answers before it closes.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use axum::http::StatusCode;
use proofmill_shutdown::{Level, Shutdown};
use proofmill_verifier::{Handle, KeyError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::conversation::{Conversation, Peer, UNANSWERED_MAX};
use crate::gate::Caller;
use crate::refused::Refused;

/// Client of a port that needs no token: any program on this machine. It differs from the client of the
/// socket, which only this user can open.
const LOOPBACK: &str = "loopback";

/// Number of permits for calls: more than the connections of a listener can have at a time.
const CALLS_MAX: u32 = 1 << 20;

/// Rights of a verifier's clients, which are all equal.
pub(super) type Rights = ();

/// The state that the conversations of a port share.
pub(super) struct PortState {
    pub(super) handle: Handle,
    pub(super) shutdown: Shutdown,
    /// Permits of each client for its requests without an answer.
    permits: Mutex<HashMap<Arc<str>, Arc<Semaphore>>>,
    /// Number of conversations so far, for their names.
    conversations: AtomicU64,
    /// A permit for each open call.
    open: Arc<Semaphore>,
}

/// The guard of a call, kept until the caller has its answer.
pub(super) type OpenCall = OwnedSemaphorePermit;

// === impl PortState ===

impl PortState {
    pub(super) fn new(handle: Handle, shutdown: Shutdown) -> Arc<Self> {
        Arc::new(Self {
            handle,
            shutdown,
            permits: Mutex::default(),
            conversations: AtomicU64::new(0),
            open: Arc::new(Semaphore::new(CALLS_MAX as usize)),
        })
    }

    /// Admits a call, unless the verifier is stopping.
    pub(super) fn admit(&self) -> Result<OpenCall, Refused> {
        let open_call = self.open.clone().try_acquire_owned();
        match open_call {
            Ok(open_call) if !self.is_stopping() => Ok(open_call),
            _ => Err(Self::stopping()),
        }
    }

    fn is_stopping(&self) -> bool {
        self.shutdown.level() >= Level::Drain
    }

    /// Waits until every admitted call has an answer; further callers are refused.
    pub(super) async fn close(&self) {
        // The semaphore is never closed.
        let _ = self.open.acquire_many(CALLS_MAX).await;
    }

    /// A new conversation of a caller.
    pub(super) fn conversation(&self, caller: &Caller<Rights>) -> Conversation {
        Conversation::new(self.handle.clone(), self.peer(caller))
    }

    /// The peer of a new conversation of a caller.
    pub(super) fn peer(&self, caller: &Caller<Rights>) -> Peer {
        let number = self.conversations.fetch_add(1, Ordering::Relaxed);
        let name = format!("port {number}");
        match &caller.client {
            None => Peer::new(LOOPBACK, &name),
            Some(client) => Peer::of_client(client.clone(), &name, self.permits(client)),
        }
    }

    /// The client's name.
    pub(super) fn client(caller: &Caller<Rights>) -> &str {
        caller.client.as_deref().unwrap_or(LOOPBACK)
    }

    pub(super) fn stopping() -> Refused {
        let why = "the verifier is stopping, and takes no more requests";
        Refused::new(StatusCode::SERVICE_UNAVAILABLE, why)
    }

    /// The permits of a client. The map has at most as many entries as the file of tokens has clients.
    fn permits(&self, client: &Arc<str>) -> Arc<Semaphore> {
        // No code panics while the lock is held.
        let mut permits = self.permits.lock().unwrap_or_else(PoisonError::into_inner);
        let permits = permits
            .entry(client.clone())
            .or_insert_with(|| Arc::new(Semaphore::new(UNANSWERED_MAX)));
        permits.clone()
    }
}

impl From<KeyError> for Refused {
    fn from(error: KeyError) -> Self {
        let status = match error {
            KeyError::TooMany { .. } => StatusCode::CONFLICT,
            _ => StatusCode::BAD_REQUEST,
        };
        Self::new(status, error.to_string())
    }
}
