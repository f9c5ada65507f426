//! What a device is to its callers.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::cost::Work;
use crate::error::Error;
use crate::group::{DeviceField, DeviceGroup, Group, Points, ScalarField, Scalars, Sum, Transform};
use crate::ticket::Ticket;

/// Something that multiplies points and transforms vectors: the CPU, a card.
///
/// [`ticket`](crate::ticket) and [`BasesId::fresh`] are what one made elsewhere answers with.
///
/// Jobs run in the order of their submission. Any thread may call any method.
pub trait Device: Send + Sync {
    /// What it is and can do.
    fn caps(&self) -> &Capabilities;

    /// How long the device works on something, by what it took for smaller work of that sort. The
    /// first question about a sort measures it, in its turn among the jobs: some tenths of a second,
    /// and the time it takes to compile the kernels where that was not done before.
    ///
    /// # Errors
    ///
    /// [`Error::BadJob`] if the device cannot do it, [`Error::OutOfMemory`], [`Error::Failed`].
    fn cost(&self, work: Work) -> Result<Duration, Error>;

    /// Makes bases resident, in at most `memory_limit` bytes if the device can do with so little: what
    /// there is beyond one copy of the bases is used for precomputed multiples. Returns when they are
    /// loaded.
    ///
    /// # Errors
    ///
    /// [`Error::BadJob`] if the device cannot work in the group or with so many points,
    /// [`Error::OutOfMemory`], [`Error::Failed`].
    fn load_bases(&self, points: Points, memory_limit: usize) -> Result<BasesId, Error>;

    /// Queues a job. What is wrong with it, or goes wrong, is in the ticket's outcome.
    ///
    /// # Errors
    ///
    /// [`Error::Failed`] if the device takes no jobs any more.
    fn submit(&self, job: Job) -> Result<Ticket, Error>;

    /// Frees bases, when the jobs before have run.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownBases`], [`Error::Failed`].
    fn evict(&self, bases: BasesId) -> Result<(), Error>;

    /// How long the device has worked on jobs since it was opened; of a pool, its devices together.
    fn busy(&self) -> Duration;

    /// Why the device takes no more jobs, if it does not.
    fn failure(&self) -> Option<Error>;
}

/// What a device is and can do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// For people: the kind of device and which one.
    pub name: String,
    /// The groups it multiplies in.
    pub groups: Vec<Group>,
    /// The fields it transforms over.
    pub fields: Vec<ScalarField>,
    /// The most bases of one product.
    pub max_bases: usize,
    /// The base-two logarithm of the largest transform.
    pub max_transform_log: u32,
    /// Bytes of its own memory; none if it shares the host's.
    pub memory: Option<u64>,
    /// The most bytes of the host's memory that it keeps for itself, to copy through.
    pub host_memory: u64,
}

/// Bases that are resident somewhere. No two devices of a process give the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BasesId(u64);

/// Work for a device.
#[derive(Clone, Debug)]
pub enum Job {
    /// `Σ scalars[i] · bases[i]`, one scalar for each base. The outcome is a [`Sum`].
    Msm {
        /// The bases.
        bases: BasesId,
        /// As many scalars.
        scalars: Scalars,
    },
    /// A number-theoretic transform. The outcome is its values.
    Transform(Transform),
    /// Several jobs, one after the other; the first error ends it.
    Batch(Vec<Job>),
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

/// What came of a job.
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
    /// One that no device of this process has given yet.
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

// === impl Job ===

impl Job {
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
    /// All of them.
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
