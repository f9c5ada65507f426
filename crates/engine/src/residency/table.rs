//! The table of circuits and the tiers of their keys.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::load::MappedFiles;
use super::reclaim::Reclaimer;
use super::{CheckedMemory, KeySizes};
use crate::budget::{Budget, Reclaim, Reservation};
use crate::events::Events;
use crate::interface::{
    CircuitId, CircuitRef, CircuitSource, CircuitView, ConstraintsFrom, Error, EventKind, Tier,
};
use crate::key::{Key, KeyPolicy};
use crate::options::KeyForm;
use crate::registry::Registered;

/// The registered circuits and their keys. Clones share them.
#[derive(Clone)]
pub(crate) struct ResidencyTable {
    pub(super) inner: Arc<Inner>,
}

/// Facts about keys that survive a restart.
#[derive(Debug)]
pub(crate) struct StoredFacts {
    /// Keys whose points were checked.
    pub(crate) checked: CheckedMemory,
    /// Sizes of keys in memory.
    pub(crate) key_sizes: KeySizes,
}

pub(super) struct Inner {
    pub(super) budget: Budget,
    pub(super) events: Events,
    pub(super) pool: Arc<rayon::ThreadPool>,
    pub(super) stored_facts: StoredFacts,
    pub(super) form: KeyForm,
    pub(super) policy: KeyPolicy,
    /// Most registered circuits.
    limit: usize,
    table: Mutex<Table>,
}

#[derive(Default)]
pub(super) struct Table {
    pub(super) entries: HashMap<CircuitId, Entry>,
    names: BTreeMap<String, CircuitId>,
    /// A counter of uses; the most recently used key has the highest value.
    clock: u64,
    pub(super) evictions: u64,
}

pub(super) struct Entry {
    pub(super) circuit: Arc<Registered>,
    pub(super) name: Arc<str>,
    pub(super) place: KeyPlace,
    /// Number of holders of the key, including those that wait for it.
    pub(super) users: u64,
    /// Partitions of unfinished jobs that need the circuit.
    jobs: u64,
    pub(super) pinned: bool,
    pub(super) last_used: u64,
    /// Source of the matrices, at the last load or the next one.
    pub(super) from: ConstraintsFrom,
    /// The reason that the last load failed.
    pub(super) failure: Option<String>,
    /// Measured bytes of the hot key, if it was ever loaded.
    pub(super) measured: Option<u64>,
    /// Whether the key's points were checked before.
    pub(super) checked: bool,
    pub(super) loads: u64,
    pub(super) load_ms: Option<u64>,
    pub(super) evictions: u64,
    proofs: u64,
    /// Notified whenever `place` changes.
    pub(super) changed: watch::Sender<()>,
}

/// The place of a key. Fields are dropped in order: memory before its reservation.
pub(super) enum KeyPlace {
    Cold,
    Warm(MappedFiles, Reservation),
    Loading,
    Hot(Arc<dyn Key>, Reservation),
}

// === impl KeyPlace ===

impl KeyPlace {
    pub(super) fn tier(&self) -> Tier {
        match self {
            Self::Cold | Self::Loading => Tier::Cold,
            Self::Warm(..) => Tier::Warm,
            Self::Hot(..) => Tier::Hot,
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        match self {
            Self::Cold | Self::Loading => 0,
            Self::Warm(_, reservation) | Self::Hot(_, reservation) => reservation.bytes(),
        }
    }
}

// === impl Entry ===

impl Entry {
    fn new(circuit: Registered, inner: &Inner) -> Self {
        let stored_facts = &inner.stored_facts;
        let from = match &circuit.source {
            CircuitSource::Zkey(_) => ConstraintsFrom::Zkey,
            CircuitSource::System { .. } => ConstraintsFrom::Precompiled,
        };
        Self {
            name: circuit.name.as_str().into(),
            measured: stored_facts.key_sizes.hot(&circuit.id, inner.form),
            checked: stored_facts.checked.contains(&circuit.key_digest),
            circuit: Arc::new(circuit),
            place: KeyPlace::Cold,
            users: 0,
            jobs: 0,
            pinned: false,
            last_used: 0,
            from,
            failure: None,
            loads: 0,
            load_ms: None,
            evictions: 0,
            proofs: 0,
            changed: watch::channel(()).0,
        }
    }

    /// Whether its memory may be taken. A mapping may be taken even while requests wait for the key to be
    /// loaded: otherwise two such requests could each hold the memory that the other waits for.
    pub(super) fn is_idle(&self) -> bool {
        !self.pinned && (self.users == 0 || matches!(self.place, KeyPlace::Warm(..)))
    }

    /// Bytes of the hot key: measured, or else estimated.
    fn hot(&self, form: KeyForm) -> u64 {
        self.measured.unwrap_or_else(|| self.circuit.hot(form))
    }

    fn view(&self, inner: &Inner) -> CircuitView {
        let circuit = &self.circuit;
        let work = circuit.footprint(inner.form).peak();
        CircuitView {
            name: circuit.name.clone(),
            id: circuit.id,
            curve: circuit.curve.name(),
            variables: circuit.variables,
            public: circuit.public,
            domain: circuit.domain,
            source: circuit.source.clone(),
            from: self.from,
            tier: self.place.tier(),
            loading: matches!(self.place, KeyPlace::Loading),
            pinned: self.pinned,
            bytes: self.place.bytes(),
            hot_bytes: self.hot(inner.form),
            measured: self.measured.is_some(),
            work_bytes: work,
            needed_bytes: inner.needed(self, work),
            users: self.users,
            loads: self.loads,
            load_ms: self.load_ms,
            evictions: self.evictions,
            proofs: self.proofs,
        }
    }
}

// === impl Table ===

impl Table {
    pub(super) fn find(&mut self, circuit: &CircuitRef) -> Result<&mut Entry, Error> {
        let id = match circuit {
            CircuitRef::Id(id) => Some(*id),
            CircuitRef::Name(name) => self.names.get(name).copied(),
        };
        match id {
            Some(id) if self.entries.contains_key(&id) => Ok(self.used(&id)),
            _ => Err(Error::UnknownCircuit {
                circuit: circuit.clone(),
                known: self.names.keys().cloned().collect(),
            }),
        }
    }

    /// The entry of a circuit that is in use, and so cannot have been removed.
    pub(super) fn used(&mut self, id: &CircuitId) -> &mut Entry {
        self.entries
            .get_mut(id)
            .unwrap_or_else(|| unreachable!("a circuit in use is not forgotten"))
    }

    pub(super) fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }
}

// === impl ResidencyTable ===

impl ResidencyTable {
    pub(crate) fn new(
        budget: Budget,
        events: Events,
        pool: Arc<rayon::ThreadPool>,
        stored_facts: StoredFacts,
        form: KeyForm,
        policy: KeyPolicy,
        limit: usize,
    ) -> Self {
        let inner = Arc::new_cyclic(|weak| {
            let reclaimer: std::sync::Weak<dyn Reclaim> =
                weak.clone() as std::sync::Weak<Reclaimer>;
            budget.reclaim_from(reclaimer);
            Inner {
                budget,
                events,
                pool,
                stored_facts,
                form,
                policy,
                limit,
                table: Mutex::default(),
            }
        });
        Self { inner }
    }

    /// Registers a circuit. Returns false in the pair if the same circuit was registered under that name
    /// already.
    ///
    /// # Errors
    ///
    /// [`Error::NameTaken`], [`Error::Invalid`] if the circuit is registered under another name,
    /// [`Error::TooLarge`] at the limit of circuits.
    pub(crate) fn insert(&self, circuit: Registered) -> Result<(CircuitView, bool), Error> {
        let mut table = self.inner.lock();
        if let Some(id) = table.names.get(&circuit.name).copied() {
            if id != circuit.id {
                let name = circuit.name;
                return Err(Error::NameTaken { name, id });
            }
            return Ok((table.used(&id).view(&self.inner), false));
        }
        if let Some(entry) = table.entries.get(&circuit.id) {
            return Err(Error::Invalid(format!(
                "the circuit of {:?} is registered as {:?}: use that name",
                circuit.name, entry.name
            )));
        }
        if table.entries.len() >= self.inner.limit {
            return Err(Error::TooLarge {
                what: "the number of circuits",
                size: table.entries.len() as u64 + 1,
                limit: self.inner.limit as u64,
            });
        }
        table.names.insert(circuit.name.clone(), circuit.id);
        let entry = Entry::new(circuit, &self.inner);
        let view = entry.view(&self.inner);
        table.entries.insert(view.id, entry);
        Ok((view, true))
    }

    /// Registers a circuit again after a restart, with the sizes that were stored for it.
    ///
    /// # Errors
    ///
    /// As for [`insert`](Self::insert).
    pub(crate) fn insert_known(&self, mut circuit: Registered) -> Result<(), Error> {
        circuit.points = self.inner.stored_facts.key_sizes.points(&circuit.id);
        self.insert(circuit).map(drop)
    }

    /// Removes a circuit. Returns its precompiled file, if no other circuit uses that.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownCircuit`], [`Error::InUse`].
    pub(crate) fn remove(&self, name: &str) -> Result<Option<PathBuf>, Error> {
        let (removed, precompiled) = {
            let mut table = self.inner.lock();
            let entry = table.find(&CircuitRef::Name(name.to_owned()))?;
            let busy = entry.users + entry.jobs > 0 || matches!(entry.place, KeyPlace::Loading);
            if busy || entry.pinned {
                let why = if busy { "in use" } else { "pinned" };
                return Err(Error::InUse(name.to_owned(), why));
            }
            let id = entry.circuit.id;
            let precompiled = entry.circuit.precompiled.clone();
            table.names.remove(name);
            let removed = table.entries.remove(&id);
            let mut others = table.entries.values();
            let shared = others.any(|other| other.circuit.precompiled == precompiled);
            (removed, precompiled.filter(|_| !shared))
        };
        // Without the lock: giving memory back takes it.
        drop(removed);
        Ok(precompiled)
    }

    /// The registration of a circuit.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownCircuit`].
    pub(crate) fn circuit(&self, circuit: &CircuitRef) -> Result<Arc<Registered>, Error> {
        Ok(self.inner.lock().find(circuit)?.circuit.clone())
    }

    /// The current state of a circuit.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownCircuit`].
    pub(crate) fn view(&self, circuit: &CircuitRef) -> Result<CircuitView, Error> {
        Ok(self.inner.lock().find(circuit)?.view(&self.inner))
    }

    /// All circuits by name, and the number of evictions.
    pub(crate) fn views(&self) -> (Vec<CircuitView>, u64) {
        let table = self.inner.lock();
        let views = table.names.values().filter_map(|id| table.entries.get(id));
        let views = views.map(|entry| entry.view(&self.inner)).collect();
        (views, table.evictions)
    }

    /// Pins or unpins a key.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownCircuit`].
    pub(crate) fn pin(&self, circuit: &CircuitRef, pinned: bool) -> Result<CircuitView, Error> {
        let view = {
            let mut table = self.inner.lock();
            let entry = table.find(circuit)?;
            entry.pinned = pinned;
            entry.view(&self.inner)
        };
        self.inner.budget.reconsider();
        Ok(view)
    }

    /// Counts a partition of a job that needs a circuit, so that the circuit is not removed meanwhile.
    /// Returns the circuit's name; none if it is not registered.
    pub(crate) fn expect_job(&self, circuit: &CircuitId) -> Option<Arc<str>> {
        let mut table = self.inner.lock();
        let entry = table.entries.get_mut(circuit)?;
        entry.jobs += 1;
        Some(entry.name.clone())
    }

    /// Undoes one [`expect_job`](Self::expect_job).
    pub(crate) fn job_ended(&self, circuit: &CircuitId) {
        if let Some(entry) = self.inner.lock().entries.get_mut(circuit) {
            entry.jobs = entry.jobs.saturating_sub(1);
        }
    }

    /// Counts a proof that was delivered.
    pub(crate) fn proven(&self, circuit: &CircuitId) {
        if let Some(entry) = self.inner.lock().entries.get_mut(circuit) {
            entry.proofs += 1;
        }
    }

    /// The budget in which its keys are counted.
    pub(crate) fn budget(&self) -> &Budget {
        &self.inner.budget
    }

    /// The form in which keys are held.
    pub(crate) fn form(&self) -> KeyForm {
        self.inner.form
    }

    /// Stores the sizes counted in a circuit's key. Writes a file, so it must not be called from the
    /// scheduler's task.
    pub(crate) fn remember_points(&self, circuit: &Registered) {
        if let Some(points) = circuit.points {
            self.inner
                .stored_facts
                .key_sizes
                .counted(&circuit.id, points);
        }
    }

    /// Bytes needed for a proof of a circuit that uses `work` bytes, if its key is not loaded.
    pub(crate) fn needed(&self, circuit: Registered, work: u64) -> u64 {
        self.inner.needed(&Entry::new(circuit, &self.inner), work)
    }
}

// === impl Inner ===

impl Inner {
    /// Most bytes that a key takes while it is loaded.
    pub(super) fn loading(&self, entry: &Entry) -> u64 {
        let threads = self.pool.current_num_threads();
        entry.circuit.loading(self.form, threads, entry.checked)
    }

    /// Most bytes that loading a key and then `work` bytes of work take at once. The work begins after the
    /// temporary memory of loading has been given back.
    pub(super) fn needed(&self, entry: &Entry, work: u64) -> u64 {
        self.loading(entry).max(entry.hot(self.form) + work)
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Table> {
        // No code panics under this lock in the middle of a change, so a poisoned lock is safe to use.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends an event with a key's current tier.
    pub(super) fn send_event(&self, entry: &Entry, began_us: Option<u64>) {
        self.events.send(EventKind::Key {
            circuit: entry.circuit.id,
            name: entry.name.clone(),
            tier: entry.place.tier(),
            bytes: entry.place.bytes(),
            began_us,
        });
    }
}
