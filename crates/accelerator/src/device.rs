//! The interface of a device: capabilities, jobs and their outcomes.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::cost::Work;
use crate::error::Error;
use crate::group::{DeviceField, DeviceGroup, Group, Points, ScalarField, Scalars, Sum, Transform};
use crate::ticket::Ticket;

/// A device that multiplies points and transforms vectors, such as the CPU or a CUDA card.
///
/// An implementation outside this crate makes its tickets and ids with [`ticket`](crate::ticket) and
/// [`BasesId::fresh`].
///
/// Jobs run in the order of their submission. Any thread may call any method.
pub trait Device: Send + Sync {
    /// The device's name, groups, fields and limits.
    fn caps(&self) -> &Capabilities;

    /// Checks that the device can do this work, whether or not it has failed.
    ///
    /// # Errors
    ///
    /// [`Error::BadJob`] if not.
    fn check(&self, work: Work) -> Result<(), Error> {
        work.check(self.caps())
    }

    /// The predicted duration of `work` on this device, extrapolated from smaller work of the same sort. The
    /// first call for a sort measures it, queued behind the jobs submitted before: this takes some tenths of
    /// a second, and the time to compile the kernels if they are not compiled yet.
    ///
    /// # Errors
    ///
    /// [`Error::BadJob`] if the device cannot do it, [`Error::OutOfMemory`], [`Error::Failed`].
    fn cost(&self, work: Work) -> Result<Duration, Error>;

    /// Makes bases resident and returns when they are loaded. Memory beyond one copy of the bases, up to
    /// `memory_limit` bytes, is used for precomputed multiples; one copy is loaded even if it exceeds the limit.
    ///
    /// # Errors
    ///
    /// [`Error::BadJob`] if the device cannot work in the group or with this number of points,
    /// [`Error::OutOfMemory`], [`Error::Failed`].
    fn load_bases(&self, points: Points, memory_limit: usize) -> Result<BasesId, Error>;

    /// Queues a job. An invalid job, and a failure while it runs, are reported by the ticket's outcome.
    ///
    /// # Errors
    ///
    /// [`Error::Failed`] if the device has failed and takes no more jobs.
    fn submit(&self, job: DeviceJob) -> Result<Ticket, Error>;

    /// Frees bases, after the jobs submitted before have run.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownBases`], [`Error::Failed`].
    fn evict(&self, bases: BasesId) -> Result<(), Error>;

    /// Time the device has spent on jobs since it was opened; for a pool, the sum over its devices.
    fn busy(&self) -> Duration;

    /// The error after which the device takes no more jobs; `None` while it works.
    fn failure(&self) -> Option<Error>;
}

/// A device's name, groups, fields and limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// The kind of device and its identity, for display.
    pub name: String,
    /// The groups it multiplies in.
    pub groups: Vec<Group>,
    /// The fields it transforms over.
    pub fields: Vec<ScalarField>,
    /// The most bases of one product.
    pub max_bases: usize,
    /// The base-two logarithm of the largest transform.
    pub max_transform_log: u32,
    /// Memory of the device, in bytes; `None` if it shares the host's memory.
    pub memory: Option<u64>,
    /// The most bytes of host memory that it keeps as staging buffers for copies.
    pub host_memory: u64,
}

/// Identifier of resident bases, unique in the process: no two devices give the same one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BasesId(u64);

/// Work for a device.
#[derive(Clone, Debug)]
pub enum DeviceJob {
    /// `Σ scalars[i] · bases[i]`, one scalar for each base. The outcome is a [`Sum`].
    Msm {
        /// The bases.
        bases: BasesId,
        /// One scalar for each base, in the bases' order.
        scalars: Scalars,
    },
    /// A number-theoretic transform. The outcome is its values.
    Transform(Transform),
    /// Several jobs, one after the other; the first error ends it.
    Batch(Vec<DeviceJob>),
}

/// The five transforms of a [`Domain`](proofmill_kernels::Domain), by the names of its methods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TransformKind {
    /// Coefficients to evaluations on the subgroup.
    Forward,
    /// Evaluations on the subgroup to coefficients.
    Inverse,
    /// Coefficients to evaluations on the coset.
    CosetForward,
    /// Evaluations on the coset to coefficients.
    CosetInverse,
    /// Evaluations on the subgroup to evaluations on the coset.
    CosetExtend,
}

/// The result of a job that succeeded.
#[derive(Debug)]
pub enum Outcome {
    /// A product's sum.
    Sum(Box<Sum>),
    /// A transform's values.
    Values(Scalars),
    /// A batch's outcomes, in its order.
    Batch(Vec<Outcome>),
}

// === impl BasesId ===

impl BasesId {
    /// An id that no device of this process has given yet.
    pub fn fresh() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

impl fmt::Display for BasesId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

// === impl DeviceJob ===

impl DeviceJob {
    /// All bases that the job names.
    pub(crate) fn bases(&self) -> Vec<BasesId> {
        match self {
            Self::Msm { bases, .. } => vec![*bases],
            Self::Transform(_) => Vec::new(),
            Self::Batch(jobs) => jobs.iter().flat_map(Self::bases).collect(),
        }
    }

    /// The job with other names for its bases.
    pub(crate) fn rename(&mut self, name: &impl Fn(BasesId) -> BasesId) {
        match self {
            Self::Msm { bases, .. } => *bases = name(*bases),
            Self::Transform(_) => {}
            Self::Batch(jobs) => jobs.iter_mut().for_each(|job| job.rename(name)),
        }
    }
}

// === impl TransformKind ===

impl TransformKind {
    /// All variants.
    pub const ALL: [Self; 5] = [
        Self::Forward,
        Self::Inverse,
        Self::CosetForward,
        Self::CosetInverse,
        Self::CosetExtend,
    ];
}

// === impl Outcome ===

impl Outcome {
    /// The sum of a product in `G`.
    ///
    /// # Errors
    ///
    /// [`Error::BadJob`] if it is another outcome, or another group's.
    pub fn into_sum<G: DeviceGroup>(self) -> Result<G, Error> {
        match &self {
            Self::Sum(sum) => G::of_sum(sum),
            _ => None,
        }
        .ok_or_else(|| Error::BadJob(format!("its outcome is no sum of {}", G::GROUP)))
    }

    /// The values of a transform over `F`.
    ///
    /// # Errors
    ///
    /// [`Error::BadJob`] if it is another outcome, or another field's.
    pub fn into_values<F: DeviceField>(self) -> Result<Vec<F>, Error> {
        match self {
            Self::Values(values) => F::take_scalars(values),
            _ => None,
        }
        .ok_or_else(|| Error::BadJob(format!("its outcome is no values of {}", F::FIELD)))
    }

    /// The outcomes of a batch.
    ///
    /// # Errors
    ///
    /// [`Error::BadJob`] if it is another outcome.
    pub fn into_batch(self) -> Result<Vec<Outcome>, Error> {
        match self {
            Self::Batch(outcomes) => Ok(outcomes),
            _ => Err(Error::BadJob("its outcome is no batch's".into())),
        }
    }
}
