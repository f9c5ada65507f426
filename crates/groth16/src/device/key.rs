//! A key on a device.

use std::fmt;
use std::sync::Arc;

use ark_std::rand::{CryptoRng, RngCore};
use proofmill_accelerator::{BasesId, Device, DeviceGroup, DeviceJob, Error, Scalars, Ticket};

use super::placement::{Offload, Placement};
use super::products::{PendingProducts, QuotientInput};
use crate::keys::bases::{HeldBases, share};
use crate::prover::stages::StageReport;
use crate::{Proof, ProveError, ResidentKey, SnarkCurve};

/// A resident key with a copy of its points on a device, for the parts of a proof where that is faster.
/// Dropping it evicts the points once the device is done with the jobs it has.
///
/// The key itself stays in the host's memory, so that the processors can prove with it if the device
/// fails; a pool of devices shares its points and takes no more.
pub struct DeviceKey<E: SnarkCurve> {
    key: Arc<ResidentKey<E>>,
    device: Arc<dyn Device>,
    placement: Placement,
    pub(super) a: Option<DeviceBases>,
    pub(super) b_g1: Option<DeviceBases>,
    pub(super) b_g2: Option<DeviceBases>,
    pub(super) l: Option<DeviceBases>,
    pub(super) h: Option<DeviceBases>,
}

/// Bases on a device, evicted on drop.
pub(super) struct DeviceBases {
    device: Arc<dyn Device>,
    id: BasesId,
}

// === impl DeviceKey ===

impl<E: SnarkCurve> DeviceKey<E> {
    /// Loads a key's points onto a device. `memory_limit` is the approximate limit in bytes for the points and their
    /// precomputed multiples; one copy of the points is loaded whatever the limit.
    ///
    /// # Errors
    ///
    /// [`ProveError::Prepared`] if the key holds prepared points only, [`ProveError::Device`].
    pub fn load(
        key: Arc<ResidentKey<E>>,
        device: Arc<dyn Device>,
        offload: Offload<'_>,
        memory_limit: usize,
    ) -> Result<Self, ProveError> {
        let placement = Placement::of(&key, &*device, offload)?;
        Self::place(key, device, placement, memory_limit)
    }

    /// Like [`load`](Self::load), with a given placement.
    ///
    /// # Errors
    ///
    /// As for [`load`](Self::load).
    pub fn place(
        key: Arc<ResidentKey<E>>,
        device: Arc<dyn Device>,
        placement: Placement,
        memory_limit: usize,
    ) -> Result<Self, ProveError> {
        let bytes = |placed: bool, bytes: usize| if placed { bytes } else { 0 };
        let total = bytes(placement.a, key.a.bytes())
            + bytes(placement.b_g1, key.b_g1.bytes())
            + bytes(placement.b_g2, key.b_g2.bytes())
            + bytes(placement.l, key.l.bytes())
            + bytes(placement.h, key.h.bytes());
        let loader = Loader {
            device: &device,
            total,
            memory_limit,
        };
        Ok(Self {
            a: loader.load(placement.a, &key.a)?,
            b_g1: loader.load(placement.b_g1, &key.b_g1)?,
            b_g2: loader.load(placement.b_g2, &key.b_g2)?,
            l: loader.load(placement.l, &key.l)?,
            h: loader.load(placement.h, &key.h)?,
            key,
            device,
            placement,
        })
    }

    /// The key.
    pub const fn key(&self) -> &Arc<ResidentKey<E>> {
        &self.key
    }

    /// The parts of a proof that the device computes.
    pub const fn placement(&self) -> Placement {
        self.placement
    }

    /// All steps of a proof, on the device and on all threads of the current rayon pool, which waits
    /// while only the device works. The proof is blinded: it reveals the public inputs and nothing
    /// else.
    ///
    /// # Errors
    ///
    /// As for [`Prover::prove`](crate::Prover::prove), and [`ProveError::Device`].
    pub fn prove(
        &self,
        z: &[E::ScalarField],
        rng: &mut (impl RngCore + CryptoRng),
    ) -> Result<(Proof<E>, Vec<StageReport>), ProveError> {
        let prover = self.key.prover();
        // The device multiplies while the processors evaluate.
        let products = self.multiply(z)?;
        let (evaluations, evaluated) = prover.evaluate(z)?;
        let started = PendingProducts::new(self, self.transform(evaluations.into())?, products);
        let (products, finished) = futures_executor::block_on(started.finish(z))?;
        let mut reports = vec![evaluated];
        reports.extend(finished);
        let (products, completed) = products.complete(&prover, z)?;
        reports.extend(completed);
        let (proof, assembled) = prover.assemble(&products, rng);
        reports.push(assembled);
        Ok((proof, reports))
    }

    /// Submits all that the device computes of a proof, and returns. Transforms come first, so that
    /// the device multiplies while the processors make the quotient of them.
    ///
    /// # Errors
    ///
    /// [`ProveError::Assignment`] if `z` is for another circuit, [`ProveError::Device`].
    pub fn start(
        &self,
        z: &[E::ScalarField],
        evaluated: impl Into<QuotientInput<E::ScalarField>>,
    ) -> Result<PendingProducts<'_, E>, ProveError> {
        self.key.prover().check_length(z)?;
        let quotient = self.transform(evaluated.into())?;
        Ok(PendingProducts::new(self, quotient, self.multiply(z)?))
    }

    /// Submits a product over `bases`.
    pub(super) fn submit(
        &self,
        bases: &DeviceBases,
        scalars: impl FnOnce() -> Scalars,
    ) -> Result<Ticket, Error> {
        self.run(DeviceJob::Msm {
            bases: bases.id,
            scalars: scalars(),
        })
    }

    /// Submits a job.
    pub(super) fn run(&self, job: DeviceJob) -> Result<Ticket, Error> {
        self.device.submit(job)
    }
}

impl<E: SnarkCurve> fmt::Debug for DeviceKey<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceKey")
            .field("device", &self.device.caps().name)
            .field("placement", &self.placement)
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

impl Drop for DeviceBases {
    fn drop(&mut self) {
        // A device that cannot evict has failed, and its memory is gone with it.
        drop(self.device.evict(self.id));
    }
}

/// Loads a key's queries on a device and divides the memory limit among them.
struct Loader<'a> {
    device: &'a Arc<dyn Device>,
    /// Bytes of all queries together.
    total: usize,
    memory_limit: usize,
}

// === impl Loader ===

impl Loader<'_> {
    /// Loads a query, with its share of the memory.
    fn load<G: DeviceGroup>(
        &self,
        placed: bool,
        bases: &HeldBases<G>,
    ) -> Result<Option<DeviceBases>, ProveError> {
        if !placed {
            return Ok(None);
        }
        let points = bases.shared().ok_or(ProveError::Prepared)?;
        let limit = share(self.memory_limit, bases.bytes(), self.total);
        Ok(Some(DeviceBases {
            id: self.device.load_bases(points, limit)?,
            device: Arc::clone(self.device),
        }))
    }
}
