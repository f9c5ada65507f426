//! Values that the stages of a process share, each made once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Values by key. A value is kept until the process ends.
pub(super) struct Shared<K, V> {
    slots: Mutex<BTreeMap<K, Arc<Mutex<Option<V>>>>>,
}

// === impl Shared ===

impl<K, V> Default for Shared<K, V> {
    fn default() -> Self {
        Self {
            slots: Mutex::default(),
        }
    }
}

impl<K: Ord + Clone, V: Clone> Shared<K, V> {
    /// The value of a key. `make` makes it at the first call, and again after a failure; meanwhile others wait who need
    /// the same one.
    pub(super) fn get<E>(&self, key: &K, make: impl FnOnce() -> Result<V, E>) -> Result<V, E> {
        let slot = {
            let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(slots.entry(key.clone()).or_default())
        };
        let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(value) = &*slot {
            return Ok(value.clone());
        }
        let value = make()?;
        *slot = Some(value.clone());
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_made_once_and_again_after_a_failure() {
        let shared = Shared::<u8, u8>::default();
        assert_eq!(shared.get(&1, || Err("no")), Err("no"));
        assert_eq!(shared.get(&1, || Ok::<_, ()>(7)), Ok(7));
        assert_eq!(shared.get(&1, || Ok::<_, ()>(8)), Ok(7));
        assert_eq!(shared.get(&2, || Ok::<_, ()>(9)), Ok(9));
    }
}
