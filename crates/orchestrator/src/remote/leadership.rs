//! Whether this process still leads, which others may doubt.

use std::time::Duration;

use proofmill_bus::{Lease, LeaseView};
use tokio::sync::{Mutex, watch};
use tokio::time::Instant;

/// A leader that has just made sure of its lease does not ask for it again so soon, however often it
/// is doubted.
const CONFIRMED_FOR: Duration = Duration::from_millis(250);

/// The leadership of a workflow that this process holds.
///
/// A client may say that it knows of a later leader. That is a hint to look at the lease, and no more:
/// a client that lies costs one look in a quarter of a second.
pub struct Leadership {
    term: u64,
    /// `None`: nobody else can lead.
    lease: Option<LeaseView>,
    confirmed: Mutex<Option<Instant>>,
    lost: watch::Sender<bool>,
}

// === impl Leadership ===

impl Leadership {
    /// The leadership that lasts as long as the lease; its term is higher for each later leader.
    pub fn under(lease: &Lease) -> Self {
        Self::new(lease.term(), Some(lease.view()))
    }

    /// The leadership where nobody else can lead.
    pub fn sole() -> Self {
        Self::new(0, None)
    }

    fn new(term: u64, lease: Option<LeaseView>) -> Self {
        Self {
            term,
            lease,
            confirmed: Mutex::default(),
            lost: watch::Sender::new(false),
        }
    }

    /// The term.
    pub(super) fn term(&self) -> u64 {
        self.term
    }

    /// Somebody says that there is a later leader. Returns whether this process still leads.
    pub(super) async fn is_confirmed(&self) -> bool {
        let mut confirmed = self.confirmed.lock().await;
        if *self.lost.borrow() {
            return false;
        }
        if confirmed.is_some_and(|at| at.elapsed() < CONFIRMED_FOR) {
            return true;
        }
        let is_held = match &self.lease {
            None => true,
            Some(lease) => match lease.is_held().await {
                Ok(is_held) => is_held,
                // Nobody can take it either; the log refuses whoever leads no more.
                Err(error) => {
                    tracing::debug!(%error, "the lease cannot be looked at");
                    true
                }
            },
        };
        *confirmed = Some(Instant::now());
        if !is_held {
            self.lost.send_replace(true);
        }
        is_held
    }

    /// Waits until it is known that another process leads.
    pub(super) async fn is_lost(&self) {
        // The sender lives in `self`.
        let _ = self.lost.subscribe().wait_for(|lost| *lost).await;
    }
}
