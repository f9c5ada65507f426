//! Leadership of this process, with the lease that proves it.

use proofmill_bus::{Lease, LeaseView};

/// The leadership of a workflow that this process holds.
pub struct Leadership {
    term: u64,
    /// `None` if no other process can lead.
    lease: Option<LeaseView>,
}

// === impl Leadership ===

impl Leadership {
    /// A leadership that lasts as long as the lease; its term is higher than that of every earlier
    /// leader.
    pub fn under(lease: &Lease) -> Self {
        Self {
            term: lease.term(),
            lease: Some(lease.view()),
        }
    }

    /// The leadership if no other process can lead.
    pub fn sole() -> Self {
        Self {
            term: 0,
            lease: None,
        }
    }

    /// The term of the leadership.
    pub(super) fn term(&self) -> u64 {
        self.term
    }

    /// Whether no other process has the lease; `None` if the lease cannot be checked now.
    pub(super) async fn is_held(&self) -> Option<bool> {
        let Some(lease) = &self.lease else {
            return Some(true);
        };
        match lease.is_held().await {
            Ok(is_held) => Some(is_held),
            Err(error) => {
                tracing::debug!(%error, "the lease cannot be looked at");
                None
            }
        }
    }
}
