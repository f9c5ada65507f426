//! The leader's side of the protocol.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::super::gate::{Refused, admit};
use super::super::wire::{Answer, Call, CallBody, Heard, Notice};
use super::leadership::{Doubt, Leadership};
use super::notices::{NOTICE_TIMEOUT, Unheard};
use super::replies;
use super::server_client::{Client, Kind, Number};
use super::server_events::{
    Behind, CallerId, ClientRef, FlushId, NoticeRef, ServerAction, ServerInput,
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
enum Why {
    /// Another process has its name.
    Succeeded,
    /// It does not listen or answer, with a description.
    Given(&'static str),
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
    /// Clients whose calls wait for a flush.
    flushes: BTreeMap<FlushId, ClientRef>,
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
            ServerInput::Heard { notice, heard } => {
                self.heard(now, &notice, &heard, &mut actions);
            }
            ServerInput::Unheard { notice, why } => {
                self.unheard(now, &notice, why, &mut actions);
            }
            ServerInput::Looked { is_held } => {
                let waited = self.leadership.looked(now, is_held);
                if self.leadership.is_lost() {
                    actions.push(ServerAction::Lost);
                }
                for (caller, call) in waited {
                    self.take(now, caller, call, &mut actions);
                }
                if self.leadership.looks_again() {
                    actions.push(ServerAction::LookAtLease);
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
        match self.leadership.doubt(now, caller, call, always) {
            Doubt::None(call) => self.take(now, caller, *call, actions),
            Doubt::Waits { look: true } => actions.push(ServerAction::LookAtLease),
            Doubt::Waits { look: false } | Doubt::Lost => {}
        }
    }

    /// Processes an admitted call, as the leader.
    fn take(&mut self, now: Time, caller: CallerId, call: Call, actions: &mut Vec<ServerAction>) {
        if let CallBody::Query(query) = call.body {
            actions.push(ServerAction::Query { caller, query });
            return;
        }
        let name = call.client;
        self.meet(now, &name, call.session, actions);
        let client = self.clients.get_mut(&name);
        let Some(client) = client.filter(|client| client.takes(call.session)) else {
            return;
        };
        client.has_answers_before(call.open_from);
        let is_late = match &call.body {
            CallBody::Events { number, .. } => matches!(client.number(*number), Number::Late),
            CallBody::Request { number, .. } => client.has_answer_to(*number),
            CallBody::Query(_) => true,
        };
        if is_late {
            return;
        }
        client.is_heard_of(now);
        let due = client.notices.next_deadline();
        match call.body {
            CallBody::Events { number, events } => {
                self.events(&name, number, events, caller, actions);
            }
            CallBody::Request { number, request } => match client.replies.ask(number, caller) {
                replies::Taken::New => actions.push(ServerAction::Request {
                    client: client.refer(&name),
                    number,
                    request,
                }),
                replies::Taken::Replied(reply) => actions.push(ServerAction::Answer {
                    caller,
                    answer: Answer::Reply(reply),
                }),
                replies::Taken::Waits => {}
            },
            CallBody::Query(_) => {}
        }
        self.notify_at(due);
    }

    /// Begins a session for a call, if it is new; it replaces an earlier session of the name that
    /// may not have ended.
    fn meet(&mut self, now: Time, name: &Arc<str>, session: u64, actions: &mut Vec<ServerAction>) {
        let incarnation = self.next_incarnation;
        let client = match self.clients.get(name) {
            Some(client) if client.session == session => return,
            // If it is in fact the later one, its process reports that when the client is pinged.
            Some(client) if client.keeps_out(session) => return,
            Some(client) => client.succeeded_by(now, session, incarnation),
            None => Client::new(now, session, incarnation),
        };
        self.next_incarnation += 1;
        self.forget(name, Why::Succeeded, actions);
        self.notify_at(client.notices.next_deadline());
        self.clients.insert(name.clone(), client);
        self.forget_oldest();
    }

    /// Limits the number of clients that are kept after they are gone.
    fn forget_oldest(&mut self) {
        if self.clients.len() < CLIENTS_MAX {
            return;
        }
        let gone = self.clients.iter().filter(|(_, client)| !client.is_there());
        let oldest = gone.min_by_key(|(_, client)| client.incarnation);
        if let Some(name) = oldest.map(|(name, _)| name.clone()) {
            self.clients.remove(&name);
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
        match client.number(number) {
            // Such a call was dropped before.
            Number::Late => {}
            Number::UnderWay => client.wait(caller),
            Number::Taken => {
                let answer = done(client);
                actions.push(ServerAction::Answer { caller, answer });
            }
            Number::New => {
                let (mut unknown, mut sink_unknown) = (Vec::new(), false);
                for event in events {
                    self.event(name, event, &mut unknown, &mut sink_unknown, actions);
                }
                let flush = FlushId(self.next_flush);
                self.next_flush += 1;
                if let Some(client) = self.clients.get_mut(name) {
                    client.take(number, unknown, sink_unknown, flush, caller);
                    self.flushes.insert(flush, client.refer(name));
                }
                actions.push(ServerAction::Flush(flush));
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
                client.enlist(Kind::Worker, join.worker.clone());
                attach = Some(Behind::Worker(join.worker.clone()));
            }
            RoleEvent::Host(HostEvent::Join(join)) => {
                client.enlist(Kind::Host, join.host.clone());
                attach = Some(Behind::Host(join.host.clone()));
            }
            RoleEvent::Worker(WorkerEvent::Heartbeat { worker, .. })
                if !client.is_enlisted(Kind::Worker, worker) =>
            {
                unknown.push(worker.clone());
                return;
            }
            RoleEvent::Host(HostEvent::Beat { host }) if !client.is_enlisted(Kind::Host, host) => {
                unknown.push(host.clone());
                return;
            }
            RoleEvent::Worker(WorkerEvent::Leave { worker }) => {
                client.strike_off(Kind::Worker, worker);
            }
            RoleEvent::Host(HostEvent::Leave { host }) => client.strike_off(Kind::Host, host),
            RoleEvent::Sink(SinkEvent::Emitted { .. }) => *sink_unknown |= !client.has_sink,
            _ => {}
        }
        actions.extend(attach.map(|behind| ServerAction::Attach {
            client: client.refer(name),
            behind,
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
                behind: Behind::Sink,
            });
        }
    }

    fn flushed(&mut self, flush: FlushId, actions: &mut Vec<ServerAction>) {
        let Some(of) = self.flushes.remove(&flush) else {
            return;
        };
        let Some(client) = self.client(&of) else {
            return;
        };
        for caller in client.flushed(flush) {
            let answer = done(client);
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

    fn heard(
        &mut self,
        now: Time,
        notice: &NoticeRef,
        heard: &Heard,
        actions: &mut Vec<ServerAction>,
    ) {
        let Some(client) = self.client(&notice.client) else {
            return;
        };
        if *heard == Heard::NotMe {
            let name = &notice.client.name;
            self.forget(name, Why::Succeeded, actions);
            return;
        }
        client.notices.heard(now, notice.number);
        let due = client.notices.next_deadline();
        self.notify_at(due);
        if *heard == Heard::NotFromYou && self.leadership.is_doubted(now) {
            actions.push(ServerAction::LookAtLease);
        }
    }

    fn unheard(
        &mut self,
        now: Time,
        notice: &NoticeRef,
        why: Unheard,
        actions: &mut Vec<ServerAction>,
    ) {
        let Some(client) = self.client(&notice.client) else {
            return;
        };
        let gone = client
            .notices
            .unheard(now, notice.number, notice.attempt, why);
        let due = client.notices.next_deadline();
        self.notify_at(due);
        if let Some(why) = gone {
            self.forget(&notice.client.name, Why::Given(why), actions);
        }
    }

    /// Handles the loss of a client: its workers and hosts leave.
    fn forget(&mut self, name: &Arc<str>, why: Why, actions: &mut Vec<ServerAction>) {
        let client = self.clients.get_mut(name);
        let Some(client) = client.filter(|client| client.is_there()) else {
            return;
        };
        let (is_over, why) = match why {
            Why::Succeeded => (true, "another process has its name"),
            Why::Given(why) => (false, why),
        };
        actions.push(ServerAction::Gone {
            client: client.refer(name),
            why,
        });
        for (kind, who) in client.leave(is_over) {
            actions.push(ServerAction::Event(match kind {
                Kind::Worker => WorkerEvent::Leave { worker: who }.into(),
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
            self.forget(&name, Why::Given(why), actions);
        }
    }
}

/// The answer to the last call with events that was accepted.
fn done(client: &Client) -> Answer {
    let taken = client.taken();
    Answer::Done {
        unknown: taken.map(|taken| taken.unknown.clone()).unwrap_or_default(),
        sink_unknown: taken.is_some_and(|taken| taken.sink_unknown),
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
        (_, Refused::NotYours(_)) => Answer::NotYours,
        (_, Refused::Invalid(why)) => Answer::Invalid(why.clone()),
    }
}
