//! The engine as it is now.

use std::fmt;

use serde::{Serialize, Serializer};

use super::{CircuitId, CircuitView, JobId, JobView, Stage};

/// Who holds bytes of the budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Owner {
    /// A key: mapped, being loaded or hot.
    Key(CircuitId),
    /// A partition under way.
    Partition(JobId, u32),
    /// Reading files to register a circuit.
    Registration,
}

/// Everything, as of one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Status {
    /// Microseconds since the service began: what events count from.
    pub uptime_us: u64,
    /// When the service began, in milliseconds since 1970.
    pub started_ms: u64,
    /// Whether it takes nothing new.
    pub draining: bool,
    /// Jobs that are not at their end, first come first.
    pub jobs: Vec<JobView>,
    /// Jobs that ended and whose results are kept, last ended first; at most
    /// [`Options::recent`](crate::Options::recent).
    pub recent: Vec<JobView>,
    /// Jobs counted since the service began.
    pub counts: JobCounts,
    /// Each stage, in order.
    pub stages: Vec<StageStatus>,
    /// Each device.
    pub devices: Vec<DeviceStatus>,
    /// The memory.
    pub budget: BudgetStatus,
    /// Each registered circuit, by name.
    pub circuits: Vec<CircuitView>,
}

/// How much an engine has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Load {
    /// Jobs that are not at their end.
    pub jobs: u64,
    /// Whether it takes nothing new.
    pub draining: bool,
}

/// Counts that only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct JobCounts {
    /// Accepted, those from before a restart included.
    pub accepted: u64,
    /// Submissions that were answered with a job that was there already.
    pub repeated: u64,
    /// Refused for want of room.
    pub refused: u64,
    /// Done.
    pub done: u64,
    /// Failed.
    pub failed: u64,
    /// Cancelled.
    pub cancelled: u64,
    /// Expired.
    pub expired: u64,
    /// Partitions tried again.
    pub retries: u64,
    /// Results that were pruned.
    pub pruned: u64,
}

/// A stage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StageStatus {
    /// Which.
    pub stage: Stage,
    /// Partitions it can work on at once.
    pub workers: u32,
    /// Partitions in it.
    pub busy: u32,
    /// Partitions before it.
    pub queued: u32,
    /// Partitions that left it, whatever the outcome.
    pub ended: u64,
    /// The time partitions spent in it, in microseconds, together.
    pub busy_us: u64,
}

/// A device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DeviceStatus {
    /// Its name.
    pub name: String,
    /// Whether a partition is on it now.
    pub busy: bool,
    /// How long it worked, in microseconds.
    pub busy_us: u64,
    /// Partitions it finished.
    pub products: u64,
    /// Attempts on it that failed or whose proof did not verify.
    pub failures: u64,
    /// How often it was to blame: its proof did not verify and the witness was right.
    pub suspected: u64,
    /// Why it is not used any more, if it is not.
    pub broken: Option<String>,
}

/// The memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BudgetStatus {
    /// All there is, in bytes.
    pub total: u64,
    /// Reserved now.
    pub used: u64,
    /// The most that was ever reserved.
    pub peak: u64,
    /// Requests that wait.
    pub waiting: u32,
    /// The bytes they ask for.
    pub waiting_bytes: u64,
    /// Who holds how much, most first.
    pub owners: Vec<OwnerUse>,
    /// Keys evicted since the service began.
    pub evictions: u64,
}

/// What an owner holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OwnerUse {
    /// Who.
    pub owner: Owner,
    /// How many bytes.
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
