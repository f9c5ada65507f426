//! What goes into a leader's sessions, and what comes out.

use std::sync::Arc;
use std::time::Duration;

use super::super::wire::{Answer, Call, Heard, Notice};
use super::notices::Unheard;
use crate::conversation::{Query, Reply, Request, RoleCommand, RoleEvent};
use crate::id::WorkerId;

/// Whoever waits for the answer to an attempt at a call; drawn by the caller of the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallerId(pub u64);

/// A wait for everything said to the coordinator so far to be durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlushId(pub u64);

/// A client's session with this leader: another session of the same name has another incarnation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientRef {
    /// The client's name.
    pub name: Arc<str>,
    /// Higher for each session that this leader begins.
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

/// Something that happened at the leader.
#[derive(Debug)]
pub enum ServerInput {
    /// A call came.
    Call {
        /// Whom to answer.
        caller: CallerId,
        /// The subject that it came on.
        subject: String,
        /// The call.
        call: Call,
    },
    /// The coordinator has something for a worker, a host or the sink behind a client.
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
    Heard {
        /// The attempt.
        notice: NoticeRef,
        /// The answer.
        heard: Heard,
    },
    /// A client did not answer an attempt.
    Unheard {
        /// The attempt.
        notice: NoticeRef,
        /// The reason.
        why: Unheard,
    },
    /// See [`ServerAction::LookAtLease`].
    Looked {
        /// Whether no other process has the lease; `None`: it could not be looked at.
        is_held: Option<bool>,
    },
    /// Time passed.
    Tick,
}

/// What is behind a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Behind {
    /// A worker: what the coordinator has for it is [`RoleCommand::Worker`] for the client.
    Worker(WorkerId),
    /// A host: what the coordinator has for it is [`RoleCommand::Host`] for the client.
    Host(WorkerId),
    /// The sink, in the place of any other: what the coordinator has for it is [`RoleCommand::Sink`] for the client.
    Sink,
}

/// Something to do for the leader.
#[derive(Debug)]
pub enum ServerAction {
    /// Say to all clients that a leader of this term is there.
    Hello {
        /// The term.
        term: u64,
    },
    /// From now on the way to this worker, host or sink is by the client.
    Attach {
        /// The client.
        client: ClientRef,
        /// What is behind it.
        behind: Behind,
    },
    /// Tell the coordinator.
    Event(RoleEvent),
    /// Report [`ServerInput::Flushed`] once what follows from all that the coordinator was told is durable.
    Flush(FlushId),
    /// Have the core answer a request, and report [`ServerInput::Replied`].
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
        /// Whom to answer.
        caller: CallerId,
        /// The question.
        query: Query,
    },
    /// Answer a caller.
    Answer {
        /// Whom.
        caller: CallerId,
        /// The answer.
        answer: Answer,
    },
    /// Send a notice; report [`ServerInput::Heard`] or [`ServerInput::Unheard`].
    Notify {
        /// The attempt.
        notice: NoticeRef,
        /// The message.
        message: Notice,
        /// How long to wait for the answer.
        timeout: Duration,
    },
    /// Look whether another process has the lease; report [`ServerInput::Looked`].
    LookAtLease,
    /// Another process leads: end.
    Lost,
    /// For the log: a client is gone.
    Gone {
        /// The client.
        client: ClientRef,
        /// In words.
        why: &'static str,
    },
}
