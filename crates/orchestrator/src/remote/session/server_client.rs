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
pub(super) struct LastEventsCall {
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
pub(super) enum CallStage {
    /// A new call.
    New,
    /// The call in progress; the caller waits with the others.
    InProgress,
    /// The last call, whose answer can be repeated at once.
    Answered,
    /// A late copy of an earlier call, which has been answered.
    Obsolete,
}

/// Whether a client is present.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ClientState {
    Present,
    /// The client does not answer. If it calls again, its numbers continue.
    Gone,
    /// The process of the client has ended, and another process has its name.
    Replaced,
}

/// Maximum number of earlier sessions that are kept for one name.
const FORMER_MAX: usize = 16;

/// A session that another one of its client's name has replaced. Its process may still run: with a
/// clock set back, a late call of the process before it looks like a successor's.
struct FormerSession {
    session: u64,
    /// Kept so that a session that comes back is not heard twice.
    last_events: Option<LastEventsCall>,
}

/// A client's session with this leader.
pub(super) struct Client {
    pub(super) session: u64,
    pub(super) incarnation: u64,
    pub(super) notices: Notices,
    pub(super) replies: Replies,
    pub(super) has_sink: bool,
    state: ClientState,
    /// The latest other sessions under the client's name, the oldest first.
    former: Vec<FormerSession>,
    last_events: Option<LastEventsCall>,
    roles: BTreeSet<(Kind, WorkerId)>,
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
            state: ClientState::Present,
            former: Vec::new(),
            last_events: None,
            roles: BTreeSet::new(),
            open_from: 0,
        }
    }

    /// The session that replaces this one, which may be one that it replaced itself: then its
    /// calls continue where they were.
    pub(super) fn replaced_by(&mut self, now: Time, session: u64, incarnation: u64) -> Self {
        let mut former = std::mem::take(&mut self.former);
        let known = former.iter().position(|former| former.session == session);
        let last_events = known.and_then(|at| former.remove(at).last_events);
        if former.len() == FORMER_MAX {
            former.remove(0);
        }
        former.push(FormerSession {
            session: self.session,
            last_events: self.last_events.take(),
        });
        Self {
            former,
            last_events,
            ..Self::new(now, session, incarnation)
        }
    }

    /// Whether calls of another session are ignored until this one is known to be gone: it is an
    /// earlier one, from which most likely only late copies come.
    pub(super) fn excludes(&self, session: u64) -> bool {
        let is_former = || self.former.iter().any(|former| former.session == session);
        self.is_present() && (session < self.session || is_former())
    }

    /// Whether calls of this session are accepted.
    pub(super) fn accepts(&self, session: u64) -> bool {
        self.session == session && !self.is_replaced()
    }

    /// Whether the session's process is known to have ended.
    pub(super) fn is_replaced(&self) -> bool {
        self.state == ClientState::Replaced
    }

    pub(super) fn is_present(&self) -> bool {
        self.state == ClientState::Present
    }

    /// Records a call that is not a late copy, which shows that the client is present.
    pub(super) fn note_call(&mut self, now: Time) {
        if self.state == ClientState::Gone {
            self.state = ClientState::Present;
            self.notices.begin(now);
        }
    }

    /// Records that the client is gone. Returns its workers and hosts.
    pub(super) fn leave(&mut self, is_replaced: bool) -> BTreeSet<(Kind, WorkerId)> {
        self.state = if is_replaced {
            ClientState::Replaced
        } else {
            ClientState::Gone
        };
        self.has_sink = false;
        self.notices.end();
        std::mem::take(&mut self.roles)
    }

    pub(super) fn refer(&self, name: &Arc<str>) -> ClientRef {
        ClientRef {
            name: name.clone(),
            incarnation: self.incarnation,
        }
    }

    /// Records that the client has received the answers to all calls before this number.
    pub(super) fn acknowledge_before(&mut self, number: u64) {
        if self.open_from < number {
            self.open_from = number;
            self.replies.forget_before(number);
        }
    }

    /// Whether the client has received the answer to this call, so that it is a late copy.
    pub(super) fn has_answer_to(&self, number: u64) -> bool {
        number < self.open_from
    }

    pub(super) fn call_stage(&self, number: u64) -> CallStage {
        match &self.last_events {
            Some(last) if last.number == number && last.flush.is_some() => CallStage::InProgress,
            Some(last) if last.number == number => CallStage::Answered,
            Some(last) if last.number > number => CallStage::Obsolete,
            _ => CallStage::New,
        }
    }

    pub(super) fn last_events(&self) -> Option<&LastEventsCall> {
        self.last_events.as_ref()
    }

    /// Records a call whose events were passed to the core; its callers are answered after the
    /// flush.
    pub(super) fn record_events(
        &mut self,
        number: u64,
        unknown: Vec<WorkerId>,
        sink_unknown: bool,
        flush: FlushId,
        caller: CallerId,
    ) {
        self.last_events = Some(LastEventsCall {
            number,
            unknown,
            sink_unknown,
            flush: Some(flush),
            callers: vec![caller],
        });
    }

    /// Adds a caller that waits for the answer to the call in progress.
    pub(super) fn wait(&mut self, caller: CallerId) {
        if let Some(last_events) = &mut self.last_events {
            if last_events.callers.len() == CALLERS_MAX {
                last_events.callers.remove(0);
            }
            last_events.callers.push(caller);
        }
    }

    /// Records that the consequences of the call are durable. Returns the callers that wait for the
    /// answer.
    pub(super) fn flushed(&mut self, flush: FlushId) -> Vec<CallerId> {
        let current = self.last_events.as_mut();
        if let Some(last_events) = current.filter(|last| last.flush == Some(flush)) {
            last_events.flush = None;
            return std::mem::take(&mut last_events.callers);
        }
        let former = self.former.iter_mut();
        let mut calls = former.filter_map(|former| former.last_events.as_mut());
        if let Some(last_events) = calls.find(|last| last.flush == Some(flush)) {
            // Answered when it is repeated, should its session come back.
            last_events.flush = None;
            last_events.callers.clear();
        }
        Vec::new()
    }

    pub(super) fn add_role(&mut self, kind: Kind, who: WorkerId) {
        self.roles.insert((kind, who));
    }

    pub(super) fn remove_role(&mut self, kind: Kind, who: &WorkerId) {
        self.roles.remove(&(kind, who.clone()));
    }

    pub(super) fn has_role(&self, kind: Kind, who: &WorkerId) -> bool {
        self.roles.contains(&(kind, who.clone()))
    }
}
