//! Loading and evicting keys on request.

use super::load;
use super::table::{KeyPlace, ResidencyTable};
use crate::interface::{CircuitRef, CircuitView, Error, Owner, Priority, Tier};

// === impl ResidencyTable ===

impl ResidencyTable {
    /// Brings a key to a tier, unless it is there or nearer.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownCircuit`], [`Error::Impossible`], [`Error::Circuit`].
    pub(crate) async fn preload(
        &self,
        circuit: &CircuitRef,
        tier: Tier,
    ) -> Result<CircuitView, Error> {
        let registered = self.circuit(circuit)?;
        let name = CircuitRef::Name(registered.name.clone());
        match tier {
            Tier::Cold => {}
            Tier::Warm => self.warm(circuit).await?,
            Tier::Hot => {
                let owner = Owner::Key(registered.id);
                let acquired = self
                    .acquire(registered.id, 0, owner, Priority::Normal)
                    .await;
                let (held, nothing) = acquired.map_err(|error| error.into_error(&name))?;
                drop(nothing);
                held.ready().await.map_err(Error::Circuit)?;
            }
        }
        self.view(circuit)
    }

    /// Evicts a key from memory and returns the number of bytes given back.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownCircuit`], [`Error::InUse`].
    pub(crate) fn evict(&self, circuit: &CircuitRef) -> Result<u64, Error> {
        let evicted = {
            let mut table = self.inner.lock();
            let entry = table.find(circuit)?;
            if !entry.is_idle() {
                let why = if entry.pinned { "pinned" } else { "in use" };
                return Err(Error::InUse(entry.circuit.name.clone(), why));
            }
            let id = entry.circuit.id;
            match entry.place {
                KeyPlace::Cold | KeyPlace::Loading => return Ok(0),
                KeyPlace::Warm(..) | KeyPlace::Hot(..) => self.inner.evict(&mut table, &id),
            }
        };
        let bytes = evicted.bytes();
        // Without the lock: giving memory back takes it.
        drop(evicted);
        Ok(bytes)
    }

    async fn warm(&self, circuit: &CircuitRef) -> Result<(), Error> {
        let registered = self.circuit(circuit)?;
        let name = CircuitRef::Name(registered.name.clone());
        let owner = Owner::Key(registered.id);
        let bytes = registered.file_bytes;
        let reserved = self
            .inner
            .budget
            .reserve(owner, bytes, Priority::Normal)
            .await;
        let reservation = reserved.map_err(|over| Error::Impossible {
            what: format!("mapping the key of {name}"),
            needed: over.needed,
            total: over.total,
            pinned: 0,
        })?;
        let inner = self.inner.clone();
        let began_us = inner.events.now();
        let mapped =
            tokio::task::spawn_blocking(move || inner.pool.install(|| load::map(&registered)));
        let files = mapped
            .await
            .map_err(|error| Error::Circuit(error.to_string()))?
            .map_err(Error::Circuit)?;
        let mut spare = Some((files, reservation));
        {
            let mut table = self.inner.lock();
            let entry = table.find(circuit)?;
            if matches!(entry.place, KeyPlace::Cold)
                && let Some((files, reservation)) = spare.take()
            {
                entry.place = KeyPlace::Warm(files, reservation);
                entry.changed.send_replace(());
                self.inner.send_event(entry, Some(began_us));
            }
        }
        // Without the lock. Spare bytes exist if the key came nearer meanwhile.
        drop(spare);
        self.inner.budget.reconsider();
        Ok(())
    }
}
