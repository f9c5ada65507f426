//! Using a key: memory for it and for the work with it, in one reservation.

use std::sync::Arc;
use std::time::Instant;

use proofmill_groth16::QueryPoints;
use tokio::sync::oneshot;

use super::load::{self, Loaded, MappedFiles};
use super::table::{Entry, Inner, Place, Remembered, Residency};
use crate::budget::{OverBudget, Reservation};
use crate::interface::{CircuitId, CircuitRef, Error, Mib, Owner, Priority};
use crate::key::Key;
use crate::registry::{KeyPoints, Registered};

/// A key that is not evicted as long as this is held.
pub(crate) struct KeyUse {
    inner: Arc<Inner>,
    id: CircuitId,
    /// What loading the key takes and work with it may have afterwards: it comes before the key is ready.
    rest: Option<oneshot::Receiver<Reservation>>,
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
    /// What loading takes of them; none if the key is there or on its way.
    loading: Option<Loading>,
}

/// The memory that loading a key takes.
#[derive(Clone, Copy)]
struct Loading {
    /// The bytes to reserve for it.
    bytes: u64,
    /// The bytes that are mapped of it, and reserved.
    mapped: u64,
}

/// A key that is being loaded, what is reserved for that, and whom the rest of it is for.
struct Load {
    id: CircuitId,
    reservation: Reservation,
    began_us: u64,
    began: Instant,
    rest: Rest,
}

/// Bytes that were reserved for work with a key, and that loading it has first.
struct Rest {
    bytes: u64,
    owner: Owner,
    to: oneshot::Sender<Reservation>,
}

// === impl AcquireError ===

impl AcquireError {
    /// As an error about the circuit of this name.
    pub(crate) fn about(self, circuit: &CircuitRef) -> Error {
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

// === impl Residency ===

impl Residency {
    /// Holds a key, and reserves `work` bytes for work with it and, if it is not there, what loading
    /// it takes; then begins to load it. The future may be dropped at any time.
    ///
    /// Loading and work are not at the same time: what is reserved is the larger of what loading takes and
    /// what the key and the work take. Of a key that is being loaded, less than `work` may be returned: the
    /// rest is there when the key is, see [`KeyUse::take_rest`].
    ///
    /// Who waits here holds a key that may be in memory and nothing else, so there must be only one
    /// who waits with `work` above zero: everyone else who holds memory then has all that he needs, or gets
    /// it when a key is loaded that nobody needs to give memory back for, and gives it back.
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
                // It came, or another failed to load it: what is needed is another amount.
                _ = changed.changed() => continue,
            };
            let Some(loading) = need.loading else {
                return Ok((held, reservation));
            };
            let key = reservation.split(loading.bytes, Owner::Key(id));
            let (to, rest) = oneshot::channel();
            let bytes = work.saturating_sub(reservation.bytes());
            let rest_of = Rest { bytes, owner, to };
            if self.inner.clone().begin_loading(id, key, loading, rest_of) {
                held.rest = Some(rest);
                return Ok((held, reservation));
            }
            // Meanwhile another began to load it, or its mapping was taken: other bytes are needed.
        }
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
        let needed = self.inner.needed(entry, work);
        self.inner.check_pinned(&table, id, needed)
    }

    /// Whether a key is in memory, or on its way.
    pub(crate) fn has(&self, id: CircuitId) -> bool {
        let table = self.inner.lock();
        let entry = table.entries.get(&id);
        entry.is_some_and(|entry| matches!(entry.place, Place::Hot(..) | Place::Loading))
    }

    /// Whether loading a key, and `work` bytes of work with it, take more than is free.
    pub(crate) fn must_evict_for(&self, id: CircuitId, work: u64) -> bool {
        let table = self.inner.lock();
        let entry = table.entries.get(&id);
        let need = entry.map(|entry| self.inner.need_of(entry, work));
        need.is_some_and(|need| need.loading.is_some() && need.bytes > self.inner.budget.free())
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
            rest: None,
        })
    }
}

// === impl Inner ===

impl Inner {
    /// What it takes to work with a key that is held.
    fn need(&self, id: CircuitId, work: u64) -> Result<Need, AcquireError> {
        let mut table = self.lock();
        let need = self.need_of(table.used(&id), work);
        self.check_pinned(&table, id, need.bytes)?;
        Ok(need)
    }

    fn need_of(&self, entry: &Entry, work: u64) -> Need {
        if matches!(entry.place, Place::Hot(..) | Place::Loading) {
            let loading = None;
            return Need {
                bytes: work,
                loading,
            };
        }
        // What is mapped becomes a part of what loading takes.
        let mapped = entry.place.bytes();
        Need {
            bytes: self.needed(entry, work).saturating_sub(mapped),
            loading: Some(Loading {
                bytes: self.loading(entry).saturating_sub(mapped),
                mapped,
            }),
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

    /// Loads a key with what was reserved for it; not if it is not as it was when that was found to be
    /// enough.
    fn begin_loading(
        self: Arc<Self>,
        id: CircuitId,
        mut reservation: Reservation,
        loading: Loading,
        rest: Rest,
    ) -> bool {
        let (circuit, files) = {
            let mut table = self.lock();
            let entry = table.used(&id);
            let is_as_it_was = match &entry.place {
                Place::Cold => loading.mapped == 0,
                Place::Warm(_, mapped) => loading.mapped == mapped.bytes(),
                Place::Loading | Place::Hot(..) => false,
            };
            if !is_as_it_was {
                // The reservation is given back after the lock is.
                drop(table);
                return false;
            }
            let files = match std::mem::replace(&mut entry.place, Place::Loading) {
                Place::Warm(files, mapped) => {
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
            rest,
        };
        // Nobody's request: whoever asked first may go, the others still want it.
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

    /// Loads a key, and remembers what it takes.
    fn load(&self, circuit: &Registered, files: Option<MappedFiles>) -> Result<Loaded, String> {
        let Remembered { checked, figures } = &self.remembered;
        let load = || load::load(circuit, self.form, self.policy, checked, files);
        let loaded = self.pool.install(load)?;
        if let Some(points) = counted(circuit, loaded.key.points()).points {
            figures.counted(&circuit.id, points);
        }
        figures.measured(&circuit.id, self.form, loaded.key.bytes());
        Ok(loaded)
    }

    fn loaded(&self, load: Load, loaded: Result<Loaded, String>) {
        let Load {
            id,
            mut reservation,
            began_us,
            began,
            rest,
        } = load;
        let reserved = reservation.bytes();
        let loaded = loaded.and_then(|loaded| match loaded.key.bytes() {
            bytes if bytes <= reserved => Ok((loaded, bytes)),
            // Never seen; without it the budget would be wrong from here on.
            bytes => Err(format!(
                "the key takes {} of memory, more than the {} reserved for it",
                Mib(bytes),
                Mib(reserved)
            )),
        });
        // What loading took and the key does not, without the lock and before anyone is told: first for whom
        // it was reserved. Whoever waited for it may have gone.
        if let Ok((_, bytes)) = &loaded {
            let spare = reserved - bytes;
            drop(
                rest.to
                    .send(reservation.split(spare.min(rest.bytes), rest.owner)),
            );
        }
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
                entry.checked = true;
                entry.circuit = Arc::new(counted(&entry.circuit, loaded.key.points()));
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

/// A circuit whose key has these points.
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

    /// What was reserved for work with the key, and loading it had first: once, when the key is ready.
    pub(crate) fn take_rest(&mut self) -> Option<Reservation> {
        self.rest.take()?.try_recv().ok()
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
