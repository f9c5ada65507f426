//! Reserved bytes.

use std::fmt;
use std::sync::Arc;

use super::account::Shared;
use crate::interface::Owner;

/// Bytes reserved from a budget. Dropping the reservation gives them back.
pub(crate) struct Reservation {
    shared: Arc<Shared>,
    owner: Owner,
    bytes: u64,
}

// === impl Reservation ===

impl Reservation {
    pub(super) fn new(shared: Arc<Shared>, owner: Owner, bytes: u64) -> Self {
        Self {
            shared,
            owner,
            bytes,
        }
    }

    /// The number of bytes reserved.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Gives back all but `bytes` bytes. A reservation that is smaller already stays as it is.
    pub(crate) fn shrink_to(&mut self, bytes: u64) {
        let less = self.bytes.saturating_sub(bytes);
        if less == 0 {
            return;
        }
        self.bytes -= less;
        self.shared.with(|state| state.give_back(self.owner, less));
        self.shared.grant_waiting();
    }

    /// Splits `bytes` bytes off for `owner`, or all if there are fewer.
    pub(crate) fn split(&mut self, bytes: u64, owner: Owner) -> Self {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        self.shared
            .with(|state| state.transfer(self.owner, owner, bytes));
        Self::new(self.shared.clone(), owner, bytes)
    }

    /// Adds `other` to this reservation; its bytes now count for this one's owner.
    ///
    /// # Panics
    ///
    /// If the two are reservations of different budgets.
    pub(crate) fn merge(&mut self, mut other: Self) {
        assert!(
            Arc::ptr_eq(&self.shared, &other.shared),
            "reservations of one budget"
        );
        let bytes = std::mem::take(&mut other.bytes);
        self.bytes += bytes;
        self.shared
            .with(|state| state.transfer(other.owner, self.owner, bytes));
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.shrink_to(0);
    }
}

impl fmt::Debug for Reservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes for {}", self.bytes, self.owner)
    }
}
