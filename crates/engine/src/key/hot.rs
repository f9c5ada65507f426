//! A loaded key over one of the curves.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use proofmill_accelerator::Error;
use proofmill_groth16::{
    DeviceKey, PreparedVerifyingKey, ProveError, QueryPoints, ResidentKey, SnarkCurve, mirage,
};

use super::accelerator::{Accelerator, Resident};
use super::traits::{Key, Work};
use super::work::TypedWork;
use crate::interface::{AnyProof, ProofOf};

/// A key over the curve `E`.
pub(crate) struct HotKey<E: SnarkCurve> {
    /// The plain key, with which every proof is made.
    pub(super) key: Arc<ResidentKey<E>>,
    pub(super) verifier: Verifier<E>,
    knows_constraints: bool,
    /// The same key in the memory of accelerators, by their numbers.
    on: Mutex<HashMap<usize, Arc<DeviceKey<E>>>>,
}

/// The means by which proofs with a key are verified.
pub(super) enum Verifier<E: SnarkCurve> {
    /// By the verifying key alone.
    Plain(PreparedVerifyingKey<E>),
    /// A key of Mirage: with the commitment to the committed values, without randomness. Whoever knows the randomness
    /// of another commitment to them completes the proof ([`mirage::complete`]).
    Committed {
        key: mirage::ResidentKey<E>,
        verifying: mirage::PreparedVerifyingKey<E>,
    },
}

// === impl HotKey ===

impl<E: SnarkCurve> HotKey<E> {
    pub(crate) fn new(key: ResidentKey<E>, knows_constraints: bool) -> Self {
        let verifier = Verifier::Plain(PreparedVerifyingKey::from(key.vk().clone()));
        Self::with(Arc::new(key), verifier, knows_constraints)
    }

    /// A key of Mirage, whose constraints are known: its file has none.
    pub(crate) fn committed(key: mirage::ResidentKey<E>) -> Self {
        let verifying = mirage::PreparedVerifyingKey::from(key.vk());
        let plain = Arc::clone(key.plain());
        Self::with(plain, Verifier::Committed { key, verifying }, true)
    }

    fn with(key: Arc<ResidentKey<E>>, verifier: Verifier<E>, knows_constraints: bool) -> Self {
        Self {
            key,
            verifier,
            knows_constraints,
            on: Mutex::default(),
        }
    }

    /// The key in an accelerator's memory. It is loaded there first if necessary, and evicts the least
    /// recently used keys if there is no room.
    pub(super) fn on(
        self: &Arc<Self>,
        accelerator: &Accelerator,
    ) -> Result<Arc<DeviceKey<E>>, ProveError> {
        let loading = accelerator.lock_loading();
        let resident = self.lock().get(&accelerator.number).cloned();
        let key = match resident {
            Some(key) => key,
            None => {
                let key = Arc::new(self.load(accelerator, &loading)?);
                self.lock().insert(accelerator.number, key.clone());
                key
            }
        };
        let this: Weak<Self> = Arc::downgrade(self);
        accelerator.mark_used(this);
        Ok(key)
    }

    fn load(
        &self,
        accelerator: &Accelerator,
        loading: &MutexGuard<'_, ()>,
    ) -> Result<DeviceKey<E>, ProveError> {
        let mut limit = accelerator.key_limit();
        loop {
            let (key, device) = (self.key.clone(), accelerator.device.clone());
            match DeviceKey::load(key, device, accelerator.offload(), limit) {
                Err(ProveError::Device(Error::OutOfMemory { .. }))
                    if accelerator.evict_one(loading) => {}
                // Last resort: the points without multiples.
                Err(ProveError::Device(Error::OutOfMemory { .. })) if limit > 0 => limit = 0,
                loaded => return loaded,
            }
        }
    }

    /// Whether any accelerator that has the key computes its transforms.
    pub(super) fn transforms_on_accelerator(&self) -> bool {
        let on = self.lock();
        on.values().any(|key| key.placement().transforms)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<usize, Arc<DeviceKey<E>>>> {
        // No code panics under this lock in the middle of a change, so a poisoned lock is safe to use.
        self.on.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<E: SnarkCurve> Key for HotKey<E>
where
    AnyProof: From<ProofOf<E>>,
{
    fn bytes(&self) -> u64 {
        let bytes = match &self.verifier {
            Verifier::Plain(_) => self.key.bytes(),
            Verifier::Committed { key, .. } => key.bytes(),
        };
        bytes as u64
    }

    fn points(&self) -> QueryPoints {
        self.key.points()
    }

    fn work(self: Arc<Self>) -> Box<dyn Work> {
        Box::new(TypedWork::new(self))
    }

    fn knows_constraints(&self) -> bool {
        self.knows_constraints
    }
}

impl<E: SnarkCurve> Resident for HotKey<E> {
    fn evict_from(&self, accelerator: usize) -> bool {
        let idle = {
            let mut on = self.lock();
            let idle = |key: &Arc<DeviceKey<E>>| Arc::strong_count(key) == 1;
            if on.get(&accelerator).is_some_and(idle) {
                on.remove(&accelerator)
            } else {
                None
            }
        };
        // Without the lock: evicting waits for the device.
        idle.is_some()
    }
}
