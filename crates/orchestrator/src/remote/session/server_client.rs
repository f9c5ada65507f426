//! State of one client at the leader.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::notices::Notices;
use super::replies::{CALLERS_MAX, Replies};
use super::server_events::{CallerId, ClientRef, FlushId};
use crate::core::Time;
use crate::id::WorkerId;

/// Kind of a role that a client connects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Worker,
    Host,
}

/// The last call with events that was accepted.
pub(super) struct Taken {
    pub(super) number: u64,
    /// Workers and hosts in the call's events that have not joined.
    pub(super) unknown: Vec<WorkerId>,
    pub(super) sink_unknown: bool,
    /// The flush after which the call is answered; `None` once it is done.
    flush: Option<FlushId>,
    /// Callers that wait for the answer.
    callers: Vec<CallerId>,
}

/// Classification of a call with events by its number.
pub(super) enum Number {
    /// A new call.
    New,
    /// The call in progress; the caller waits with the others.
    UnderWay,
    /// The last call, whose answer can be repeated at once.
    Taken,
    /// A late copy of an earlier call, which has been answered.
    Late,
}

/// Presence of a client.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    There,
    /// It does not answer. If it calls again, its numbers continue.
    Gone,
    /// Its process has ended: another has its name.
    Over,
}

/// Maximum number of earlier sessions that are kept for one name.
const FORMER_MAX: usize = 16;

/// A client's session with this leader.
pub(super) struct Client {
    pub(super) session: u64,
    pub(super) incarnation: u64,
    pub(super) notices: Notices,
    pub(super) replies: Replies,
    pub(super) has_sink: bool,
    state: State,
    /// The latest earlier sessions under the client's name, whose calls are too late.
    former: Vec<u64>,
    taken: Option<Taken>,
    behind: BTreeSet<(Kind, WorkerId)>,
    /// The client has received the answers to all calls before this number.
    open_from: u64,
}

// === impl Client ===

impl Client {
    pub(super) fn new(now: Time, session: u64, incarnation: u64) -> Self {
        Self {
            session,
            incarnation,
            notices: Notices::new(now),
            replies: Replies::default(),
            has_sink: false,
            state: State::There,
            former: Vec::new(),
            taken: None,
            behind: BTreeSet::new(),
            open_from: 0,
        }
    }

    /// The session that replaces this one.
    pub(super) fn succeeded_by(&self, now: Time, session: u64, incarnation: u64) -> Self {
        let mut former = self.former.clone();
        if former.len() == FORMER_MAX {
            former.remove(0);
        }
        former.push(self.session);
        Self {
            former,
            ..Self::new(now, session, incarnation)
        }
    }

    /// Whether calls of another session are ignored until this one is known to be gone: it is an
    /// earlier one, from which most likely only late copies come.
    pub(super) fn keeps_out(&self, session: u64) -> bool {
        self.is_there() && (session < self.session || self.former.contains(&session))
    }

    /// Whether calls of this session are accepted.
    pub(super) fn takes(&self, session: u64) -> bool {
        self.session == session && !self.has_ended()
    }

    /// Whether the session's process is known to have ended.
    pub(super) fn has_ended(&self) -> bool {
        self.state == State::Over
    }

    pub(super) fn is_there(&self) -> bool {
        self.state == State::There
    }

    /// Records a call that is not a late copy, which shows that the client is present.
    pub(super) fn is_heard_of(&mut self, now: Time) {
        if self.state == State::Gone {
            self.state = State::There;
            self.notices.begin(now);
        }
    }

    /// Records that the client is gone. Returns its workers and hosts.
    pub(super) fn leave(&mut self, is_over: bool) -> BTreeSet<(Kind, WorkerId)> {
        self.state = if is_over { State::Over } else { State::Gone };
        self.has_sink = false;
        self.notices.end();
        std::mem::take(&mut self.behind)
    }

    pub(super) fn refer(&self, name: &Arc<str>) -> ClientRef {
        ClientRef {
            name: name.clone(),
            incarnation: self.incarnation,
        }
    }

    /// Records that the client has received the answers to all calls before this number.
    pub(super) fn has_answers_before(&mut self, number: u64) {
        if self.open_from < number {
            self.open_from = number;
            self.replies.forget_before(number);
        }
    }

    /// Whether the client has received the answer to this call, so that it is a late copy.
    pub(super) fn has_answer_to(&self, number: u64) -> bool {
        number < self.open_from
    }

    pub(super) fn number(&self, number: u64) -> Number {
        match &self.taken {
            Some(taken) if taken.number == number && taken.flush.is_some() => Number::UnderWay,
            Some(taken) if taken.number == number => Number::Taken,
            Some(taken) if taken.number > number => Number::Late,
            _ => Number::New,
        }
    }

    pub(super) fn taken(&self) -> Option<&Taken> {
        self.taken.as_ref()
    }

    /// Records a call whose events were passed to the core; its callers are answered after the
    /// flush.
    pub(super) fn take(
        &mut self,
        number: u64,
        unknown: Vec<WorkerId>,
        sink_unknown: bool,
        flush: FlushId,
        caller: CallerId,
    ) {
        self.taken = Some(Taken {
            number,
            unknown,
            sink_unknown,
            flush: Some(flush),
            callers: vec![caller],
        });
    }

    /// Adds a caller that waits for the answer to the call in progress.
    pub(super) fn wait(&mut self, caller: CallerId) {
        if let Some(taken) = &mut self.taken {
            if taken.callers.len() == CALLERS_MAX {
                taken.callers.remove(0);
            }
            taken.callers.push(caller);
        }
    }

    /// Records that the consequences of the call are durable. Returns the callers that wait for the
    /// answer.
    pub(super) fn flushed(&mut self, flush: FlushId) -> Vec<CallerId> {
        let Some(taken) = self.taken.as_mut() else {
            return Vec::new();
        };
        if taken.flush != Some(flush) {
            return Vec::new();
        }
        taken.flush = None;
        std::mem::take(&mut taken.callers)
    }

    pub(super) fn enlist(&mut self, kind: Kind, who: WorkerId) {
        self.behind.insert((kind, who));
    }

    pub(super) fn strike_off(&mut self, kind: Kind, who: &WorkerId) {
        self.behind.remove(&(kind, who.clone()));
    }

    pub(super) fn is_enlisted(&self, kind: Kind, who: &WorkerId) -> bool {
        self.behind.contains(&(kind, who.clone()))
    }
}
