//! Inputs and outputs of the core: events and actions.

use std::time::Duration;

use proofmill_bus::{Op, Seq};

use crate::conversation::{
    HostCommand, HostEvent, LeaseRef, Reply, Request, RoleEvent, SinkCommand, SinkEvent,
    WorkerCommand, WorkerEvent,
};
use crate::id::{TaskId, WorkerId};
use crate::plan::Late;

/// Microseconds of a monotonic clock, from any origin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

/// The time of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// Monotonic time: decides leases and timers. A step back is treated as no time passing.
    pub mono: Time,
    /// Wall-clock time, milliseconds since 1970-01-01 UTC; written into records for people to read and used
    /// to resume timers after a restart.
    pub wall_ms: u64,
}

/// Ties an append to its acceptance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub u64);

/// Ties a request to its reply; drawn by the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// An input of the core.
#[derive(Clone, Debug)]
pub enum Event {
    /// An event at a worker.
    Worker(WorkerEvent),
    /// An event at a host of collectors.
    Host(HostEvent),
    /// An event at the sink.
    Sink(SinkEvent),
    /// A request of a source or an operator.
    Request {
        /// Identifier to reply under.
        id: RequestId,
        /// The request.
        request: Request,
    },
    /// The log accepted an append.
    Accepted {
        /// Token of the [`Action::Append`].
        token: Token,
        /// The sequence number of its last operation.
        seq: Seq,
    },
    /// The log refused an append because a record exists that was expected not to.
    Conflicted {
        /// Token of the [`Action::Append`].
        token: Token,
        /// Key of the existing record.
        key: String,
    },
    /// The check of a stage's results has refused a result.
    FalseResult(FalseResult),
    /// Stop leasing; results of leased tasks are still accepted.
    Drain,
    /// A timer may be due ([`Core::next_deadline`](super::Core::next_deadline)).
    Tick,
}

/// A result that is wrong. The coordinator reports it after a check of its own; no worker can.
#[derive(Clone, Debug)]
pub struct FalseResult {
    /// Worker that sent the result.
    pub worker: WorkerId,
    /// Lease that the result is for.
    pub lease: LeaseRef,
    /// Description of the fault.
    pub why: String,
}

/// An output of the core: something for the caller to carry out.
#[derive(Clone, Debug)]
pub enum Action {
    /// Append to the log, in the order of the actions; report the outcome as [`Event::Accepted`] or
    /// [`Event::Conflicted`].
    Append {
        /// Token to report the outcome with.
        token: Token,
        /// Operations to append, atomically.
        ops: Vec<Op>,
    },
    /// Send a command to a worker.
    Worker {
        /// Token of the append that must be durable first, an [`Action::Append`] that follows in the same
        /// list; `None` to send at once. Only an assignment waits for an append.
        after: Option<Token>,
        /// The worker.
        worker: WorkerId,
        /// The command.
        command: WorkerCommand,
    },
    /// Send a command to a host, after all earlier commands to it.
    Host {
        /// The host.
        host: WorkerId,
        /// The command.
        command: HostCommand,
    },
    /// Answer a request, once the log is durable up to `after`.
    Reply {
        /// Request that is answered.
        request: RequestId,
        /// Sequence number that must be durable first.
        after: Seq,
        /// The answer.
        reply: Reply,
    },
    /// Send a command to the sink once the log is durable up to `after`, in the order of the actions. The
    /// sink answers a [`SinkCommand::Emit`] with [`SinkEvent::Emitted`].
    Sink {
        /// Sequence number that must be durable first.
        after: Seq,
        /// The command.
        command: SinkCommand,
    },
    /// Report to the operator that the core could not record something, which is a defect of this program.
    Defect {
        /// Description of the failure.
        why: String,
    },
    /// Report to the operator that a message reached a collector too late for its group.
    Late {
        /// The message, as a task of the collector.
        task: TaskId,
        /// Reason: the group that was already emitted.
        why: String,
        /// Treatment of the message, as the stage's `late` setting says.
        became: Late,
    },
    /// Report to observers, once the log is durable up to `after`, that a task has ended.
    Settle {
        /// Sequence number that must be durable first.
        after: Seq,
        /// The task and its timing.
        settled: Settled,
    },
}

/// Report of an ended task.
#[derive(Clone, Debug)]
pub struct Settled {
    /// The task.
    pub task: TaskId,
    /// Whether a worker completed the task; false if it was grouped, skipped or dropped, emitted, or died.
    pub completed: bool,
    /// Durations, if a worker completed the task; `None` otherwise.
    pub timing: Option<Timing>,
}

/// Durations of a task that a worker completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Wait from acceptance to the assignment that led to the result.
    pub waited: Duration,
    /// Time from that assignment until the core received the result.
    pub leased: Duration,
    /// The part of `leased` for which the executor itself ran.
    pub ran: Duration,
    /// Time at which the core received the result.
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
    /// The time `duration` later; saturates.
    pub fn plus(self, duration: Duration) -> Self {
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(micros))
    }

    /// Duration from this time to `later`; zero if `later` is earlier.
    pub fn until(self, later: Self) -> Duration {
        Duration::from_micros(later.0.saturating_sub(self.0))
    }
}
