//! A device with memory of its own, and the keys in that memory.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use ark_ec::pairing::Pairing;
use proofmill_accelerator::{Device, DeviceField, DeviceGroup, Error, cpu};
use proofmill_groth16::{Curve, Offload, with_curve};

use crate::options::{AcceleratorOptions, OffloadRule};

/// An accelerator, shared by the partitions that submit to it.
pub(crate) struct Accelerator {
    /// The index of the accelerator in the engine's list of devices.
    pub(crate) number: usize,
    pub(crate) name: Arc<str>,
    pub(super) device: Arc<dyn Device>,
    /// The processors, to compare costs with; none if the accelerator computes all that it can.
    cpu: Option<Arc<dyn Device>>,
    /// The keys in its memory, least recently used first.
    keys: Mutex<Vec<Weak<dyn Resident>>>,
    /// Held while a key is brought to the device, so that this is done once for all partitions that wait
    /// for it.
    loading: Mutex<()>,
}

/// A key that can be in the memory of accelerators.
pub(super) trait Resident: Send + Sync {
    /// Removes the key from an accelerator unless it is in use there. Returns whether memory was freed.
    fn evict_from(&self, accelerator: usize) -> bool;
}

// === impl Accelerator ===

impl Accelerator {
    pub(crate) fn new(
        number: usize,
        name: &str,
        options: &AcceleratorOptions,
    ) -> Result<Self, Error> {
        let cpu: Option<Arc<dyn Device>> = match options.offload {
            OffloadRule::Always => None,
            OffloadRule::WhenFaster => Some(Arc::new(cpu()?)),
        };
        Ok(Self {
            number,
            name: name.into(),
            device: options.device.clone(),
            cpu,
            keys: Mutex::default(),
            loading: Mutex::default(),
        })
    }

    /// Whether the device can do anything for proofs over this curve.
    pub(crate) fn serves(&self, curve: Curve) -> bool {
        let caps = self.device.caps();
        with_curve!(curve, E => {
            let groups = [<E as Pairing>::G1::GROUP, <E as Pairing>::G2::GROUP];
            let field = <<E as Pairing>::ScalarField as DeviceField>::FIELD;
            caps.fields.contains(&field) || groups.iter().any(|it| caps.groups.contains(it))
        })
    }

    /// Total time that the device has worked.
    pub(crate) fn busy(&self) -> Duration {
        self.device.busy()
    }

    pub(super) fn offload(&self) -> Offload<'_> {
        match &self.cpu {
            None => Offload::Always,
            Some(cpu) => Offload::WhenFasterThan(&**cpu),
        }
    }

    /// Most bytes of device memory for one key with multiples of its points: a quarter of the memory, so
    /// that several keys fit. A key whose plain points take more is held there without multiples.
    pub(super) fn key_limit(&self) -> usize {
        let memory = self.device.caps().memory.unwrap_or(0);
        usize::try_from(memory / 4).unwrap_or(usize::MAX)
    }

    /// Waits until no other partition loads a key on the device, and keeps others from it until the guard
    /// is dropped.
    pub(super) fn lock_loading(&self) -> MutexGuard<'_, ()> {
        // The lock guards no data, so a poisoned one is as good.
        self.loading.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that a key on the device is used.
    pub(super) fn mark_used(&self, key: Weak<dyn Resident>) {
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        keys.retain(|other| other.strong_count() > 0 && !Weak::ptr_eq(other, &key));
        keys.push(key);
    }

    /// Evicts the least recently used key that is not in use. Returns false if there is none. The argument
    /// proves that the caller holds the lock of [`lock_loading`](Self::lock_loading), so that no partition
    /// begins to use that key in the meantime.
    pub(super) fn evict_one(&self, _loading: &MutexGuard<'_, ()>) -> bool {
        let keys: Vec<_> = {
            let keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
            keys.iter().filter_map(Weak::upgrade).collect()
        };
        // Without the lock: evicting waits for the device.
        keys.iter().any(|key| key.evict_from(self.number))
    }
}

impl fmt::Debug for Accelerator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.name)
    }
}
