//! The current state of the engine.

use std::fmt;

use serde::{Serialize, Serializer};

use super::{CircuitId, CircuitView, JobId, JobView, PipelineStage};

/// A holder of bytes of the budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Owner {
    /// A circuit's key: mapped, being loaded or hot.
    Key(CircuitId),
    /// A partition under way: its job, and its number from 0.
    Partition(JobId, u32),
    /// Reading the files of a circuit that is being registered.
    Registration,
}

/// The state of the whole engine at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Status {
    /// Microseconds since the service began, by the clock of [`Event::at_us`](crate::Event::at_us).
    pub uptime_us: u64,
    /// Time at which the service began, in milliseconds since 1970.
    pub started_ms: u64,
    /// Whether the engine drains and accepts no new jobs.
    pub draining: bool,
    /// Unfinished jobs, by arrival.
    pub jobs: Vec<JobView>,
    /// Ended jobs whose results are kept, the latest end first; at most
    /// [`Options::recent`](crate::Options::recent).
    pub recent: Vec<JobView>,
    /// Counters since the service began.
    pub counts: JobCounts,
    /// The stages, in order.
    pub stages: Vec<StageStatus>,
    /// The devices, in the order of the options.
    pub devices: Vec<DeviceStatus>,
    /// The byte budget.
    pub budget: BudgetStatus,
    /// The registered circuits, by name.
    pub circuits: Vec<CircuitView>,
}

/// The amount of work that an engine has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Load {
    /// Unfinished jobs.
    pub jobs: u64,
    /// Whether the engine drains and accepts no new jobs.
    pub draining: bool,
}

/// Counters since the service began; they never decrease.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct JobCounts {
    /// Jobs accepted, including those from before a restart.
    pub accepted: u64,
    /// Submissions of a request that existed already.
    pub repeated: u64,
    /// Submissions refused for lack of room.
    pub refused: u64,
    /// Jobs done.
    pub done: u64,
    /// Jobs failed.
    pub failed: u64,
    /// Jobs cancelled.
    pub cancelled: u64,
    /// Jobs expired.
    pub expired: u64,
    /// Number of times that a partition was tried again.
    pub retries: u64,
    /// Results pruned.
    pub pruned: u64,
}

/// The current state of a stage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StageStatus {
    /// The stage.
    pub stage: PipelineStage,
    /// Partitions that it can work on at once.
    pub workers: u32,
    /// Partitions in it now.
    pub busy: u32,
    /// Partitions that wait for it.
    pub queued: u32,
    /// Partitions that left it, with any outcome.
    pub ended: u64,
    /// Time that partitions spent in it, in microseconds, summed over partitions.
    pub busy_us: u64,
}

/// The current state of a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DeviceStatus {
    /// The name of the device.
    pub name: String,
    /// Whether it works on a partition now.
    pub busy: bool,
    /// Time that it worked, in microseconds.
    pub busy_us: u64,
    /// Partitions whose prove stage it finished.
    pub products: u64,
    /// Attempts on it that failed or whose proof did not verify.
    pub failures: u64,
    /// Number of times that it was at fault: its proof did not verify although the witness was right.
    pub suspected: u64,
    /// The reason why the device is no longer used; none if it is in use.
    pub broken: Option<String>,
}

/// The current state of the byte budget.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BudgetStatus {
    /// The size of the budget, in bytes.
    pub total: u64,
    /// Bytes reserved now.
    pub used: u64,
    /// Most bytes ever reserved at once.
    pub peak: u64,
    /// Requests that wait for bytes.
    pub waiting: u32,
    /// Bytes that the waiting requests ask for.
    pub waiting_bytes: u64,
    /// Owners and the bytes they hold, largest first.
    pub owners: Vec<OwnerUse>,
    /// Keys evicted since the service began.
    pub evictions: u64,
}

/// The bytes that an owner holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OwnerUse {
    /// The owner.
    pub owner: Owner,
    /// The bytes that the owner holds.
    pub bytes: u64,
}

// === impl Owner ===

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key(circuit) => write!(f, "key {circuit}"),
            Self::Partition(job, partition) => write!(f, "partition {job}/{partition}"),
            Self::Registration => f.write_str("registration"),
        }
    }
}

impl Serialize for Owner {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
