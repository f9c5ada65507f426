//! A leadership: the production core, outbox and sessions, and what it promises.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proofmill_bus::{Op, Seq};
use proofmill_orchestrator::conversation::{
    HostEvent, RoleCommand, RoleEvent, SinkEvent, WorkerEvent,
};
use proofmill_orchestrator::coordinator::outbox::{Outbox, Released};
use proofmill_orchestrator::core::{Core, Event, RequestId, Token};
use proofmill_orchestrator::remote::Answer;
use proofmill_orchestrator::remote::session::{
    Behind, CallerId, ClientRef, FlushId, ServerInput, ServerSession,
};

use super::processes::{Caller, Process};
use crate::checks::ensure;
use crate::log::SimLog;
use crate::world::Checked;

/// A coordinator that has looked at its lease need not look again for so long, by its own clock.
const LOOKED_FOR_MS: u64 = 300;

/// A node's leadership.
pub(crate) struct Leader {
    /// Of this leadership; events of others are not for it.
    pub(crate) life: u64,
    pub(crate) term: u64,
    pub(crate) core: Core,
    pub(super) outbox: Outbox,
    /// What the log has accepted, if it accepts at once, before it is durable: as the logs do that there are. None: an
    /// append is accepted when it is durable.
    pub(super) accepted: Option<SimLog>,
    pub(super) session: ServerSession,
    pub(super) durable: Seq,
    pub(super) append_at_ms: u64,
    pub(super) answer_at_ms: u64,
    pub(super) next_caller: u64,
    pub(super) callers: BTreeMap<CallerId, Asking>,
    /// The call that is being taken.
    pub(super) taking: Option<Caller>,
    /// The flush that each call with events waits for, and the appends that had been begun then.
    pub(super) flush_of: BTreeMap<Caller, FlushId>,
    pub(super) flushes: BTreeMap<FlushId, BTreeSet<Token>>,
    /// Whether there was a flush for a call that had waited until the lease was looked at.
    pub(super) has_loose_flush: bool,
    /// The highest term of a sink that was attached.
    pub(super) sink_term: u64,
    pub(super) next_request: u64,
    pub(super) requests: BTreeMap<RequestId, (ClientRef, u64)>,
    pub(super) workers: BTreeMap<Arc<str>, ClientRef>,
    pub(super) hosts: BTreeMap<Arc<str>, ClientRef>,
    pub(super) sink: Option<ClientRef>,
    pub(super) tick_at: Option<u64>,
    /// Appends that have no answer yet.
    pub(super) begun: BTreeSet<Token>,
    /// Time of the world at which the lease was last seen to be held.
    pub(super) looked_ms: Option<u64>,
}

/// Whoever waits for an answer.
#[derive(Clone, Copy)]
pub(super) struct Asking {
    pub(super) caller: Caller,
    /// The latest term that it knows of.
    pub(super) known_term: u64,
    pub(super) since_ms: u64,
}

// === impl Leader ===

impl Leader {
    /// The leadership of this number and term, whose core has read the log up to `last`.
    pub(super) fn new(
        life: u64,
        term: u64,
        core: Core,
        session: ServerSession,
        last: Seq,
        accepted: Option<SimLog>,
    ) -> Self {
        Self {
            life,
            term,
            core,
            outbox: Outbox::new(last),
            accepted,
            session,
            durable: last,
            append_at_ms: 0,
            answer_at_ms: 0,
            next_caller: 0,
            callers: BTreeMap::new(),
            taking: None,
            flush_of: BTreeMap::new(),
            flushes: BTreeMap::new(),
            has_loose_flush: false,
            sink_term: 0,
            next_request: 0,
            requests: BTreeMap::new(),
            workers: BTreeMap::new(),
            hosts: BTreeMap::new(),
            sink: None,
            tick_at: None,
            begun: BTreeSet::new(),
            looked_ms: None,
        }
    }

    /// What the core hears of an append at once, if the log accepts at once.
    pub(super) fn accept(&mut self, token: Token, ops: &[Op]) -> Option<Event> {
        Some(match self.accepted.as_mut()?.append(ops.to_vec()) {
            Ok(seq) => {
                self.outbox.accepted(token, seq);
                Event::Accepted { token, seq }
            }
            Err(key) => {
                self.outbox.refused(token);
                Event::Conflicted { token, key }
            }
        })
    }

    pub(super) fn attach(&mut self, client: ClientRef, behind: Behind) {
        match behind {
            Behind::Worker(worker) => drop(self.workers.insert(worker, client)),
            Behind::Host(host) => drop(self.hosts.insert(host, client)),
            Behind::Sink => {
                self.sink = Some(client);
                self.outbox.attach_sink();
            }
        }
    }

    /// As the coordinator does with an event that comes by a port.
    pub(super) fn note(&mut self, event: &RoleEvent) {
        match event {
            RoleEvent::Worker(WorkerEvent::Leave { worker }) => {
                self.workers.remove(worker);
            }
            RoleEvent::Host(HostEvent::Leave { host }) => {
                self.hosts.remove(host);
            }
            RoleEvent::Sink(SinkEvent::Emitted { task, .. }) => self.outbox.confirmed(task),
            _ => {}
        }
    }

    /// What the clients' sessions hear of something that may be let out.
    pub(super) fn let_out(&mut self, released: Released) -> Option<ServerInput> {
        match released {
            Released::Reply(request, reply) => {
                let (client, number) = self.requests.remove(&request)?;
                Some(ServerInput::Replied {
                    client,
                    number,
                    reply,
                })
            }
            Released::Flushed(number) => Some(ServerInput::Flushed(FlushId(number))),
            Released::Worker(worker, command) => {
                let client = self.workers.get(&worker)?.clone();
                let command = RoleCommand::Worker(worker, command);
                Some(ServerInput::Tell { client, command })
            }
            Released::Sink(command) => {
                let client = self.sink.clone()?;
                let command = RoleCommand::Sink(command);
                Some(ServerInput::Tell { client, command })
            }
            Released::Settled(_) => None,
        }
    }

    /// A client is gone: nothing more goes to it.
    pub(super) fn forget(&mut self, client: &ClientRef) {
        self.workers.retain(|_, of| of != client);
        self.hosts.retain(|_, of| of != client);
        if self.sink.as_ref() == Some(client) {
            self.sink = None;
            self.outbox.detach_sink();
        }
    }

    /// What an answer promises.
    pub(super) fn check_answer(&self, asking: &Asking, answer: &Answer) -> Checked {
        let to = asking.caller;
        if asking.known_term > self.term {
            let looked = self
                .looked_ms
                .is_some_and(|at| at + LOOKED_FOR_MS >= asking.since_ms);
            ensure!(
                looked,
                "(3) {to:?} knows of term {}, and is answered under {}",
                asking.known_term,
                self.term
            );
        }
        // What waits until the lease is looked at is not taken when it comes.
        let is_doubted = asking.known_term > self.term;
        if let (Answer::Done { .. }, false) = (answer, is_doubted) {
            let flush = self.flush_of.get(&to.of_any_attempt());
            let open = flush.and_then(|flush| self.flushes.get(flush));
            let durable = open.map_or(self.has_loose_flush, BTreeSet::is_empty);
            ensure!(
                durable,
                "(1) {to:?} was answered before it was durable: {open:?}"
            );
        }
        Ok(())
    }

    /// (6) No sink takes the place of one of a later term.
    pub(super) fn check_sink(&mut self, of: Option<&Process>) -> Checked {
        let Some(term) = of.and_then(Process::sink_term) else {
            return Ok(());
        };
        ensure!(
            term >= self.sink_term,
            "(6) a sink of term {term} takes the place of one of {}",
            self.sink_term
        );
        self.sink_term = term;
        Ok(())
    }
}
