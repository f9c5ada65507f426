//! Inputs and outputs of the core: events and actions.

use std::sync::Arc;
use std::time::Duration;

use proofmill_bus::{Op, Seq};
use proofmill_trace::TraceId;

use super::work::WorkEvent;
use crate::conversation::{
    HostCommand, HostEvent, LeaseRef, Reply, Request, RoleEvent, SinkCommand, SinkEvent,
    WorkerCommand, WorkerEvent,
};
use crate::id::{TaskId, WorkerId};
use crate::plan::Late;
use crate::record::TaskRecord;
use crate::traces::TraceEvent;

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
    /// A worker's report on a lease has come, and waits for a check before it counts. The coordinator tells this; no
    /// worker can.
    ReportWaits {
        /// The worker.
        worker: WorkerId,
        /// Lease that the report is about.
        lease: LeaseRef,
        /// Whether it is a result, for which a new leader adopts the lease.
        is_result: bool,
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
    /// Report to the operator what became of a task or of an attempt at it, for the log lines.
    Report(Box<TaskReport>),
    /// Report to observers, once the log is durable up to `after`, that a task has ended.
    Settle {
        /// Sequence number that must be durable first.
        after: Seq,
        /// The task and its timing.
        settled: Settled,
    },
    /// Make spans of a report, once the log is durable up to `after`. Only with
    /// [`CoreOptions::traces`](super::CoreOptions::traces).
    Trace {
        /// Sequence number that must be durable first.
        after: Seq,
        /// The report.
        event: TraceEvent,
    },
    /// Report work to observers, once the log is durable up to `after`. Only after
    /// [`Core::observe_work`](super::Core::observe_work).
    Work {
        /// Sequence number that must be durable first.
        after: Seq,
        /// The report.
        event: WorkEvent,
    },
}

/// Report of a failed attempt, a death or a late message, for the operator. No decision depends on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskReport {
    /// The task.
    pub task: TaskId,
    /// Trace of its block.
    pub trace: TraceId,
    /// Kind of the event, with its details.
    pub kind: TaskReportKind,
}

/// Kind of a [`TaskReport`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskReportKind {
    /// An attempt failed, or its worker was lost.
    Failed {
        /// Worker that had the task.
        worker: WorkerId,
        /// Number of failed attempts with this one.
        attempt: u32,
        /// Reason.
        why: String,
    },
    /// The task is in the dead-letter queue.
    Dead {
        /// Reason.
        why: String,
    },
    /// The message reached a collector, whose task it is, too late for its group.
    Late {
        /// Reason: the group that was already emitted.
        why: String,
        /// Treatment of the message, as the stage's `late` setting says.
        became: Late,
    },
}

/// Report of an ended task.
#[derive(Clone, Debug)]
pub struct Settled {
    /// The task, as it was accepted.
    pub task: Arc<TaskRecord>,
    /// Whether a worker completed the task; false if it was grouped, skipped or dropped, emitted, or died.
    pub completed: bool,
    /// Whether the sequencer emitted its message.
    pub emitted: bool,
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

// === impl Settled ===

impl Settled {
    /// A task that ended otherwise than by a worker's result or its emission.
    pub(super) fn without_result(task: &Arc<TaskRecord>) -> Self {
        Self {
            task: Arc::clone(task),
            completed: false,
            emitted: false,
            timing: None,
        }
    }

    /// A task that a worker completed.
    pub(super) fn completed(task: &Arc<TaskRecord>, timing: Timing) -> Self {
        Self {
            completed: true,
            timing: Some(timing),
            ..Self::without_result(task)
        }
    }

    /// A task whose message was emitted.
    pub(super) fn emitted(task: &Arc<TaskRecord>) -> Self {
        Self {
            emitted: true,
            ..Self::without_result(task)
        }
    }
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
