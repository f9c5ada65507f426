//! A device with memory of its own, and the keys that are on it.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use proofmill_accelerator::{Device, Error, cpu};
use proofmill_groth16::Offload;

use crate::options::{AcceleratorOptions, OffloadRule};

/// A device that stages submit to, shared by them.
pub(crate) struct Accelerator {
    /// Its place among the engine's devices.
    pub(crate) number: usize,
    pub(crate) name: Arc<str>,
    pub(super) device: Arc<dyn Device>,
    /// The processors, to compare costs with; none to have it compute all that it can.
    cpu: Option<Arc<dyn Device>>,
    /// The keys on it, who was used last last.
    keys: Mutex<Vec<Weak<dyn Resident>>>,
    /// Held while a key is brought there: by one partition, for all that want it.
    loading: Mutex<()>,
}

/// A key that may be on accelerators.
pub(super) trait Resident: Send + Sync {
    /// Takes it from an accelerator, unless it is in use there; false if nothing was freed.
    fn leave(&self, accelerator: usize) -> bool;
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
            OffloadRule::WhenItPays => Some(Arc::new(cpu()?)),
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

    /// How long the device has worked.
    pub(crate) fn busy(&self) -> Duration {
        self.device.busy()
    }

    pub(super) fn offload(&self) -> Offload<'_> {
        match &self.cpu {
            None => Offload::Always,
            Some(cpu) => Offload::WhenFasterThan(&**cpu),
        }
    }

    /// The bytes of its memory that one key may take with multiples of its points: so that several
    /// find room. A key whose points alone take more has them there without.
    pub(super) fn key_limit(&self) -> usize {
        let memory = self.device.caps().memory.unwrap_or(0);
        usize::try_from(memory / 4).unwrap_or(usize::MAX)
    }

    /// Waits for one's turn to bring a key there.
    pub(super) fn turn(&self) -> MutexGuard<'_, ()> {
        // What it guards is not in the lock.
        self.loading.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a key that is there is used.
    pub(super) fn used(&self, key: Weak<dyn Resident>) {
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        keys.retain(|other| other.strong_count() > 0 && !Weak::ptr_eq(other, &key));
        keys.push(key);
    }

    /// Evicts the key that was used longest ago and is not in use; false if there is none. It takes
    /// the [`turn`](Self::turn), so that nobody begins to use that key meanwhile.
    pub(super) fn evict_one(&self, _turn: &MutexGuard<'_, ()>) -> bool {
        let keys: Vec<_> = {
            let keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
            keys.iter().filter_map(Weak::upgrade).collect()
        };
        // Without the lock: evicting waits for the device.
        keys.iter().any(|key| key.leave(self.number))
    }
}

impl fmt::Debug for Accelerator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.name)
    }
}
