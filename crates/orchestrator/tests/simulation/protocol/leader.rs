//! A leadership: the production core, outbox and sessions, and checks of their guarantees.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proofmill_bus::{Op, Seq};
use proofmill_orchestrator::conversation::{
    HostEvent, RoleCommand, RoleEvent, SinkEvent, WorkerEvent,
};
use proofmill_orchestrator::coordinator::outbox::{DurableOutput, Outbox};
use proofmill_orchestrator::core::{Core, Event, RequestId, Token};
use proofmill_orchestrator::remote::Answer;
use proofmill_orchestrator::remote::session::{
    AttachedRole, CallerId, ClientRef, FlushId, ServerInput, ServerSession,
};

use super::processes::{Caller, Process};
use crate::checks::ensure;
use crate::log::SimLog;
use crate::world::Checked;

/// Time, by its own clock, for which a coordinator that has checked its lease need not check it again.
const LEASE_CHECKED_FOR_MS: u64 = 300;

/// Leadership of a node.
pub(crate) struct Leader {
    /// Number of the leadership; events for other leaderships are not for it.
    pub(crate) life: u64,
    pub(crate) term: u64,
    pub(crate) core: Core,
    pub(super) outbox: Outbox,
    /// Accepted state of a log that accepts an append at once, before it is durable, as the production logs
    /// do. `None` if an append is accepted only when it is durable.
    pub(super) accepted: Option<SimLog>,
    pub(super) session: ServerSession,
    pub(super) durable: Seq,
    pub(super) append_at_ms: u64,
    pub(super) answer_at_ms: u64,
    pub(super) next_caller: u64,
    pub(super) callers: BTreeMap<CallerId, Asking>,
    /// Call that is being handled.
    pub(super) taking: Option<Caller>,
    /// Flush that each call with events waits for; `flushes` has the appends that were unanswered when it
    /// began.
    pub(super) flush_of: BTreeMap<Caller, FlushId>,
    pub(super) flushes: BTreeMap<FlushId, BTreeSet<Token>>,
    /// Whether a flush was made for a call that had waited for the check of the lease.
    pub(super) has_loose_flush: bool,
    /// Highest term of a sink that was attached.
    pub(super) sink_term: u64,
    pub(super) next_request: u64,
    pub(super) requests: BTreeMap<RequestId, (ClientRef, u64)>,
    pub(super) workers: BTreeMap<Arc<str>, ClientRef>,
    pub(super) hosts: BTreeMap<Arc<str>, ClientRef>,
    pub(super) sink: Option<ClientRef>,
    pub(super) tick_at: Option<u64>,
    /// Appends without an answer.
    pub(super) begun: BTreeSet<Token>,
    /// Time of the world at which the lease was last seen to be held.
    pub(super) lease_checked_ms: Option<u64>,
}

/// A caller that waits for an answer.
#[derive(Clone, Copy)]
pub(super) struct Asking {
    pub(super) caller: Caller,
    /// Latest term that it knows.
    pub(super) known_term: u64,
    pub(super) since_ms: u64,
}

// === impl Leader ===

impl Leader {
    /// The leadership with this number and term, whose core has read the log up to `last`.
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
            lease_checked_ms: None,
        }
    }

    /// Event for the core from a log that accepts at once; `None` if the log does not.
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

    pub(super) fn attach(&mut self, client: ClientRef, role: AttachedRole) {
        match role {
            AttachedRole::Worker(worker) => drop(self.workers.insert(worker, client)),
            AttachedRole::Host(host) => drop(self.hosts.insert(host, client)),
            AttachedRole::Sink => {
                self.sink = Some(client);
                self.outbox.attach_sink();
            }
        }
    }

    /// Updates the channels for an event, as the coordinator does with events from a port.
    pub(super) fn note(&mut self, event: &RoleEvent) {
        match event {
            RoleEvent::Worker(WorkerEvent::Leave { worker } | WorkerEvent::Lost { worker }) => {
                self.workers.remove(worker);
            }
            RoleEvent::Host(HostEvent::Leave { host }) => {
                self.hosts.remove(host);
            }
            RoleEvent::Sink(SinkEvent::Emitted { task, .. }) => self.outbox.confirmed(task),
            _ => {}
        }
    }

    /// Input for the clients' sessions from an output that may be sent; `None` if its client is gone.
    pub(super) fn let_out(&mut self, released: DurableOutput) -> Option<ServerInput> {
        match released {
            DurableOutput::Reply(request, reply) => {
                let (client, number) = self.requests.remove(&request)?;
                Some(ServerInput::Replied {
                    client,
                    number,
                    reply,
                })
            }
            DurableOutput::Flushed(number) => Some(ServerInput::Flushed(FlushId(number))),
            DurableOutput::Worker(worker, command) => {
                let client = self.workers.get(&worker)?.clone();
                let command = RoleCommand::Worker(worker, command);
                Some(ServerInput::Tell { client, command })
            }
            DurableOutput::Sink(command) => {
                let client = self.sink.clone()?;
                let command = RoleCommand::Sink(command);
                Some(ServerInput::Tell { client, command })
            }
            DurableOutput::Settled(_) | DurableOutput::Trace(_) | DurableOutput::Work(_) => None,
        }
    }

    /// Drops a client that is gone; no more outputs are sent to it.
    pub(super) fn forget(&mut self, client: &ClientRef) {
        self.workers.retain(|_, of| of != client);
        self.hosts.retain(|_, of| of != client);
        if self.sink.as_ref() == Some(client) {
            self.sink = None;
            self.outbox.detach_sink();
        }
    }

    /// Checks the guarantees of an answer.
    pub(super) fn check_answer(&self, asking: &Asking, answer: &Answer) -> Checked {
        let to = asking.caller;
        if asking.known_term > self.term {
            let is_checked = self
                .lease_checked_ms
                .is_some_and(|at| at + LEASE_CHECKED_FOR_MS >= asking.since_ms);
            ensure!(
                is_checked,
                "(3) {to:?} knows of term {}, and is answered under {}",
                asking.known_term,
                self.term
            );
        }
        // A call that waits for the check of the lease is not handled on arrival.
        let knows_later_leader = asking.known_term > self.term;
        if let (Answer::Done { .. }, false) = (answer, knows_later_leader) {
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
