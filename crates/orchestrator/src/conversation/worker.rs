//! The conversation with workers.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::core::LeaseTag;
use crate::id::{TaskId, WorkerId};
use crate::payload::Payload;
use crate::plan::StageIx;
use crate::record::{Failure, TaskRecord};

/// Bytes of the reason for which a worker is paused, at most: the core cuts a longer one.
pub const PAUSE_REASON_MAX: usize = 512;

/// Something that happened at a worker.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum WorkerEvent {
    /// A worker offers itself. Joining again under the same name replaces the earlier offer; its
    /// leases are kept.
    Join(Join),
    /// A worker takes no new tasks but finishes what it has.
    Retire {
        /// The worker.
        worker: WorkerId,
    },
    /// A worker is gone; what it had is retried elsewhere.
    Leave {
        /// The worker.
        worker: WorkerId,
    },
    /// A worker is alive and working on these.
    Heartbeat {
        /// The worker.
        worker: WorkerId,
        /// The leases it holds.
        running: Vec<LeaseRef>,
        /// Whether it takes no new tasks: said with every heartbeat, so that a
        /// [`WorkerEvent::Retire`], or the [`WorkerEvent::Join`] of one that has come back, is not
        /// lost for good.
        retired: bool,
        /// Reason for which the worker takes no tasks for now: what its machine lacks, in at most
        /// [`PAUSE_REASON_MAX`] bytes. `None` if it takes tasks; said with every heartbeat, as
        /// `retired` is.
        paused: Option<String>,
    },
    /// A worker has a result.
    Complete(Complete),
    /// A worker's attempt failed.
    Fail(Fail),
    /// A worker hands a task back untried: it drains, say, or its machine has failed. No attempt is
    /// counted.
    Release {
        /// The worker.
        worker: WorkerId,
        /// The lease that ends.
        lease: LeaseRef,
    },
}

/// What the core has a worker do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum WorkerCommand {
    /// Run these, as one assignment: one, or as many as the stage's batch.
    Assign(Vec<Lease>),
    /// Stop working on this: its result is not wanted any more.
    Cancel(LeaseRef),
    /// The core does not know this worker: join again.
    Unknown,
}

/// A worker's offer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Join {
    /// Its name.
    pub worker: WorkerId,
    /// The worker group it belongs to.
    pub group: Arc<str>,
    /// The labels it has.
    pub labels: BTreeSet<String>,
    /// Bytes of memory it offers.
    pub memory: u64,
    /// Assignments that it works on at once (F_max).
    pub slots: usize,
}

/// Names a lease, and proves that it was given: a task, an attempt at it, and a tag.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LeaseRef {
    /// The task.
    pub task: TaskId,
    /// The attempt, from 1.
    pub attempt: u32,
    /// Tag of the coordinator that gave the lease, over the worker and what the task carries too:
    /// another task may come under its id.
    pub tag: LeaseTag,
}

/// One message of a result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    /// Position in a fan-out; `None` where the stage has one output for each task.
    pub element: Option<usize>,
    /// What goes on.
    pub payload: Payload,
    /// See [`Message::grouping`](crate::message::Message::grouping), for the readers of every output queue.
    pub grouping: Vec<(StageIx, Result<Arc<str>, String>)>,
}

/// A result.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Complete {
    /// Who brings it.
    pub worker: WorkerId,
    /// The lease. A result counts even when the lease has ended, if no other came first; it never
    /// counts for a lease that this worker was not given.
    pub lease: LeaseRef,
    /// What goes on to the stage's output queues.
    pub outputs: Vec<Output>,
    /// How long the executor itself ran.
    pub ran: Duration,
}

/// A failed attempt.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Fail {
    /// Whose.
    pub worker: WorkerId,
    /// At what.
    pub lease: LeaseRef,
    /// What went wrong.
    pub failure: Failure,
}

/// A task handed to a worker.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Lease {
    /// Its stage.
    pub stage: StageIx,
    /// The task.
    pub task: Arc<TaskRecord>,
    /// Which attempt this is, from 1.
    pub attempt: u32,
    /// See [`LeaseRef::tag`].
    pub tag: LeaseTag,
}

// === impl WorkerEvent ===

impl WorkerEvent {
    /// The worker that it happened at.
    pub fn worker(&self) -> &WorkerId {
        match self {
            Self::Join(join) => &join.worker,
            Self::Complete(complete) => &complete.worker,
            Self::Fail(fail) => &fail.worker,
            Self::Retire { worker }
            | Self::Leave { worker }
            | Self::Heartbeat { worker, .. }
            | Self::Release { worker, .. } => worker,
        }
    }

    /// Whether it is a sign of life and no more: a later one says all that it says.
    pub fn is_beat(&self) -> bool {
        matches!(self, Self::Heartbeat { .. })
    }

    /// Whether work would be lost if it were not heard.
    pub fn carries_work(&self) -> bool {
        matches!(
            self,
            Self::Complete(_) | Self::Fail(_) | Self::Release { .. }
        )
    }
}

// === impl Lease ===

impl Lease {
    /// Its name.
    pub fn name(&self) -> LeaseRef {
        LeaseRef {
            task: self.task.id.clone(),
            attempt: self.attempt,
            tag: self.tag,
        }
    }
}
