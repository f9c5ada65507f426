//! The leader's side of the protocol.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::super::admission::{Refused, admit};
use super::super::wire::{Answer, Call, CallBody, Notice, NoticeAck};
use super::leadership::{Leadership, TermCheck};
use super::notices::{NOTICE_TIMEOUT, NoticeFailure};
use super::replies;
use super::server_client::{CallStage, Client, Kind};
use super::server_events::{
    AttachedRole, CallerId, ClientRef, FlushId, NoticeRef, ServerAction, ServerInput,
};
use crate::conversation::{HostEvent, Query, Reply, RoleEvent, SinkEvent, WorkerEvent};
use crate::core::Time;
use crate::id::WorkerId;
use crate::plan::Plan;

/// Maximum number of characters of a client's name in the log.
const NAME_SHOWN: usize = 100;

/// Interval between two hellos: an idle client that has missed one receives the next.
const HELLO: Duration = Duration::from_secs(2);

/// The reason why a client is gone.
#[derive(Clone, Copy)]
enum GoneReason {
    /// Another process has its name.
    Replaced,
    /// The client does not listen or does not answer, with a description.
    Unresponsive(&'static str),
}

/// Number of clients beyond which those that are gone are forgotten, the oldest first.
const CLIENTS_MAX: usize = 4096;

/// The sessions of all clients with this leader.
pub struct ServerSession {
    plan: Arc<Plan>,
    digest: [u8; 16],
    leadership: Leadership,
    clients: BTreeMap<Arc<str>, Client>,
    next_incarnation: u64,
    next_flush: u64,
    /// Names of the clients whose calls wait for a flush.
    flushes: BTreeMap<FlushId, Arc<str>>,
    /// Highest term of a sink that was attached.
    sink_term: u64,
    /// Time before which no notice is due.
    next_notice: Time,
    next_hello: Time,
}

// === impl ServerSession ===

impl ServerSession {
    /// The sessions of a leader with this term.
    pub fn new(plan: Arc<Plan>, term: u64) -> Self {
        Self {
            digest: plan.digest(),
            plan,
            leadership: Leadership::new(term),
            clients: BTreeMap::new(),
            next_incarnation: 1,
            next_flush: 1,
            flushes: BTreeMap::new(),
            sink_term: 0,
            next_notice: Time(u64::MAX),
            next_hello: Time(0),
        }
    }

    /// Processes an input. Returns the actions, to be carried out in this order.
    pub fn handle(&mut self, now: Time, input: ServerInput) -> Vec<ServerAction> {
        let mut actions = Vec::new();
        match input {
            ServerInput::Call {
                caller,
                subject,
                call,
            } => self.call(now, caller, subject, call, &mut actions),
            ServerInput::Tell { client, command } => {
                if let Some(client) = self.client(&client) {
                    client.notices.tell(command);
                    let due = client.notices.next_deadline();
                    self.notify_at(due);
                }
            }
            ServerInput::Flushed(flush) => self.flushed(flush, &mut actions),
            ServerInput::Replied {
                client,
                number,
                reply,
            } => self.replied(&client, number, &reply, &mut actions),
            ServerInput::NoticeAnswered { notice, ack } => {
                self.notice_answered(now, &notice, &ack, &mut actions);
            }
            ServerInput::NoticeFailed { notice, why } => {
                self.notice_failed(now, &notice, why, &mut actions);
            }
            ServerInput::LeaseChecked { is_held } => {
                let waited = self.leadership.lease_checked(now, is_held);
                if self.leadership.is_lost() {
                    actions.push(ServerAction::Lost);
                }
                for (caller, call) in waited {
                    self.handle_call(now, caller, call, &mut actions);
                }
                if self.leadership.check_lease_again() {
                    actions.push(ServerAction::CheckLease);
                }
            }
            ServerInput::Tick => {}
        }
        if now >= self.next_hello {
            self.next_hello = now.plus(HELLO);
            let term = self.leadership.term();
            actions.push(ServerAction::Hello { term });
        }
        self.notify(now, &mut actions);
        actions
    }

    /// Time at which [`ServerInput::Tick`] is due, unless another input comes before.
    pub fn next_deadline(&self) -> Time {
        self.next_hello.min(self.next_notice)
    }

    fn notify_at(&mut self, due: Time) {
        self.next_notice = self.next_notice.min(due);
    }

    /// The referenced client, if its session is still the current one.
    fn client(&mut self, of: &ClientRef) -> Option<&mut Client> {
        let client = self.clients.get_mut(&of.name)?;
        (client.incarnation == of.incarnation).then_some(client)
    }

    fn call(
        &mut self,
        now: Time,
        caller: CallerId,
        subject: String,
        call: Call,
        actions: &mut Vec<ServerAction>,
    ) {
        let refused = if call.plan == self.digest {
            let admitted = admit(&call, &subject, &self.plan);
            admitted.err().map(|why| refuse(&call, &subject, &why))
        } else {
            Some(Answer::OtherPlan)
        };
        if let Some(answer) = refused {
            actions.push(ServerAction::Answer { caller, answer });
            return;
        }
        // A source that resumed from an obsolete leader's position would skip messages that it has
        // withdrawn since.
        let always = matches!(&call.body, CallBody::Query(Query::SourceNext(_)));
        match self.leadership.check_term(now, caller, call, always) {
            TermCheck::Accept(call) => self.handle_call(now, caller, *call, actions),
            TermCheck::AwaitLeaseCheck { begin: true } => actions.push(ServerAction::CheckLease),
            TermCheck::AwaitLeaseCheck { begin: false } | TermCheck::NotLeader => {}
        }
    }

    /// Processes an admitted call, as the leader.
    fn handle_call(
        &mut self,
        now: Time,
        caller: CallerId,
        call: Call,
        actions: &mut Vec<ServerAction>,
    ) {
        if let CallBody::Query(query) = call.body {
            actions.push(ServerAction::Query { caller, query });
            return;
        }
        let name = call.client;
        self.begin_session(now, &name, call.session, actions);
        let client = self.clients.get_mut(&name);
        let Some(client) = client.filter(|client| client.accepts(call.session)) else {
            return;
        };
        client.acknowledge_before(call.open_from);
        let is_late = match &call.body {
            CallBody::Events { number, .. } => {
                matches!(client.call_stage(*number), CallStage::Obsolete)
            }
            CallBody::Request { number, .. } => client.has_answer_to(*number),
            CallBody::Query(_) => true,
        };
        if is_late {
            return;
        }
        client.note_call(now);
        let due = client.notices.next_deadline();
        match call.body {
            CallBody::Events {
                number,
                events,
                presence,
            } => {
                self.presence(&name, number, presence, actions);
                self.events(&name, number, events, caller, actions);
            }
            CallBody::Request { number, request } => match client.replies.ask(number, caller) {
                replies::RequestStage::New => actions.push(ServerAction::Request {
                    client: client.refer(&name),
                    number,
                    request,
                }),
                replies::RequestStage::Replied(reply) => actions.push(ServerAction::Answer {
                    caller,
                    answer: Answer::Reply(reply),
                }),
                replies::RequestStage::Pending => {}
            },
            CallBody::Query(_) => {}
        }
        self.notify_at(due);
    }

    /// Begins a session for a call, if it is new; it replaces an earlier session of the name that
    /// may not have ended.
    fn begin_session(
        &mut self,
        now: Time,
        name: &Arc<str>,
        session: u64,
        actions: &mut Vec<ServerAction>,
    ) {
        let incarnation = self.next_incarnation;
        let client = match self.clients.get_mut(name) {
            Some(client) if client.session == session => return,
            // If it is in fact the later one, its process reports that when the client is pinged.
            Some(client) if client.excludes(session) => return,
            Some(client) => client.replaced_by(now, session, incarnation),
            None => Client::new(now, session, incarnation),
        };
        self.next_incarnation += 1;
        self.forget(name, GoneReason::Replaced, actions);
        self.notify_at(client.notices.next_deadline());
        self.clients.insert(name.clone(), client);
        self.forget_oldest();
    }

    /// Limits the number of clients that are kept after they are gone.
    fn forget_oldest(&mut self) {
        if self.clients.len() < CLIENTS_MAX {
            return;
        }
        let gone = self
            .clients
            .iter()
            .filter(|(_, client)| !client.is_present());
        let oldest = gone.min_by_key(|(_, client)| client.incarnation);
        if let Some(name) = oldest.map(|(name, _)| name.clone()) {
            self.clients.remove(&name);
        }
    }

    /// Passes on that workers live whose events wait behind a call. In an attempt that comes after the answer, they
    /// may have left since.
    fn presence(
        &mut self,
        name: &Arc<str>,
        number: u64,
        presence: Vec<WorkerEvent>,
        actions: &mut Vec<ServerAction>,
    ) {
        let is_answered =
            |client: &Client| matches!(client.call_stage(number), CallStage::Answered);
        if self.clients.get(name).is_none_or(is_answered) {
            return;
        }
        let has_joined = |session: &Self, worker: &WorkerId| {
            let client = session.clients.get(name);
            client.is_some_and(|client| client.has_role(Kind::Worker, worker))
        };
        for event in presence {
            // A worker that has joined need not join again; a heartbeat counts after the join only.
            if has_joined(self, event.worker()) == event.is_heartbeat() {
                let (mut unknown, mut sink_unknown) = (Vec::new(), false);
                self.event(name, event.into(), &mut unknown, &mut sink_unknown, actions);
            }
        }
    }

    fn events(
        &mut self,
        name: &Arc<str>,
        number: u64,
        events: Vec<RoleEvent>,
        caller: CallerId,
        actions: &mut Vec<ServerAction>,
    ) {
        let Some(client) = self.clients.get_mut(name) else {
            return;
        };
        match client.call_stage(number) {
            // Such a call was dropped before.
            CallStage::Obsolete => {}
            CallStage::InProgress => client.wait(caller),
            CallStage::Answered => {
                let answer = events_answer(client);
                actions.push(ServerAction::Answer { caller, answer });
            }
            CallStage::New => {
                let (mut unknown, mut sink_unknown) = (Vec::new(), false);
                let of_workers = events.iter().filter_map(|event| match event {
                    RoleEvent::Worker(event) => Some(event.worker().clone()),
                    _ => None,
                });
                let workers = of_workers.collect();
                for event in events {
                    self.event(name, event, &mut unknown, &mut sink_unknown, actions);
                }
                let flush = FlushId(self.next_flush);
                self.next_flush += 1;
                if let Some(client) = self.clients.get_mut(name) {
                    client.record_events(number, unknown, sink_unknown, flush, caller);
                    self.flushes.insert(flush, name.clone());
                }
                actions.push(ServerAction::Flush { flush, workers });
            }
        }
    }

    /// Passes on one event of a client.
    fn event(
        &mut self,
        name: &Arc<str>,
        event: RoleEvent,
        unknown: &mut Vec<WorkerId>,
        sink_unknown: &mut bool,
        actions: &mut Vec<ServerAction>,
    ) {
        if let RoleEvent::Sink(SinkEvent::Attach { term }) = event {
            self.attach_sink(name, term, actions);
            return;
        }
        let Some(client) = self.clients.get_mut(name) else {
            return;
        };
        let mut attach = None;
        match &event {
            RoleEvent::Worker(WorkerEvent::Join(join)) => {
                client.add_role(Kind::Worker, join.worker.clone());
                attach = Some(AttachedRole::Worker(join.worker.clone()));
            }
            RoleEvent::Host(HostEvent::Join(join)) => {
                client.add_role(Kind::Host, join.host.clone());
                attach = Some(AttachedRole::Host(join.host.clone()));
            }
            RoleEvent::Worker(WorkerEvent::Heartbeat { worker, .. })
                if !client.has_role(Kind::Worker, worker) =>
            {
                unknown.push(worker.clone());
                return;
            }
            RoleEvent::Host(HostEvent::Heartbeat { host })
                if !client.has_role(Kind::Host, host) =>
            {
                unknown.push(host.clone());
                return;
            }
            RoleEvent::Worker(WorkerEvent::Leave { worker }) => {
                client.remove_role(Kind::Worker, worker);
            }
            RoleEvent::Host(HostEvent::Leave { host }) => client.remove_role(Kind::Host, host),
            RoleEvent::Sink(SinkEvent::Emitted { .. }) => *sink_unknown |= !client.has_sink,
            _ => {}
        }
        actions.extend(attach.map(|role| ServerAction::Attach {
            client: client.refer(name),
            role,
        }));
        actions.push(ServerAction::Event(event));
    }

    /// Attaches the sink of a client in place of any other, unless it has a lower term.
    fn attach_sink(&mut self, name: &Arc<str>, term: u64, actions: &mut Vec<ServerAction>) {
        if self.sink_term > term {
            return;
        }
        self.sink_term = term;
        for client in self.clients.values_mut() {
            client.has_sink = false;
        }
        if let Some(client) = self.clients.get_mut(name) {
            client.has_sink = true;
            actions.push(ServerAction::Attach {
                client: client.refer(name),
                role: AttachedRole::Sink,
            });
        }
    }

    fn flushed(&mut self, flush: FlushId, actions: &mut Vec<ServerAction>) {
        let name = self.flushes.remove(&flush);
        let Some(client) = name.and_then(|name| self.clients.get_mut(&name)) else {
            return;
        };
        for caller in client.flushed(flush) {
            let answer = events_answer(client);
            actions.push(ServerAction::Answer { caller, answer });
        }
    }

    fn replied(
        &mut self,
        of: &ClientRef,
        number: u64,
        reply: &Reply,
        actions: &mut Vec<ServerAction>,
    ) {
        let Some(client) = self.client(of) else {
            return;
        };
        for caller in client.replies.replied(number, reply) {
            let answer = Answer::Reply(reply.clone());
            actions.push(ServerAction::Answer { caller, answer });
        }
    }

    fn notice_answered(
        &mut self,
        now: Time,
        notice: &NoticeRef,
        ack: &NoticeAck,
        actions: &mut Vec<ServerAction>,
    ) {
        let Some(client) = self.client(&notice.client) else {
            return;
        };
        if *ack == NoticeAck::UnknownSession {
            let name = &notice.client.name;
            self.forget(name, GoneReason::Replaced, actions);
            return;
        }
        client.notices.acknowledged(now, notice.number);
        let due = client.notices.next_deadline();
        self.notify_at(due);
        if *ack == NoticeAck::StaleLeader && self.leadership.note_later_leader(now) {
            actions.push(ServerAction::CheckLease);
        }
    }

    fn notice_failed(
        &mut self,
        now: Time,
        notice: &NoticeRef,
        why: NoticeFailure,
        actions: &mut Vec<ServerAction>,
    ) {
        let Some(client) = self.client(&notice.client) else {
            return;
        };
        let gone = client
            .notices
            .attempt_failed(now, notice.number, notice.attempt, why);
        let due = client.notices.next_deadline();
        self.notify_at(due);
        if let Some(why) = gone {
            self.forget(&notice.client.name, GoneReason::Unresponsive(why), actions);
        }
    }

    /// Handles the loss of a client: its workers and hosts leave.
    fn forget(&mut self, name: &Arc<str>, why: GoneReason, actions: &mut Vec<ServerAction>) {
        let client = self.clients.get_mut(name);
        let Some(client) = client.filter(|client| client.is_present()) else {
            return;
        };
        let (is_replaced, why) = match why {
            GoneReason::Replaced => (true, "another process has its name"),
            GoneReason::Unresponsive(why) => (false, why),
        };
        actions.push(ServerAction::Gone {
            client: client.refer(name),
            why,
        });
        for (kind, who) in client.leave(is_replaced) {
            actions.push(ServerAction::Event(match kind {
                Kind::Worker => WorkerEvent::Lost { worker: who }.into(),
                Kind::Host => HostEvent::Leave { host: who }.into(),
            }));
        }
    }

    /// Sends every notice that is due.
    fn notify(&mut self, now: Time, actions: &mut Vec<ServerAction>) {
        if now < self.next_notice {
            return;
        }
        self.next_notice = Time(u64::MAX);
        let term = self.leadership.term();
        let mut gone = Vec::new();
        for (name, client) in &mut self.clients {
            if let Some(why) = client.notices.expire(now) {
                gone.push((name.clone(), why));
                continue;
            }
            let attempt = client.notices.next(now);
            self.next_notice = self.next_notice.min(client.notices.next_deadline());
            let Some(attempt) = attempt else {
                continue;
            };
            let message = Notice {
                term,
                session: client.session,
                incarnation: client.incarnation,
                number: attempt.number,
                body: attempt.body,
            };
            let notice = NoticeRef {
                client: client.refer(name),
                number: attempt.number,
                attempt: attempt.attempt,
            };
            actions.push(ServerAction::Notify {
                notice,
                message,
                timeout: NOTICE_TIMEOUT,
            });
        }
        for (name, why) in gone {
            self.forget(&name, GoneReason::Unresponsive(why), actions);
        }
    }
}

/// The answer to the last call with events that was accepted.
fn events_answer(client: &Client) -> Answer {
    let last = client.last_events();
    Answer::Done {
        unknown: last.map(|last| last.unknown.clone()).unwrap_or_default(),
        sink_unknown: last.is_some_and(|last| last.sink_unknown),
    }
}

/// Logs a refusal, and returns the answer for the client.
fn refuse(call: &Call, subject: &str, refused: &Refused) -> Answer {
    let client: String = call.client.chars().take(NAME_SHOWN).collect();
    tracing::warn!(?client, subject, "a call is refused: {refused}");
    match (&call.body, refused) {
        // A client that asked for a user reports the refusal to the user, and continues.
        (CallBody::Request { .. }, refused) => Answer::Reply(Reply::Invalid {
            why: refused.to_string(),
        }),
        (_, Refused::NotPermitted(_)) => Answer::NotPermitted,
        (_, Refused::Invalid(why)) => Answer::Invalid(why.clone()),
    }
}
