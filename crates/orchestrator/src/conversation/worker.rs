//! Messages between the core and workers.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::core::LeaseTag;
use crate::id::{TaskId, WorkerId};
use crate::payload::Payload;
use crate::plan::StageIx;
use crate::record::{Failure, TaskRecord};

/// Maximum length of the reason for a worker's pause, bytes; the core cuts a longer one.
pub const PAUSE_REASON_MAX: usize = 512;

/// An event at a worker.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum WorkerEvent {
    /// A worker offers itself. Joining again under the same name replaces the earlier offer; its
    /// leases are kept.
    Join(WorkerJoin),
    /// A worker takes no new tasks but finishes those that it has.
    Retire {
        /// The worker.
        worker: WorkerId,
    },
    /// A worker leaves. What it was given and has not reported on goes back untried: its last assignments may
    /// have crossed this message, and it begins nothing any more.
    Leave {
        /// The worker.
        worker: WorkerId,
    },
    /// A worker is alive and reports the leases that it works on.
    Heartbeat {
        /// The worker.
        worker: WorkerId,
        /// Leases that the worker holds.
        running: Vec<LeaseRef>,
        /// Whether the worker takes no new tasks. Part of every heartbeat, so that a lost
        /// [`WorkerEvent::Retire`], or a lost [`WorkerEvent::Join`] of a worker that has come back, has no
        /// lasting effect.
        retired: bool,
        /// Reason for a pause: the resource that the worker's machine lacks, in at most [`PAUSE_REASON_MAX`]
        /// bytes. `None` if it takes tasks. Part of every heartbeat, for the same reason as `retired`.
        paused: Option<String>,
    },
    /// A worker has a result.
    Complete(WorkerResult),
    /// A worker's attempt failed.
    Fail(WorkerFailure),
    /// A worker hands a task back untried, for example because it drains or its machine has failed. No
    /// attempt is counted.
    Release {
        /// The worker.
        worker: WorkerId,
        /// Lease that ends.
        lease: LeaseRef,
    },
    /// A worker is gone without having left, as the coordinator's side finds out: its attempts have failed, since each may have
    /// been the cause. No worker sends this.
    Lost {
        /// The worker.
        worker: WorkerId,
    },
}

/// A command of the core to a worker.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum WorkerCommand {
    /// Run these leases as one assignment: a single task, or up to the stage's batch size.
    Assign(Vec<Lease>),
    /// Stop working on this lease: its result is no longer wanted.
    Cancel(LeaseRef),
    /// The core does not know this worker, which must join again.
    Unknown,
}

/// A worker's offer to take tasks.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WorkerJoin {
    /// Name of the worker.
    pub worker: WorkerId,
    /// Worker group that it belongs to.
    pub group: Arc<str>,
    /// Labels that it has.
    pub labels: BTreeSet<String>,
    /// Memory that it offers, bytes.
    pub memory: u64,
    /// Maximum number of concurrent assignments (F_max).
    pub slots: usize,
}

/// Reference to a lease, with proof that it was given: a task, an attempt, and a tag.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LeaseRef {
    /// The task.
    pub task: TaskId,
    /// Number of the attempt, from 1.
    pub attempt: u32,
    /// Authentication code by the coordinator that gave the lease. Covers the worker and the task's content
    /// too, since another task may come under the same id.
    pub tag: LeaseTag,
}

/// One message of a result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    /// Position in a fan-out; `None` if the stage has one output for each task.
    pub element: Option<usize>,
    /// The message's content.
    pub payload: Payload,
    /// Grouping values for the readers of all output queues, see
    /// [`Message::grouping`](crate::message::Message::grouping).
    pub grouping: Vec<(StageIx, Result<Arc<str>, String>)>,
}

/// A result.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WorkerResult {
    /// Worker that sends the result.
    pub worker: WorkerId,
    /// The lease. A result counts even if the lease has ended, unless another came first; it never counts for
    /// a lease that this worker was not given.
    pub lease: LeaseRef,
    /// Messages for the stage's output queues.
    pub outputs: Vec<Output>,
    /// Run time of the executor itself.
    pub ran: Duration,
}

/// A failed attempt.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WorkerFailure {
    /// Worker whose attempt failed.
    pub worker: WorkerId,
    /// Lease of the attempt.
    pub lease: LeaseRef,
    /// Description of the failure.
    pub failure: Failure,
}

/// A task handed to a worker.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Lease {
    /// Stage of the task.
    pub stage: StageIx,
    /// The task.
    pub task: Arc<TaskRecord>,
    /// Number of the attempt, from 1.
    pub attempt: u32,
    /// See [`LeaseRef::tag`].
    pub tag: LeaseTag,
}

// === impl WorkerEvent ===

impl WorkerEvent {
    /// Name of the worker.
    pub fn worker(&self) -> &WorkerId {
        match self {
            Self::Join(join) => &join.worker,
            Self::Complete(complete) => &complete.worker,
            Self::Fail(fail) => &fail.worker,
            Self::Retire { worker }
            | Self::Leave { worker }
            | Self::Lost { worker }
            | Self::Heartbeat { worker, .. }
            | Self::Release { worker, .. } => worker,
        }
    }

    /// Whether the event is a heartbeat, so that a later one replaces it.
    pub fn is_heartbeat(&self) -> bool {
        matches!(self, Self::Heartbeat { .. })
    }

    /// Whether the worker has gone with this event.
    pub fn is_departure(&self) -> bool {
        matches!(self, Self::Leave { .. } | Self::Lost { .. })
    }

    /// The lease that a report (a result, a failure or a release) is about; `None` for other events.
    pub fn reported_lease(&self) -> Option<&LeaseRef> {
        match self {
            Self::Complete(complete) => Some(&complete.lease),
            Self::Fail(fail) => Some(&fail.lease),
            Self::Release { lease, .. } => Some(lease),
            _ => None,
        }
    }

    /// Whether losing the event would lose work.
    pub fn must_deliver(&self) -> bool {
        self.reported_lease().is_some()
    }
}

// === impl Lease ===

impl Lease {
    /// Reference to the lease.
    pub fn reference(&self) -> LeaseRef {
        LeaseRef {
            task: self.task.id.clone(),
            attempt: self.attempt,
            tag: self.tag,
        }
    }
}
