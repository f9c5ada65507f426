//! Using a key: memory for it and for the work with it, in one reservation.

use std::sync::Arc;
use std::time::Instant;

use super::load::{self, Loaded};
use super::table::{Entry, Inner, Place, Residency};
use crate::budget::{OverBudget, Reservation};
use crate::interface::{CircuitId, CircuitRef, Error, Owner, Priority};
use crate::key::Key;

/// A key that is not evicted as long as this is held.
pub(crate) struct KeyUse {
    inner: Arc<Inner>,
    id: CircuitId,
}

/// Why a key and the memory for work with it cannot be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AcquireError {
    /// The circuit is not known any more.
    Unknown,
    /// It would never fit.
    Impossible {
        needed: u64,
        total: u64,
        pinned: u64,
    },
}

/// What a request for a key comes to now.
struct Need {
    /// The bytes to reserve.
    bytes: u64,
    /// Those of them that loading takes; none if the key is there or on its way.
    loading: Option<u64>,
}

// === impl AcquireError ===

impl AcquireError {
    /// As an error about the circuit of this name.
    pub(crate) fn about(self, circuit: &CircuitRef) -> Error {
        match self {
            Self::Unknown => Error::UnknownCircuit(circuit.clone()),
            Self::Impossible {
                needed,
                total,
                pinned,
            } => Error::Impossible {
                what: format!("a proof for {circuit}, with its key,"),
                needed,
                total,
                pinned,
            },
        }
    }
}

// === impl Residency ===

impl Residency {
    /// Holds a key, and reserves `work` bytes for work with it and, if it is not there, what loading
    /// it takes; then begins to load it. The future may be dropped at any time.
    ///
    /// Who waits here holds a key that may be in memory and nothing else, so there must be only one
    /// who waits with `work` above zero: everyone else who holds memory then has all that he needs,
    /// and gives it back.
    ///
    /// # Errors
    ///
    /// [`AcquireError`].
    pub(crate) async fn acquire(
        &self,
        id: CircuitId,
        work: u64,
        owner: Owner,
        priority: Priority,
    ) -> Result<(KeyUse, Reservation), AcquireError> {
        let held = self.hold(id).ok_or(AcquireError::Unknown)?;
        let mut changed = {
            let mut table = self.inner.lock();
            table.used(&id).changed.subscribe()
        };
        let (mut reservation, need) = loop {
            changed.borrow_and_update();
            let need = self.inner.need(id, work)?;
            tokio::select! {
                biased;
                reserved = self.inner.budget.reserve(owner, need.bytes, priority) => {
                    let OverBudget { needed, total } = match reserved {
                        Ok(reservation) => break (reservation, need),
                        Err(over) => over,
                    };
                    return Err(AcquireError::Impossible { needed, total, pinned: 0 });
                }
                // It came, or another failed to load it: what is needed is another amount.
                _ = changed.changed() => {}
            }
        };
        if let Some(loading) = need.loading {
            let key = reservation.split(loading, Owner::Key(id));
            self.inner.clone().begin_loading(id, key);
        }
        Ok((held, reservation))
    }

    /// Whether a partition that takes `work` bytes would ever get them.
    ///
    /// # Errors
    ///
    /// [`AcquireError`].
    pub(crate) fn check_possible(&self, id: CircuitId, work: u64) -> Result<(), AcquireError> {
        let mut table = self.inner.lock();
        let entry = table.entries.get_mut(&id).ok_or(AcquireError::Unknown)?;
        // Once it was loaded it may have to be loaded again.
        let needed = work + self.inner.loading(&entry.circuit);
        self.inner.check_pinned(&table, id, needed)
    }

    /// Whether a key is in memory, or on its way.
    pub(crate) fn has(&self, id: CircuitId) -> bool {
        let table = self.inner.lock();
        let entry = table.entries.get(&id);
        entry.is_some_and(|entry| self.inner.to_load(entry).is_none())
    }

    /// Whether loading a key, and `work` bytes of work with it, take more than is free.
    pub(crate) fn must_evict_for(&self, id: CircuitId, work: u64) -> bool {
        let table = self.inner.lock();
        let entry = table.entries.get(&id);
        let loading = entry.and_then(|entry| self.inner.to_load(entry));
        loading.is_some_and(|loading| loading + work > self.inner.budget.free())
    }

    /// Keeps a key from being evicted; nothing if the circuit is not known.
    fn hold(&self, id: CircuitId) -> Option<KeyUse> {
        let mut table = self.inner.lock();
        let now = table.tick();
        let entry = table.entries.get_mut(&id)?;
        entry.users += 1;
        entry.last_used = now;
        Some(KeyUse {
            inner: self.inner.clone(),
            id,
        })
    }
}

// === impl Inner ===

impl Inner {
    /// What it takes to work with a key that is held.
    fn need(&self, id: CircuitId, work: u64) -> Result<Need, AcquireError> {
        let mut table = self.lock();
        let loading = self.to_load(table.used(&id));
        let need = Need {
            bytes: work + loading.unwrap_or(0),
            loading,
        };
        self.check_pinned(&table, id, need.bytes)?;
        Ok(need)
    }

    /// The bytes that loading a key takes beside what is mapped of it; none if it is there or on its way.
    fn to_load(&self, entry: &Entry) -> Option<u64> {
        match entry.place {
            Place::Hot(..) | Place::Loading => None,
            Place::Cold | Place::Warm(..) => {
                // What is mapped becomes a part of what loading takes.
                let mapped = entry.place.bytes();
                Some(self.loading(&entry.circuit).saturating_sub(mapped))
            }
        }
    }

    /// That so many bytes fit beside the keys that are never evicted, and this one if it is there.
    fn check_pinned(
        &self,
        table: &super::table::Table,
        id: CircuitId,
        needed: u64,
    ) -> Result<(), AcquireError> {
        let pinned: u64 = table
            .entries
            .values()
            .filter(|entry| entry.pinned && entry.circuit.id != id)
            .map(|entry| entry.place.bytes())
            .sum();
        let total = self.budget.total();
        if needed + pinned <= total {
            return Ok(());
        }
        Err(AcquireError::Impossible {
            needed,
            total,
            pinned,
        })
    }

    /// Loads a key with what was reserved for it, unless someone did meanwhile.
    fn begin_loading(self: Arc<Self>, id: CircuitId, mut reservation: Reservation) {
        let (circuit, files) = {
            let mut table = self.lock();
            let entry = table.used(&id);
            let files = match std::mem::replace(&mut entry.place, Place::Loading) {
                Place::Cold => None,
                Place::Warm(files, mapped) => {
                    reservation.merge(mapped);
                    Some(files)
                }
                there @ (Place::Loading | Place::Hot(..)) => {
                    entry.place = there;
                    // The reservation is given back when the lock is.
                    return;
                }
            };
            entry.users += 1;
            entry.changed.send_replace(());
            (entry.circuit.clone(), files)
        };
        let began = (self.events.now(), Instant::now());
        // Nobody's request: whoever asked first may go, the others still want it.
        tokio::spawn(async move {
            let (inner, work) = (self.clone(), circuit.clone());
            let loaded = tokio::task::spawn_blocking(move || {
                let pool = &inner.pool;
                pool.install(|| load::load(&work, inner.form, inner.policy, &inner.checked, files))
            });
            let loaded = loaded
                .await
                .unwrap_or_else(|error| Err(format!("loading the key ended early: {error}")));
            self.loaded(id, loaded, reservation, began);
        });
    }

    fn loaded(
        &self,
        id: CircuitId,
        loaded: Result<Loaded, String>,
        mut reservation: Reservation,
        (began_us, began): (u64, Instant),
    ) {
        let reserved = reservation.bytes();
        let loaded = loaded.and_then(|loaded| match loaded.key.bytes() {
            bytes if bytes <= reserved => Ok((loaded, bytes)),
            // Never seen; without it the budget would be wrong from here on.
            bytes => Err(format!(
                "the key takes {bytes} bytes of memory, more than the {reserved} reserved for it"
            )),
        });
        // What loading took and the key does not: without the lock, and before anyone is told.
        reservation.shrink_to(loaded.as_ref().map_or(0, |(_, bytes)| *bytes));
        let mut table = self.lock();
        let now = table.tick();
        let entry = table.used(&id);
        // Not in use by its loading any more before anyone is told that it is there.
        entry.users -= 1;
        match loaded {
            Ok((loaded, bytes)) => {
                entry.loads += 1;
                entry.last_used = now;
                entry.measured = Some(bytes);
                entry.load_ms =
                    Some(u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX));
                entry.from = loaded.from;
                entry.failure = None;
                entry.place = Place::Hot(loaded.key, reservation);
                self.tell(entry, Some(began_us));
            }
            Err(why) => {
                tracing::error!(circuit = &*entry.name, why, "a key cannot be loaded");
                entry.place = Place::Cold;
                entry.failure = Some(why);
            }
        }
        entry.changed.send_replace(());
        drop(table);
        self.budget.reconsider();
    }
}

// === impl KeyUse ===

impl KeyUse {
    /// Waits until the key is loaded.
    ///
    /// # Errors
    ///
    /// Why it could not be.
    pub(crate) async fn ready(&self) -> Result<Arc<dyn Key>, String> {
        let mut changed = {
            let mut table = self.inner.lock();
            table.used(&self.id).changed.subscribe()
        };
        loop {
            changed.borrow_and_update();
            {
                let mut table = self.inner.lock();
                let entry = table.used(&self.id);
                match &entry.place {
                    Place::Hot(key, _) => return Ok(key.clone()),
                    Place::Loading => {}
                    Place::Cold | Place::Warm(..) => {
                        let why = entry.failure.clone();
                        return Err(why.unwrap_or_else(|| "the key is not there".to_owned()));
                    }
                }
            }
            // The sender is in the table, which outlives this.
            let _ = changed.changed().await;
        }
    }
}

impl Drop for KeyUse {
    fn drop(&mut self) {
        {
            let mut table = self.inner.lock();
            let now = table.tick();
            let entry = table.used(&self.id);
            entry.users -= 1;
            entry.last_used = now;
        }
        self.inner.budget.reconsider();
    }
}
