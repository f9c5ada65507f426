//! Inputs and actions of a leader's sessions.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::super::wire::{Answer, Call, Notice, NoticeAck};
use super::notices::NoticeFailure;
use crate::conversation::{Query, Reply, Request, RoleCommand, RoleEvent};
use crate::id::WorkerId;

/// The sender of an attempt at a call, to whom the answer goes; the id is chosen by the user of the
/// session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallerId(pub u64);

/// A wait until everything passed to the coordinator so far is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlushId(pub u64);

/// A client's session with this leader; another session of the same name has another incarnation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientRef {
    /// The client's name.
    pub name: Arc<str>,
    /// A number that increases with each session that this leader begins.
    pub incarnation: u64,
}

/// An attempt to send a notice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoticeRef {
    /// The client.
    pub client: ClientRef,
    /// The notice's number.
    pub number: u64,
    /// The attempt, from 1.
    pub attempt: u32,
}

/// An input of the leader's session.
#[derive(Debug)]
pub enum ServerInput {
    /// A call was received.
    Call {
        /// Caller to answer.
        caller: CallerId,
        /// Subject on which the call was received.
        subject: String,
        /// The call.
        call: Call,
    },
    /// The coordinator has a command for a worker, a host or the sink of a client.
    Tell {
        /// The client.
        client: ClientRef,
        /// The command.
        command: RoleCommand,
    },
    /// See [`ServerAction::Flush`].
    Flushed(FlushId),
    /// See [`ServerAction::Request`].
    Replied {
        /// The client.
        client: ClientRef,
        /// The request's number.
        number: u64,
        /// The core's reply.
        reply: Reply,
    },
    /// A client answered an attempt to send a notice.
    NoticeAnswered {
        /// The attempt.
        notice: NoticeRef,
        /// The answer.
        ack: NoticeAck,
    },
    /// A client did not answer an attempt.
    NoticeFailed {
        /// The attempt.
        notice: NoticeRef,
        /// The reason.
        why: NoticeFailure,
    },
    /// See [`ServerAction::CheckLease`].
    LeaseChecked {
        /// Whether no other process has the lease; `None` if it could not be checked.
        is_held: Option<bool>,
    },
    /// Time passed.
    Tick,
}

/// A worker, a host or the sink, which the coordinator reaches through a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttachedRole {
    /// A worker; commands for it are sent to the client as [`RoleCommand::Worker`].
    Worker(WorkerId),
    /// A host; commands for it are sent to the client as [`RoleCommand::Host`].
    Host(WorkerId),
    /// The sink, replacing any other; commands for it are sent to the client as
    /// [`RoleCommand::Sink`].
    Sink,
}

/// An action of the leader's session.
#[derive(Debug)]
pub enum ServerAction {
    /// Announce to all clients that there is a leader with this term.
    Hello {
        /// The term.
        term: u64,
    },
    /// Route commands for this worker, host or sink to the client from now on.
    Attach {
        /// The client.
        client: ClientRef,
        /// The worker, host or sink.
        role: AttachedRole,
    },
    /// Pass an event to the coordinator.
    Event(RoleEvent),
    /// Report [`ServerInput::Flushed`] once the consequences of everything passed to the
    /// coordinator are durable. Results of other workers that are being checked are not waited for.
    Flush {
        /// The flush to report.
        flush: FlushId,
        /// Workers of the events that it is for.
        workers: BTreeSet<WorkerId>,
    },
    /// Pass a request to the core, and report [`ServerInput::Replied`].
    Request {
        /// The client.
        client: ClientRef,
        /// The request's number.
        number: u64,
        /// The request.
        request: Request,
    },
    /// Answer a caller from the core's state.
    Query {
        /// Caller to answer.
        caller: CallerId,
        /// The query.
        query: Query,
    },
    /// Answer a caller.
    Answer {
        /// Caller to answer.
        caller: CallerId,
        /// The answer.
        answer: Answer,
    },
    /// Send a notice; report [`ServerInput::NoticeAnswered`] or [`ServerInput::NoticeFailed`].
    Notify {
        /// The attempt.
        notice: NoticeRef,
        /// The message.
        message: Notice,
        /// Time limit for the answer.
        timeout: Duration,
    },
    /// Check whether another process has the lease; report [`ServerInput::LeaseChecked`].
    CheckLease,
    /// Another process leads: end.
    Lost,
    /// Log that a client is gone.
    Gone {
        /// The client.
        client: ClientRef,
        /// The reason, for the log.
        why: &'static str,
    },
}
