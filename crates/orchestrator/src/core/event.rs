//! What goes into the core, and what comes out.

use std::time::Duration;

use proofmill_bus::{Op, Seq};

use crate::conversation::{
    HostCommand, HostEvent, Reply, Request, RoleEvent, SinkCommand, SinkEvent, WorkerCommand,
    WorkerEvent,
};
use crate::id::{TaskId, WorkerId};
use crate::plan::Late;

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
    /// At a worker.
    Worker(WorkerEvent),
    /// At a host of collectors.
    Host(HostEvent),
    /// At the sink.
    Sink(SinkEvent),
    /// A source or an operator asks for something.
    Request {
        /// To reply to.
        id: RequestId,
        /// The request.
        request: Request,
    },
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
    /// Lease nothing more; accept results of what is leased.
    Drain,
    /// Time passed.
    Tick,
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
    /// Tell a worker.
    Worker {
        /// The append that has to be durable first, if any: an [`Action::Append`] that follows. Only
        /// an assignment waits for one.
        after: Option<Token>,
        /// The worker.
        worker: WorkerId,
        /// The command.
        command: WorkerCommand,
    },
    /// Tell a host, after all that it was told before.
    Host {
        /// The host.
        host: WorkerId,
        /// The command.
        command: HostCommand,
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
    /// Tell the sink once the log is durable up to `after`, in the order of the actions; it answers a
    /// [`SinkCommand::Emit`] with [`SinkEvent::Emitted`].
    Sink {
        /// What has to be durable first.
        after: Seq,
        /// The command.
        command: SinkCommand,
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

// === impl Event ===

impl From<RoleEvent> for Event {
    fn from(event: RoleEvent) -> Self {
        match event {
            RoleEvent::Worker(event) => Self::Worker(event),
            RoleEvent::Host(event) => Self::Host(event),
            RoleEvent::Sink(event) => Self::Sink(event),
        }
    }
}

impl From<WorkerEvent> for Event {
    fn from(event: WorkerEvent) -> Self {
        Self::Worker(event)
    }
}

impl From<HostEvent> for Event {
    fn from(event: HostEvent) -> Self {
        Self::Host(event)
    }
}

impl From<SinkEvent> for Event {
    fn from(event: SinkEvent) -> Self {
        Self::Sink(event)
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
