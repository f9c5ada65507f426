//! What goes into the core, and what comes out.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use proofmill_bus::{Op, Seq};
use serde::{Deserialize, Serialize};

use super::tag::LeaseTag;
use crate::collector::{HostJoin, ToHost, Verdicts};
use crate::id::{TaskId, WorkerId};
use crate::message::Message;
use crate::payload::Payload;
use crate::plan::{Late, QueueIx, StageIx};
use crate::record::{Failure, TaskRecord};

/// Bytes of the reason for which a worker is paused, at most: the core cuts a longer one.
pub const PAUSE_REASON_MAX: usize = 512;

/// Microseconds of a monotonic clock, from any origin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

/// The time of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// Decides leases and timers. A step back is read as standing still.
    pub mono: Time,
    /// Milliseconds since 1970-01-01 UTC, written into records for people; decides nothing.
    pub wall_ms: u64,
}

/// Ties an append to its acceptance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub u64);

/// Ties a request to its reply; drawn by the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// Something that happened.
#[derive(Clone, Debug)]
pub enum Event {
    /// A producer brings a message.
    Submit(Submit),
    /// A worker offers itself. Joining again under the same name replaces the earlier offer; its
    /// leases are kept.
    Join(Join),
    /// A worker takes no new tasks but finishes what it has.
    Retire {
        /// Which one.
        worker: WorkerId,
    },
    /// A worker is gone; what it had is retried elsewhere.
    Leave {
        /// Which one.
        worker: WorkerId,
    },
    /// A worker is alive and working on these.
    Heartbeat {
        /// Which one.
        worker: WorkerId,
        /// The leases it holds.
        running: Vec<LeaseRef>,
        /// Whether it takes no new tasks: said with every heartbeat, so that a [`Event::Retire`],
        /// or the [`Event::Join`] of one that has come back, is not lost for good.
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
        /// Which one.
        worker: WorkerId,
        /// The lease that ends.
        lease: LeaseRef,
    },
    /// A host offers to keep partitions of collectors. Joining again replaces the earlier offer.
    HostJoin(HostJoin),
    /// A host is alive.
    HostBeat {
        /// Which one.
        host: WorkerId,
    },
    /// A host is gone: others keep its partitions.
    HostLeave {
        /// Which one.
        host: WorkerId,
    },
    /// A host has decided.
    Verdicts(Verdicts),
    /// The log accepted an append.
    Accepted {
        /// Of which [`Action::Append`].
        token: Token,
        /// The sequence number of its last operation.
        seq: Seq,
    },
    /// The log refused an append because a record exists that was expected not to.
    Conflicted {
        /// Of which [`Action::Append`].
        token: Token,
        /// The key of that record.
        key: String,
    },
    /// The sink has what [`Action::Emit`] handed over, durably.
    Emitted {
        /// Which task.
        task: TaskId,
        /// The sinks that have it, each by what it is and where: a file, an address, a subject.
        places: Vec<String>,
    },
    /// Put a dead letter back into its queue, with its attempts forgotten.
    RetryDead {
        /// To reply to.
        request: RequestId,
        /// Which one.
        task: TaskId,
    },
    /// Give a dead letter up for good.
    DropDead {
        /// To reply to.
        request: RequestId,
        /// Which one.
        task: TaskId,
    },
    /// Drop what has come of a source's later blocks. Answered with [`Reply::Rewound`].
    Rewind(Rewind),
    /// Stop live tasks and move them to the dead-letter queue. Answered with [`Reply::Accepted`] if
    /// there was one, else with [`Reply::NotFound`].
    Cancel {
        /// To reply to.
        request: RequestId,
        /// Which ones.
        target: Target,
    },
    /// Lease nothing more; accept results of what is leased.
    Drain,
    /// Time passed.
    Tick,
}

/// Which live tasks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Target {
    /// This one.
    Task(TaskId),
    /// Those that are about this block, also where they are about others too.
    Block(u64),
    /// All.
    All,
}

/// A source takes back what it has brought about the blocks from one on, in order to bring them
/// again: the chain that it follows has changed.
///
/// Everything that has followed is dropped: live tasks, dead letters, and the marks of what is
/// finished, in every stage that the source's messages reach. Where a group holds earlier blocks
/// too, those go with it. What the sink has been given stays.
#[derive(Clone, Debug)]
pub struct Rewind {
    /// To reply to.
    pub request: RequestId,
    /// The source: what it is to bring next is recorded.
    pub producer: Arc<str>,
    /// The queues that it writes.
    pub queues: Vec<QueueIx>,
    /// The first block that has changed.
    pub from: u64,
}

/// What a message is among those about its block that came the same way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Edition {
    /// One of several perhaps, which differ in their part.
    #[default]
    Any,
    /// The only one: another part of the block that is known is [`Reply::Differs`].
    Only,
    /// The same, but if nothing of the block is known nothing is recorded: it is
    /// [`Reply::Duplicate`].
    Recalled,
    /// As [`Edition::Any`], and what an operator has dropped from the dead-letter queue is taken once
    /// more: somebody submits it on purpose.
    Anew,
}

/// A message for a queue, from outside the workflow or from one of its sources.
#[derive(Clone, Debug)]
pub struct Submit {
    /// To reply to.
    pub request: RequestId,
    /// Who brings it: a source's name, or a submitter's.
    pub producer: Arc<str>,
    /// The queue.
    pub queue: QueueIx,
    /// The message.
    pub message: Message,
    /// What the message is among those about its block.
    pub edition: Edition,
    /// For a source: where it goes on once this message is accepted, recorded with it.
    pub source_next: Option<u64>,
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
    /// See [`Message::grouping`], for the readers of every output queue.
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

/// Something to do.
#[derive(Clone, Debug)]
pub enum Action {
    /// Append to the log, in the order of the actions; report [`Event::Accepted`] or
    /// [`Event::Conflicted`].
    Append {
        /// To report with.
        token: Token,
        /// What to append, atomically.
        ops: Vec<Op>,
    },
    /// Hand these to a worker, as one assignment.
    Assign {
        /// The append that has to be durable first, if any: an [`Action::Append`] that follows.
        after: Option<Token>,
        /// Whom.
        worker: WorkerId,
        /// One, or as many as the stage's batch.
        leases: Vec<Lease>,
    },
    /// Tell a worker to stop working on this: its result is not wanted any more.
    Cancel {
        /// Whom.
        worker: WorkerId,
        /// What.
        lease: LeaseRef,
    },
    /// Tell a worker that the core does not know it: it should join again.
    Unknown {
        /// Whom.
        worker: WorkerId,
    },
    /// Tell a host, after all that it was told before.
    Host {
        /// Whom.
        host: WorkerId,
        /// What.
        message: ToHost,
    },
    /// Answer a request, once the log is durable up to `after`.
    Reply {
        /// Which one.
        request: RequestId,
        /// What has to be durable first.
        after: Seq,
        /// The answer.
        reply: Reply,
    },
    /// Hand a message to the sink once the log is durable up to `after`, in the order of the
    /// actions; report [`Event::Emitted`].
    Emit {
        /// What has to be durable first.
        after: Seq,
        /// The message.
        task: Arc<TaskRecord>,
    },
    /// Tell the operator: the core could not record something, which is a defect of this program.
    Defect {
        /// In words.
        why: String,
    },
    /// Tell the operator: a message has come to a collector too late for its group.
    Late {
        /// The message, as a task of the collector.
        task: TaskId,
        /// What it came too late for.
        why: String,
        /// What became of it.
        became: Late,
    },
    /// For observers, once the log is durable up to `after`: a task has ended.
    Settle {
        /// What has to be durable first.
        after: Seq,
        /// How it ended.
        settled: Settled,
    },
}

/// How a task ended.
#[derive(Clone, Debug)]
pub struct Settled {
    /// The task.
    pub task: TaskId,
    /// Whether it was completed by a worker, or ended otherwise: grouped, skipped, dropped, dead.
    pub completed: bool,
    /// When it was completed by a worker: where its time went.
    pub timing: Option<Timing>,
}

/// Where the time of a completed task went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// From acceptance to the assignment that led to the result: waiting for its turn.
    pub waited: Duration,
    /// From that assignment until the core had the result.
    pub leased: Duration,
    /// The part of `leased` for which the executor itself ran.
    pub ran: Duration,
    /// When the core had the result.
    pub at: Time,
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reply {
    /// Recorded.
    Accepted,
    /// Every task that this message becomes is known already, or finished: nothing to do.
    Duplicate {
        /// Whether they carried the same; `None` if that is not known of all any more.
        same: Option<bool>,
    },
    /// A live task of this id carries something else, or a task of another part is known where there
    /// is only one to be.
    Differs {
        /// The task.
        task: TaskId,
    },
    /// Recorded in the dead-letter queue: a reader cannot take it.
    Rejected {
        /// Why.
        why: String,
    },
    /// The same message is in the dead-letter queue.
    IsDead {
        /// The task.
        task: TaskId,
        /// Why it is there.
        why: String,
    },
    /// The message is wrong in itself; nothing was recorded.
    Invalid {
        /// Why.
        why: String,
    },
    /// There is no such dead letter, or no live task to cancel.
    NotFound,
    /// The core drains and takes nothing new.
    Draining,
    /// Nothing of the source's blocks from this one on is left: it goes on with this one. Later than
    /// what was asked for if the sink has been given blocks up to here, earlier if they were in
    /// groups with earlier ones.
    Rewound {
        /// The block.
        from: u64,
    },
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

// === impl Time ===

impl Time {
    /// This much later.
    pub fn plus(self, duration: Duration) -> Self {
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(micros))
    }

    /// How long before `later` this was; zero if it was not.
    pub fn until(self, later: Self) -> Duration {
        Duration::from_micros(later.0.saturating_sub(self.0))
    }
}
