//! The client's side of the protocol.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use super::super::wire::{Answer, Call, CallBody, Notice, NoticeAck, NoticeBody};
use super::client_call::OpenCall;
use super::presence;
use crate::conversation::{
    HostCommand, HostEvent, Query, Request, RoleCommand, RoleEvent, SinkEvent, WorkerCommand,
    WorkerEvent, WorkerJoin,
};
use crate::core::Time;
use crate::id::WorkerId;

/// Maximum number of events in one call.
const EVENTS_MAX: usize = 256;

/// Time limit for the answer to a call, after which the call is repeated.
const CALL_TIMEOUT: Duration = Duration::from_secs(2);

/// Time limit for the answer to a request. It is longer, since a submission may wait for a full
/// queue.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// Time for which a closed session keeps sending events that do not matter (such as `Leave`): the
/// leader also detects the loss of a client by itself.
const LINGER: Duration = Duration::from_secs(1);

/// The number of a call within its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub u64);

/// The reason why an attempt at a call has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallFailure {
    /// The time limit passed without an answer, or the connection to the leader broke.
    TimedOut,
    /// No process leads, or the leader is stopping.
    NoLeader,
    /// The attempt could not be made, for example because the blob store does not answer.
    NotSent,
}

/// A question of a role to the leader.
#[derive(Clone, Debug)]
pub enum Question {
    /// A request, which the core answers with a reply.
    Request(Request),
    /// A query, which changes nothing.
    Query(Query),
}

/// An input of the client's session.
#[derive(Debug)]
pub enum ClientInput {
    /// A role reports an event.
    Event(RoleEvent),
    /// A role asks a question; the answer comes as [`ClientAction::Answer`] with its ticket.
    Ask {
        /// Number chosen by the caller; different for each question.
        ticket: u64,
        /// The question.
        question: Question,
    },
    /// An attempt at a call was answered.
    Answered {
        /// The call.
        call: CallId,
        /// The attempt.
        attempt: u32,
        /// The leader's answer.
        answer: Answer,
    },
    /// An attempt at a call was not answered.
    AttemptFailed {
        /// The call.
        call: CallId,
        /// The attempt.
        attempt: u32,
        /// The reason.
        why: CallFailure,
    },
    /// A leader has sent a notice; it is answered with [`ClientAction::AnswerNotice`].
    Notice {
        /// Number chosen by the caller.
        ticket: u64,
        /// The notice.
        notice: Notice,
    },
    /// A new leader has announced itself.
    Hello {
        /// The leader's term.
        term: u64,
    },
    /// Every role is gone; the session ends once every event that matters is acknowledged.
    Close,
    /// Time passed.
    Tick,
}

/// The reason why a leader refuses a client's messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The leader runs another workflow under the same name.
    OtherPlan,
    /// The client's role may not send this message.
    NotPermitted,
    /// A value in the message is invalid.
    Invalid(String),
}

/// An action of the client's session.
#[derive(Debug)]
pub enum ClientAction {
    /// Make an attempt at a call. The answer to an earlier attempt at the same call no longer
    /// counts.
    Send {
        /// The call.
        call: CallId,
        /// The attempt, from 1.
        attempt: u32,
        /// The message.
        message: Call,
        /// Time limit for the answer.
        timeout: Duration,
    },
    /// A call needs no more attempts.
    Ended {
        /// The call.
        call: CallId,
    },
    /// Deliver a command to a role.
    Deliver(RoleCommand),
    /// Answer a role's question.
    Answer {
        /// The question's ticket.
        ticket: u64,
        /// The answer.
        answer: Answer,
    },
    /// Answer a notice.
    AnswerNotice {
        /// The notice's ticket.
        ticket: u64,
        /// The answer.
        ack: NoticeAck,
    },
    /// End: the leader refuses this client's messages.
    Fail(Refusal),
    /// End: every event that matters is acknowledged.
    Finished,
}

/// A client's session with the leader, from the start of its process to the end; it survives
/// changes of the leader.
pub struct ClientSession {
    plan: [u8; 16],
    name: Arc<str>,
    session: u64,
    /// The highest term of a leader that is known; 0 before the first.
    term: u64,
    next_number: u64,
    /// Events that are not in a call yet, in order.
    queued_events: VecDeque<RoleEvent>,
    /// The call with events that is in progress.
    events_call: Option<CallId>,
    calls: BTreeMap<CallId, OpenCall>,
    /// Tickets of the questions in calls.
    tickets: BTreeMap<CallId, u64>,
    /// The last join of each worker.
    workers: BTreeMap<WorkerId, WorkerJoin>,
    hosts: BTreeSet<WorkerId>,
    has_sink: bool,
    sink_term: u64,
    /// Term, incarnation and number of the last notice that was accepted.
    last_notice: Option<(u64, u64, u64)>,
    /// Term and incarnation of the last notice for another session of the client's name.
    last_foreign_notice: Option<(u64, u64)>,
    /// Time until which events that do not matter are still sent; `None` before
    /// [`ClientInput::Close`].
    linger_until: Option<Time>,
    /// Whether `linger_until` has passed.
    is_overdue: bool,
}

// === impl ClientSession ===

impl ClientSession {
    /// A session of the client `name` (its seat, a dot, and one token that differs between
    /// processes) in the workflow with this digest. `session` differs between processes, and should
    /// be higher for a later process of the same name. If it is not, because a clock was set back,
    /// the leader accepts nothing from the later process until it has learnt from it that the
    /// earlier one is gone.
    pub fn new(plan: [u8; 16], name: Arc<str>, session: u64) -> Self {
        Self {
            plan,
            name,
            session,
            term: 0,
            next_number: 1,
            queued_events: VecDeque::new(),
            events_call: None,
            calls: BTreeMap::new(),
            tickets: BTreeMap::new(),
            workers: BTreeMap::new(),
            hosts: BTreeSet::new(),
            has_sink: false,
            sink_term: 0,
            last_notice: None,
            last_foreign_notice: None,
            linger_until: None,
            is_overdue: false,
        }
    }

    /// Sets the term of this process's sink. A sink of an earlier term, which may have been paused,
    /// cannot take over again.
    pub fn set_sink_term(&mut self, term: u64) {
        self.sink_term = term;
    }

    /// The client's name.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Events that are not in a call yet.
    pub fn queued_events(&self) -> impl Iterator<Item = &RoleEvent> {
        self.queued_events.iter()
    }

    /// Processes an input. Returns the actions, to be carried out in this order.
    pub fn handle(&mut self, now: Time, input: ClientInput) -> Vec<ClientAction> {
        let mut actions = Vec::new();
        match input {
            ClientInput::Event(event) => self.event(event),
            ClientInput::Ask { ticket, question } => self.ask(ticket, question),
            ClientInput::Answered {
                call,
                attempt,
                answer,
            } => self.answered(now, call, attempt, answer, &mut actions),
            ClientInput::AttemptFailed { call, attempt, why } => {
                if let Some(open) = self.current(call, attempt) {
                    open.failed(now, why);
                }
            }
            ClientInput::Notice { ticket, notice } => {
                let ack = self.notice(now, notice, &mut actions);
                actions.push(ClientAction::AnswerNotice { ticket, ack });
            }
            ClientInput::Hello { term } => self.leader(now, term, &mut actions),
            ClientInput::Close => {
                self.linger_until.get_or_insert(now.plus(LINGER));
            }
            ClientInput::Tick => {}
        }
        self.make_calls(now, &mut actions);
        self.is_overdue |= self
            .linger_until
            .is_some_and(|linger_until| now >= linger_until);
        if self.is_finished() {
            actions.push(ClientAction::Finished);
        }
        actions
    }

    /// Time at which [`ClientInput::Tick`] is due, unless another input comes before; `None` if
    /// never.
    pub fn next_deadline(&self) -> Option<Time> {
        let attempts = self.calls.values().map(OpenCall::next_attempt);
        let linger_until = self.linger_until.filter(|_| !self.is_overdue);
        attempts.chain(linger_until).min()
    }

    fn event(&mut self, event: RoleEvent) {
        match &event {
            RoleEvent::Worker(WorkerEvent::Join(join)) => {
                self.workers.insert(join.worker.clone(), join.clone());
            }
            RoleEvent::Worker(WorkerEvent::Leave { worker }) => {
                self.workers.remove(worker);
            }
            RoleEvent::Host(HostEvent::Join(join)) => {
                self.hosts.insert(join.host.clone());
            }
            RoleEvent::Host(HostEvent::Leave { host }) => {
                self.hosts.remove(host);
            }
            // Under the term that the session knows.
            RoleEvent::Sink(SinkEvent::Attach { .. }) => {
                self.has_sink = true;
                self.attach_sink();
                return;
            }
            _ => {}
        }
        if let Some(who) = event.heartbeat_sender() {
            // Without a leader they would pile up, and the newest heartbeat supersedes the others.
            self.queued_events
                .retain(|other| other.heartbeat_sender() != Some(who));
        }
        self.queued_events.push_back(event);
    }

    fn ask(&mut self, ticket: u64, question: Question) {
        let number = self.next_number;
        let (body, timeout) = match question {
            Question::Request(request) => (CallBody::Request { number, request }, REQUEST_TIMEOUT),
            Question::Query(query) => (CallBody::Query(query), CALL_TIMEOUT),
        };
        let call = self.open_call(body, timeout);
        self.tickets.insert(call, ticket);
    }

    fn open_call(&mut self, body: CallBody, timeout: Duration) -> CallId {
        let call = CallId(self.next_number);
        self.next_number += 1;
        self.calls.insert(call, OpenCall::new(body, timeout));
        call
    }

    fn current(&mut self, call: CallId, attempt: u32) -> Option<&mut OpenCall> {
        let open = self.calls.get_mut(&call);
        open.filter(|open| open.is_current(attempt))
    }

    fn answered(
        &mut self,
        now: Time,
        call: CallId,
        attempt: u32,
        answer: Answer,
        actions: &mut Vec<ClientAction>,
    ) {
        let Some(open) = self.current(call, attempt) else {
            return;
        };
        let refusal = match answer {
            Answer::Stopping => {
                open.failed(now, CallFailure::NoLeader);
                return;
            }
            Answer::OtherPlan => Refusal::OtherPlan,
            Answer::NotPermitted => Refusal::NotPermitted,
            Answer::Invalid(why) => Refusal::Invalid(why),
            answer => {
                self.calls.remove(&call);
                actions.push(ClientAction::Ended { call });
                if self.events_call == Some(call) {
                    self.events_call = None;
                    self.events_acknowledged(answer, actions);
                } else if let Some(ticket) = self.tickets.remove(&call) {
                    actions.push(ClientAction::Answer { ticket, answer });
                }
                return;
            }
        };
        actions.push(ClientAction::Fail(refusal));
    }

    /// Handles the acknowledgement of a call with events.
    fn events_acknowledged(&mut self, answer: Answer, actions: &mut Vec<ClientAction>) {
        let Answer::Done {
            unknown,
            sink_unknown,
        } = answer
        else {
            return;
        };
        for who in unknown {
            if self.workers.contains_key(&who) {
                let unknown = RoleCommand::Worker(who.clone(), WorkerCommand::Unknown);
                actions.push(ClientAction::Deliver(unknown));
            }
            if self.hosts.contains(&who) {
                actions.push(ClientAction::Deliver(RoleCommand::Host(
                    who,
                    HostCommand::Unknown,
                )));
            }
        }
        if sink_unknown && self.has_sink {
            self.attach_sink();
        }
    }

    fn attach_sink(&mut self) {
        let term = self.sink_term;
        self.queued_events
            .push_back(SinkEvent::Attach { term }.into());
    }

    /// Switches to a leader with a higher term. It knows no workers, hosts or sinks, and has none
    /// of the calls.
    fn leader(&mut self, now: Time, term: u64, actions: &mut Vec<ClientAction>) {
        if term <= self.term {
            return;
        }
        self.term = term;
        for open in self.calls.values_mut() {
            open.leader_changed(now);
        }
        self.announce(actions);
    }

    /// Announces the process's workers, hosts and sink again.
    fn announce(&mut self, actions: &mut Vec<ClientAction>) {
        for worker in self.workers.keys() {
            let unknown = RoleCommand::Worker(worker.clone(), WorkerCommand::Unknown);
            actions.push(ClientAction::Deliver(unknown));
        }
        for host in &self.hosts {
            let unknown = RoleCommand::Host(host.clone(), HostCommand::Unknown);
            actions.push(ClientAction::Deliver(unknown));
        }
        if self.has_sink {
            self.attach_sink();
        }
    }

    fn notice(&mut self, now: Time, notice: Notice, actions: &mut Vec<ClientAction>) -> NoticeAck {
        if notice.session != self.session {
            self.foreign_notice(&notice, actions);
            return NoticeAck::UnknownSession;
        }
        if notice.term < self.term {
            return NoticeAck::StaleLeader;
        }
        self.leader(now, notice.term, actions);
        let place = (notice.term, notice.incarnation, notice.number);
        if self.last_notice.is_some_and(|last| place <= last) {
            // A copy of an accepted notice.
            return NoticeAck::Accepted;
        }
        self.last_notice = Some(place);
        if let NoticeBody::Commands(commands) = notice.body {
            for command in commands {
                if self.is_here(&command) {
                    actions.push(ClientAction::Deliver(command));
                } else if let RoleCommand::Worker(worker, WorkerCommand::Assign(_)) = command {
                    // A late copy of a call has made a leader believe that it is here.
                    self.leave_again(worker);
                }
            }
        }
        NoticeAck::Accepted
    }

    /// Queues the departure of a worker, unless it is there.
    fn leave_again(&mut self, worker: WorkerId) {
        let leaves = |event: &RoleEvent| matches!(event, RoleEvent::Worker(WorkerEvent::Leave { worker: other }) if *other == worker);
        if !self.queued_events.iter().any(leaves) {
            self.queued_events
                .push_back(WorkerEvent::Leave { worker }.into());
        }
    }

    /// Handles a notice for another session of the client's name. The leader may have taken a late
    /// call of an earlier process for a successor's, and have dropped what this process announced.
    fn foreign_notice(&mut self, notice: &Notice, actions: &mut Vec<ClientAction>) {
        let place = Some((notice.term, notice.incarnation));
        if notice.term >= self.term && self.last_foreign_notice < place {
            self.last_foreign_notice = place;
            self.announce(actions);
        }
    }

    fn is_here(&self, command: &RoleCommand) -> bool {
        match command {
            RoleCommand::Worker(worker, _) => self.workers.contains_key(worker),
            RoleCommand::Host(host, _) => self.hosts.contains(host),
            RoleCommand::Sink(_) => self.has_sink,
        }
    }

    /// Begins every attempt that is due, and the next call with events if none is in progress.
    fn make_calls(&mut self, now: Time, actions: &mut Vec<ClientAction>) {
        if self.events_call.is_none() && !self.queued_events.is_empty() {
            let count = self.queued_events.len().min(EVENTS_MAX);
            let events = self.queued_events.drain(..count).collect();
            let number = self.next_number;
            let body = CallBody::Events {
                number,
                events,
                presence: Vec::new(),
            };
            let call = self.open_call(body, CALL_TIMEOUT);
            self.events_call = Some(call);
        }
        let Some((&CallId(open_from), _)) = self.calls.first_key_value() else {
            return;
        };
        let mut present = None;
        for (&call, open) in &mut self.calls {
            if open.next_attempt() > now {
                continue;
            }
            let attempt = open.begin(now, self.term);
            let mut body = open.body().clone();
            if let CallBody::Events {
                presence: carried, ..
            } = &mut body
                && attempt > 1
            {
                let of_now = || presence::of(&self.workers, &self.queued_events);
                carried.clone_from(present.get_or_insert_with(of_now));
            }
            let message = Call {
                plan: self.plan,
                term: self.term,
                client: self.name.clone(),
                session: self.session,
                open_from,
                body,
            };
            actions.push(ClientAction::Send {
                call,
                attempt,
                message,
                timeout: open.timeout(),
            });
        }
    }

    /// Whether the session is closed, no question is unanswered, and no event that matters is
    /// unacknowledged.
    fn is_finished(&self) -> bool {
        if self.linger_until.is_none() || !self.tickets.is_empty() {
            return false;
        }
        let Some(events_call) = self.events_call.and_then(|call| self.calls.get(&call)) else {
            return true;
        };
        let must_deliver = match events_call.body() {
            CallBody::Events { events, .. } => events.iter().any(RoleEvent::must_deliver),
            _ => false,
        };
        let must_deliver = must_deliver || self.queued_events.iter().any(RoleEvent::must_deliver);
        !must_deliver && self.is_overdue
    }
}
