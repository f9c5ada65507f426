//! Acquiring a key: one reservation of memory for the key and for the work with it.

use std::sync::Arc;
use std::time::Instant;

use proofmill_groth16::QueryPoints;
use tokio::sync::oneshot;

use super::load::{self, Loaded, MappedFiles};
use super::table::{Entry, Inner, KeyPlace, ResidencyTable, StoredFacts};
use crate::budget::{OverBudget, Reservation};
use crate::interface::{CircuitId, CircuitRef, Error, Mib, Owner, Priority};
use crate::key::Key;
use crate::registry::{KeyPoints, Registered};

/// A use of a key. The key is not evicted while this exists.
pub(crate) struct KeyUse {
    inner: Arc<Inner>,
    id: CircuitId,
    /// The part of the work's memory that loading the key uses first; sent before the key is ready.
    remaining: Option<oneshot::Receiver<Reservation>>,
}

/// Reasons that a key and the memory for work with it cannot be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AcquireError {
    /// The circuit is no longer registered.
    Unknown,
    /// The memory would never be available: bytes needed, size of the budget, bytes of pinned keys.
    Impossible {
        needed: u64,
        total: u64,
        pinned: u64,
    },
}

/// The current need of a request for a key.
struct Need {
    /// The bytes to reserve.
    bytes: u64,
    /// The part of them for loading; none if the key is loaded or being loaded.
    loading: Option<Loading>,
}

/// The memory for loading a key.
#[derive(Clone, Copy)]
struct Loading {
    /// The bytes to reserve for it.
    bytes: u64,
    /// Bytes of its mapping, which are reserved already.
    mapped: u64,
}

/// A key that is being loaded, the memory reserved for that, and the receiver of the rest.
struct Load {
    id: CircuitId,
    reservation: Reservation,
    began_us: u64,
    began: Instant,
    remaining: RemainingMemory,
}

/// Bytes reserved for work with a key, which loading the key uses first.
struct RemainingMemory {
    bytes: u64,
    owner: Owner,
    to: oneshot::Sender<Reservation>,
}

// === impl AcquireError ===

impl AcquireError {
    /// The error as reported for this circuit.
    pub(crate) fn into_error(self, circuit: &CircuitRef) -> Error {
        match self {
            Self::Unknown => Error::UnknownCircuit {
                circuit: circuit.clone(),
                known: Vec::new(),
            },
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

// === impl ResidencyTable ===

impl ResidencyTable {
    /// Holds a key, and reserves `work` bytes for work with it and, if it is not loaded, the memory for
    /// loading it; then begins to load it. The future may be dropped at any time.
    ///
    /// Loading and work do not overlap, so the larger of two sums is reserved: the memory for loading, and
    /// the memory of key and work. If the key is being loaded, the returned reservation may have less than
    /// `work` bytes; the rest comes with the key, see [`KeyUse::take_remaining`].
    ///
    /// To exclude deadlocks, only one caller at a time may wait here with `work` above zero. It holds a key
    /// that may be in memory and nothing else. Every other holder of memory has all that it needs, or gets
    /// the rest when a key is loaded that needs no memory from others; it then gives its memory back.
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
        let mut held = self.hold(id).ok_or(AcquireError::Unknown)?;
        let mut changed = {
            let mut table = self.inner.lock();
            table.used(&id).changed.subscribe()
        };
        loop {
            changed.borrow_and_update();
            let need = self.inner.need(id, work)?;
            let mut reservation = tokio::select! {
                biased;
                reserved = self.inner.budget.reserve(owner, need.bytes, priority) => {
                    reserved.map_err(|OverBudget { needed, total }| {
                        AcquireError::Impossible { needed, total, pinned: 0 }
                    })?
                }
                // The key came, or loading it failed, so the need has changed.
                _ = changed.changed() => continue,
            };
            let Some(loading) = need.loading else {
                return Ok((held, reservation));
            };
            let key = reservation.split(loading.bytes, Owner::Key(id));
            let (to, remaining) = oneshot::channel();
            let bytes = work.saturating_sub(reservation.bytes());
            let remaining_memory = RemainingMemory { bytes, owner, to };
            if self
                .inner
                .clone()
                .begin_loading(id, key, loading, remaining_memory)
            {
                held.remaining = Some(remaining);
                return Ok((held, reservation));
            }
            // Another task began to load it, or its mapping was evicted, so the need has changed.
        }
    }

    /// Checks that a partition that uses `work` bytes can ever get them.
    ///
    /// # Errors
    ///
    /// [`AcquireError`].
    pub(crate) fn check_possible(&self, id: CircuitId, work: u64) -> Result<(), AcquireError> {
        let mut table = self.inner.lock();
        let entry = table.entries.get_mut(&id).ok_or(AcquireError::Unknown)?;
        // A key that is loaded now may have to be loaded again.
        let needed = self.inner.needed(entry, work);
        self.inner.check_pinned(&table, id, needed)
    }

    /// Whether a key is loaded or being loaded.
    pub(crate) fn has(&self, id: CircuitId) -> bool {
        let table = self.inner.lock();
        let entry = table.entries.get(&id);
        entry.is_some_and(|entry| matches!(entry.place, KeyPlace::Hot(..) | KeyPlace::Loading))
    }

    /// Whether loading a key, with `work` bytes of work, needs more memory than is free.
    pub(crate) fn must_evict_for(&self, id: CircuitId, work: u64) -> bool {
        let table = self.inner.lock();
        let entry = table.entries.get(&id);
        let need = entry.map(|entry| self.inner.need_of(entry, work));
        need.is_some_and(|need| need.loading.is_some() && need.bytes > self.inner.budget.free())
    }

    /// Holds a key, so that it is not evicted; none if the circuit is not registered.
    fn hold(&self, id: CircuitId) -> Option<KeyUse> {
        let mut table = self.inner.lock();
        let now = table.tick();
        let entry = table.entries.get_mut(&id)?;
        entry.users += 1;
        entry.last_used = now;
        Some(KeyUse {
            inner: self.inner.clone(),
            id,
            remaining: None,
        })
    }
}

// === impl Inner ===

impl Inner {
    /// The need of a request for work with a held key.
    fn need(&self, id: CircuitId, work: u64) -> Result<Need, AcquireError> {
        let mut table = self.lock();
        let need = self.need_of(table.used(&id), work);
        self.check_pinned(&table, id, need.bytes)?;
        Ok(need)
    }

    fn need_of(&self, entry: &Entry, work: u64) -> Need {
        if matches!(entry.place, KeyPlace::Hot(..) | KeyPlace::Loading) {
            let loading = None;
            return Need {
                bytes: work,
                loading,
            };
        }
        // The mapping becomes a part of the memory for loading.
        let mapped = entry.place.bytes();
        Need {
            bytes: self.needed(entry, work).saturating_sub(mapped),
            loading: Some(Loading {
                bytes: self.loading(entry).saturating_sub(mapped),
                mapped,
            }),
        }
    }

    /// Checks that so many bytes fit beside the pinned keys of other circuits.
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

    /// Begins to load a key with the memory reserved for it. Returns false if the key's state is no longer
    /// the one for which that memory was computed.
    fn begin_loading(
        self: Arc<Self>,
        id: CircuitId,
        mut reservation: Reservation,
        loading: Loading,
        remaining: RemainingMemory,
    ) -> bool {
        let (circuit, files) = {
            let mut table = self.lock();
            let entry = table.used(&id);
            let is_as_it_was = match &entry.place {
                KeyPlace::Cold => loading.mapped == 0,
                KeyPlace::Warm(_, mapped) => loading.mapped == mapped.bytes(),
                KeyPlace::Loading | KeyPlace::Hot(..) => false,
            };
            if !is_as_it_was {
                // The lock is released before the reservation is given back.
                drop(table);
                return false;
            }
            let files = match std::mem::replace(&mut entry.place, KeyPlace::Loading) {
                KeyPlace::Warm(files, mapped) => {
                    reservation.merge(mapped);
                    Some(files)
                }
                _ => None,
            };
            entry.users += 1;
            entry.changed.send_replace(());
            (entry.circuit.clone(), files)
        };
        let load = Load {
            id,
            reservation,
            began_us: self.events.now(),
            began: Instant::now(),
            remaining,
        };
        // A task of its own: the request that came first may be dropped, and others still need the key.
        tokio::spawn(async move {
            let (inner, work) = (self.clone(), circuit.clone());
            let loaded = tokio::task::spawn_blocking(move || inner.load(&work, files));
            let loaded = loaded
                .await
                .unwrap_or_else(|error| Err(format!("loading the key ended early: {error}")));
            self.loaded(load, loaded);
        });
        true
    }

    /// Loads a key, and records its size.
    fn load(&self, circuit: &Registered, files: Option<MappedFiles>) -> Result<Loaded, String> {
        let StoredFacts { checked, key_sizes } = &self.stored_facts;
        let load = || load::load(circuit, self.form, self.policy, checked, files);
        let loaded = self.pool.install(load)?;
        if let Some(points) = counted(circuit, loaded.key.points()).points {
            key_sizes.counted(&circuit.id, points);
        }
        key_sizes.measured(&circuit.id, self.form, loaded.key.bytes());
        Ok(loaded)
    }

    fn loaded(&self, load: Load, loaded: Result<Loaded, String>) {
        let Load {
            id,
            mut reservation,
            began_us,
            began,
            remaining,
        } = load;
        let reserved = reservation.bytes();
        let loaded = loaded.and_then(|loaded| match loaded.key.bytes() {
            bytes if bytes <= reserved => Ok((loaded, bytes)),
            // Never observed. Without this check the budget would be wrong from here on.
            bytes => Err(format!(
                "the key takes {} of memory, more than the {} reserved for it",
                Mib(bytes),
                Mib(reserved)
            )),
        });
        // Memory of loading that the key does not need is given back, without the lock and before waiters
        // are woken: first to the request that reserved it, which may have gone.
        if let Ok((_, bytes)) = &loaded {
            let spare = reserved - bytes;
            drop(
                remaining
                    .to
                    .send(reservation.split(spare.min(remaining.bytes), remaining.owner)),
            );
        }
        reservation.shrink_to(loaded.as_ref().map_or(0, |(_, bytes)| *bytes));
        let mut table = self.lock();
        let now = table.tick();
        let entry = table.used(&id);
        // The loading task ends its use before waiters learn that the key is there.
        entry.users -= 1;
        match loaded {
            Ok((loaded, bytes)) => {
                entry.loads += 1;
                entry.last_used = now;
                entry.measured = Some(bytes);
                entry.checked = true;
                entry.circuit = Arc::new(counted(&entry.circuit, loaded.key.points()));
                entry.load_ms =
                    Some(u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX));
                entry.from = loaded.from;
                entry.failure = None;
                entry.place = KeyPlace::Hot(loaded.key, reservation);
                self.send_event(entry, Some(began_us));
            }
            Err(why) => {
                tracing::error!(circuit = &*entry.name, why, "a key cannot be loaded");
                entry.place = KeyPlace::Cold;
                entry.failure = Some(why);
            }
        }
        entry.changed.send_replace(());
        drop(table);
        self.budget.reconsider();
    }
}

/// A copy of the circuit with these counts of points.
fn counted(circuit: &Registered, queries: QueryPoints) -> Registered {
    let matrices = circuit.points.map_or(circuit.file_bytes, |it| it.matrices);
    Registered {
        points: Some(KeyPoints { queries, matrices }),
        ..circuit.clone()
    }
}

// === impl KeyUse ===

impl KeyUse {
    /// Waits until the key is loaded.
    ///
    /// # Errors
    ///
    /// A message with the reason that loading failed.
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
                    KeyPlace::Hot(key, _) => return Ok(key.clone()),
                    KeyPlace::Loading => {}
                    KeyPlace::Cold | KeyPlace::Warm(..) => {
                        let why = entry.failure.clone();
                        return Err(why.unwrap_or_else(|| "the key is not there".to_owned()));
                    }
                }
            }
            // The sender is in the table, which lives longer than this future.
            let _ = changed.changed().await;
        }
    }

    /// The rest of the work's memory, which loading used first. Returned once, when the key is ready.
    pub(crate) fn take_remaining(&mut self) -> Option<Reservation> {
        self.remaining.take()?.try_recv().ok()
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
