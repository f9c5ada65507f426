//! Eviction of idle keys for the budget.

use super::table::{Inner, KeyPlace};
use crate::budget::Reclaim;

/// The type that the budget asks to reclaim memory.
pub(super) type Reclaimer = Inner;

impl Reclaim for Inner {
    /// Evicts idle keys, mapped ones first and then the least recently used: as many as are needed, or none
    /// if all of them would not be enough.
    fn reclaim(&self, bytes: u64) -> bool {
        let mut evicted = Vec::new();
        {
            let mut table = self.lock();
            let mut idle: Vec<_> = table
                .entries
                .values()
                .filter(|entry| entry.is_idle() && entry.place.bytes() > 0)
                .map(|entry| {
                    let hot = matches!(entry.place, KeyPlace::Hot(..));
                    (hot, entry.last_used, entry.circuit.id, entry.place.bytes())
                })
                .collect();
            if idle.iter().map(|(.., held)| held).sum::<u64>() < bytes {
                return false;
            }
            idle.sort_unstable();
            let mut freed = 0;
            for (.., id, held) in idle {
                if freed >= bytes {
                    break;
                }
                freed += held;
                evicted.push(self.evict(&mut table, &id));
            }
        }
        // Without the lock: giving bytes back may call this function again.
        drop(evicted);
        true
    }
}

// === impl Inner ===

impl Inner {
    /// Takes a key's memory out of the table, for the caller to drop after the lock is released.
    pub(super) fn evict(
        &self,
        table: &mut super::table::Table,
        id: &crate::interface::CircuitId,
    ) -> KeyPlace {
        table.evictions += 1;
        let entry = table.used(id);
        entry.evictions += 1;
        let place = std::mem::replace(&mut entry.place, KeyPlace::Cold);
        entry.changed.send_replace(());
        self.send_event(entry, None);
        place
    }
}
