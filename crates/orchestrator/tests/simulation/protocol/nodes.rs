//! Coordinators: processes that compete for the lead.

use std::collections::VecDeque;
use std::time::Duration;

use proofmill_bus::Op;
use proofmill_orchestrator::conversation::RoleCommand;
use proofmill_orchestrator::coordinator::outbox::ImmediateAction;
use proofmill_orchestrator::core::{Core, CoreOptions, Event, LEASE_KEY_BYTES, RequestId, Token};
use proofmill_orchestrator::remote::session::{
    AttachedRole, CallerId, NoticeFailure, NoticeRef, ServerAction, ServerInput, ServerSession,
};
use proofmill_orchestrator::remote::{Answer, Notice};

use super::clock::Clock;
use super::leader::{Asking, Leader};
use super::network::End;
use super::shared_log::{Appended, LEASE_MS};
use super::world::{Ev, NodeEv, ProcessEv, Protocol};
use crate::actors::State;
use crate::rng::Rng;
use crate::world::{Checked, HISTORY};

pub(crate) struct Node {
    pub(crate) state: State,
    /// Number of this life of the process.
    life: u64,
    clock: Clock,
    pub(crate) leader: Option<Leader>,
    asleep: VecDeque<Ev>,
}

// === impl Node ===

impl Node {
    pub(crate) fn new(rng: &mut Rng) -> Self {
        Self {
            state: State::Down,
            life: 0,
            clock: Clock::new(rng),
            leader: None,
            asleep: VecDeque::new(),
        }
    }

    pub(crate) fn resume(&mut self) -> VecDeque<Ev> {
        if self.state != State::Paused {
            return VecDeque::new();
        }
        self.state = State::Up;
        std::mem::take(&mut self.asleep)
    }

    /// Whether it receives calls on the leader's subject.
    pub(crate) fn listens(&self) -> bool {
        self.state != State::Down && self.leader.is_some()
    }
}

impl Protocol {
    pub(crate) fn node_starts(&mut self, ix: usize) {
        if self.nodes[ix].state != State::Down {
            return;
        }
        let life = self.fresh();
        let clock = Clock::new(&mut self.rng);
        let node = &mut self.nodes[ix];
        node.state = State::Up;
        node.life = life;
        node.clock = clock;
        node.asleep.clear();
        self.note(|| format!("coordinator {ix} starts"));
        self.after(1, Ev::Node(ix, life, NodeEv::TryToLead));
    }

    pub(crate) fn node_dies(&mut self, ix: usize) {
        if self.nodes[ix].state == State::Down {
            return;
        }
        self.note(|| format!("coordinator {ix} dies"));
        self.nodes[ix].state = State::Down;
        self.nodes[ix].leader = None;
        let delay = self.rng.within(1, 4_000);
        self.after(delay, Ev::NodeUp(ix));
    }

    pub(crate) fn node_pauses(&mut self, ix: usize) {
        if self.nodes[ix].state == State::Up {
            self.note(|| format!("coordinator {ix} is stopped"));
            self.nodes[ix].state = State::Paused;
            let delay = self.rng.within(100, 9_000);
            self.after(delay, Ev::NodeResumes(ix));
        }
    }

    pub(crate) fn node_event(&mut self, ix: usize, life: u64, ev: NodeEv) -> Checked {
        let node = &mut self.nodes[ix];
        let leadership = node.leader.as_ref().map(|leader| leader.life);
        if node.state == State::Down || (life != node.life && Some(life) != leadership) {
            return Ok(());
        }
        if node.state == State::Paused {
            node.asleep.push_back(Ev::Node(ix, life, ev));
            return Ok(());
        }
        let input = match ev {
            NodeEv::TryToLead => {
                self.try_to_lead(ix, life);
                return Ok(());
            }
            NodeEv::Leads { term } => return self.leads(ix, term),
            NodeEv::Renew => {
                self.renew(ix, life);
                return Ok(());
            }
            NodeEv::Renewed(true) => return Ok(()),
            NodeEv::Renewed(false) => {
                self.stops_leading(ix, "its lease is lost");
                return Ok(());
            }
            NodeEv::Appended(token, answer) => return self.appended(ix, token, answer),
            NodeEv::LeaseChecked(is_held) => {
                let now_ms = self.now_ms;
                if let Some(leader) = &mut self.nodes[ix].leader {
                    leader.lease_checked_ms = (is_held == Some(true)).then_some(now_ms);
                }
                ServerInput::LeaseChecked { is_held }
            }
            NodeEv::Call {
                from,
                subject,
                call,
            } => {
                let Some(leader) = &mut self.nodes[ix].leader else {
                    return Ok(());
                };
                let caller = CallerId(leader.next_caller);
                leader.next_caller += 1;
                let asking = Asking {
                    caller: from,
                    known_term: call.term,
                    since_ms: self.now_ms,
                };
                leader.callers.insert(caller, asking);
                ServerInput::Call {
                    caller,
                    subject,
                    call: *call,
                }
            }
            NodeEv::NoticeAnswered(notice, ack) => ServerInput::NoticeAnswered { notice, ack },
            NodeEv::NoticeFailed(notice, why) => ServerInput::NoticeFailed { notice, why },
            NodeEv::Tick => {
                let time = self.nodes[ix].clock.now(self.now_ms);
                let Some(leader) = &mut self.nodes[ix].leader else {
                    return Ok(());
                };
                leader.tick_at = None;
                if leader
                    .core
                    .next_deadline()
                    .is_some_and(|due| due <= time.mono)
                {
                    return self.tell_core(ix, Event::Tick);
                }
                ServerInput::Tick
            }
        };
        self.serve(ix, VecDeque::from([input]))
    }

    fn try_to_lead(&mut self, ix: usize, life: u64) {
        let delay = self.rng.within(50, 200);
        self.after(delay, Ev::Node(ix, life, NodeEv::TryToLead));
        if self.nodes[ix].leader.is_some() {
            return;
        }
        let end = End::Node(ix);
        let Some(delay) = self.network.store_delay(&mut self.rng, end, self.calm) else {
            return;
        };
        if let Some(term) = self.lead.take(life, self.now_ms) {
            self.after(delay, Ev::Node(ix, life, NodeEv::Leads { term }));
        }
    }

    fn renew(&mut self, ix: usize, life: u64) {
        self.after(LEASE_MS / 4, Ev::Node(ix, life, NodeEv::Renew));
        let end = End::Node(ix);
        let delay = self.network.store_delay(&mut self.rng, end, self.calm);
        // While the store does not answer, no other node can take the lease.
        if let Some(delay) = delay {
            let is_held = self.lead.renew(self.nodes[ix].life, self.now_ms);
            self.after(delay, Ev::Node(ix, life, NodeEv::Renewed(is_held)));
        }
    }

    fn leads(&mut self, ix: usize, term: u64) -> Checked {
        if self.nodes[ix].leader.is_some() {
            return Ok(());
        }
        let life = self.fresh();
        self.note(|| format!("coordinator {ix} leads, term {term}"));
        self.lived.leaderships += 1;
        let others = self.nodes.iter().filter(|node| node.leader.is_some());
        self.lived.splits += others.count() as u64;
        let options = CoreOptions {
            adopt_grace: Duration::from_millis(self.rng.within(0, 1_500)),
            fresh_lease_key: [1; LEASE_KEY_BYTES],
            history: HISTORY,
            ..CoreOptions::default()
        };
        let mut core = Core::new(self.scene.plan.clone(), options);
        let log = self.log.open(life)?;
        for (seq, key, value) in log.replay() {
            let replayed = core.replay(&key, &value, seq);
            replayed.map_err(|error| error.to_string())?;
        }
        let last = log.last();
        let accepted = self.rng.flip().then_some(log);
        let node = &mut self.nodes[ix];
        let actions = core.start(node.clock.now(self.now_ms));
        let session = ServerSession::new(self.scene.plan.clone(), term);
        node.leader = Some(Leader::new(life, term, core, session, last, accepted));
        self.after(LEASE_MS / 4, Ev::Node(ix, life, NodeEv::Renew));
        let mut inputs = VecDeque::from([ServerInput::Tick]);
        self.core_acts(ix, actions, &mut inputs)?;
        self.serve(ix, inputs)
    }

    pub(crate) fn stops_leading(&mut self, ix: usize, why: &str) {
        let node = &mut self.nodes[ix];
        let Some(leader) = node.leader.take() else {
            return;
        };
        let life = node.life;
        self.note(|| {
            format!(
                "coordinator {ix} leads no more, term {}: {why}",
                leader.term
            )
        });
        if !self.network.is_cut(End::Node(ix), End::Store) {
            self.lead.give_back(life, self.now_ms);
        }
    }

    fn tell_core(&mut self, ix: usize, event: Event) -> Checked {
        let mut inputs = VecDeque::new();
        self.core_hears(ix, event, &mut inputs)?;
        self.serve(ix, inputs)
    }

    fn core_hears(
        &mut self,
        ix: usize,
        event: Event,
        inputs: &mut VecDeque<ServerInput>,
    ) -> Checked {
        let node = &mut self.nodes[ix];
        let now = node.clock.now(self.now_ms);
        let Some(leader) = &mut node.leader else {
            return Ok(());
        };
        self.monitor.hears(&event, self.now_ms);
        let actions = leader.core.handle(now, event);
        self.core_acts(ix, actions, inputs)
    }

    fn core_acts(
        &mut self,
        ix: usize,
        actions: Vec<proofmill_orchestrator::core::Action>,
        inputs: &mut VecDeque<ServerInput>,
    ) -> Checked {
        let mut actions = VecDeque::from(actions);
        while let Some(action) = actions.pop_front() {
            self.witness.note_assignment(&mut self.monitor, &action);
            let node = &mut self.nodes[ix];
            let now = node.clock.now(self.now_ms);
            let Some(leader) = &mut node.leader else {
                return Ok(());
            };
            let Some(due) = leader.outbox.hold_back(action) else {
                continue;
            };
            match due {
                ImmediateAction::Append { token, ops } => {
                    let answer = leader.accept(token, &ops);
                    let is_refused = matches!(answer, Some(Event::Conflicted { .. }));
                    if let Some(event) = answer {
                        actions.extend(leader.core.handle(now, event));
                    }
                    if !is_refused {
                        self.append(ix, token, ops);
                    }
                }
                ImmediateAction::Worker(worker, message) => {
                    let client = leader.workers.get(&worker).cloned();
                    inputs.extend(client.map(|client| ServerInput::Tell {
                        client,
                        command: RoleCommand::Worker(worker, message),
                    }));
                }
                ImmediateAction::Host(host, message) => {
                    let client = leader.hosts.get(&host).cloned();
                    inputs.extend(client.map(|client| ServerInput::Tell {
                        client,
                        command: RoleCommand::Host(host, message),
                    }));
                }
                ImmediateAction::Defect(why) => return Err(format!("(g) {why}")),
                ImmediateAction::Report(_) => {}
            }
        }
        Ok(())
    }

    fn append(&mut self, ix: usize, token: Token, ops: Vec<Op>) {
        let (now_ms, calm) = (self.now_ms, self.calm);
        let delay = self.network.store_delay(&mut self.rng, End::Node(ix), calm);
        let Some(leader) = &mut self.nodes[ix].leader else {
            return;
        };
        if !ops.is_empty() {
            leader.begun.insert(token);
        }
        let leadership = leader.life;
        match delay {
            Some(delay) => {
                leader.append_at_ms = leader.append_at_ms.max(now_ms + delay);
                let wait = leader.append_at_ms - now_ms;
                self.after(
                    wait,
                    Ev::Append {
                        node: ix,
                        leadership,
                        token,
                        ops,
                    },
                );
            }
            None => {
                self.log.lose(leadership);
                let failed = NodeEv::Appended(token, Appended::Failed);
                self.after(5_000, Ev::Node(ix, leadership, failed));
            }
        }
    }

    /// Handles the arrival of an append at the log.
    pub(crate) fn append_arrives(
        &mut self,
        ix: usize,
        leadership: u64,
        token: Token,
        ops: Vec<Op>,
    ) -> Checked {
        let mut answer = self.log.append(leadership, ops.clone());
        if let Appended::At(seq) = &answer {
            let seq = seq.0;
            self.note(|| format!("log {seq} by coordinator {ix}: {ops:?}"));
            self.monitor.durable(&self.scene, &ops)?;
        }
        let node = End::Node(ix);
        let delay = self.network.store_delay(&mut self.rng, node, self.calm);
        if delay.is_none() || (!self.calm && self.rng.per_mille(2)) {
            answer = Appended::Failed;
        }
        let now_ms = self.now_ms;
        let current = self.nodes[ix].leader.as_mut();
        let Some(leader) = current.filter(|leader| leader.life == leadership) else {
            return Ok(());
        };
        let at_ms = now_ms + delay.unwrap_or(5_000);
        leader.answer_at_ms = leader.answer_at_ms.max(at_ms);
        let wait = leader.answer_at_ms - now_ms;
        self.after(
            wait,
            Ev::Node(ix, leadership, NodeEv::Appended(token, answer)),
        );
        Ok(())
    }

    fn appended(&mut self, ix: usize, token: Token, answer: Appended) -> Checked {
        let Some(leader) = &mut self.nodes[ix].leader else {
            return Ok(());
        };
        let event = match answer {
            Appended::At(seq) => {
                leader.durable = leader.durable.max(seq);
                if leader.accepted.is_none() {
                    leader.outbox.accepted(token, seq);
                }
                Event::Accepted { token, seq }
            }
            Appended::Conflict(key) => {
                leader.outbox.refused(token);
                Event::Conflicted { token, key }
            }
            Appended::Failed => {
                self.lived.log_failures += 1;
                self.stops_leading(ix, "the log refuses it");
                return Ok(());
            }
        };
        leader.begun.remove(&token);
        for flush in leader.flushes.values_mut() {
            flush.remove(&token);
        }
        if leader.accepted.is_some() {
            return self.serve(ix, VecDeque::new());
        }
        self.tell_core(ix, event)
    }

    /// Handles inputs, and sends the outputs that are durable.
    fn serve(&mut self, ix: usize, mut inputs: VecDeque<ServerInput>) -> Checked {
        loop {
            while let Some(input) = inputs.pop_front() {
                let node = &mut self.nodes[ix];
                let time = node.clock.time(self.now_ms);
                let Some(leader) = &mut node.leader else {
                    return Ok(());
                };
                leader.taking = match &input {
                    ServerInput::Call { caller, .. } => {
                        leader.callers.get(caller).map(|asking| asking.caller)
                    }
                    _ => None,
                };
                let actions = leader.session.handle(time, input);
                self.server_acts(ix, actions, &mut inputs)?;
            }
            let Some(leader) = &mut self.nodes[ix].leader else {
                return Ok(());
            };
            let released = leader.outbox.release(leader.durable);
            if released.is_empty() {
                break;
            }
            for released in released {
                inputs.extend(leader.let_out(released));
            }
        }
        self.node_ticks(ix);
        Ok(())
    }

    fn server_acts(
        &mut self,
        ix: usize,
        actions: Vec<ServerAction>,
        inputs: &mut VecDeque<ServerInput>,
    ) -> Checked {
        for action in actions {
            let Some(leader) = &mut self.nodes[ix].leader else {
                return Ok(());
            };
            match action {
                ServerAction::Hello { term } => self.greet(ix, term),
                ServerAction::Attach { client, role } => {
                    if role == AttachedRole::Sink {
                        let all = &self.processes;
                        let of = leader
                            .taking
                            .map(|taking| (&all[taking.process], taking.life));
                        let of = of.filter(|(of, life)| of.life == *life).map(|(of, _)| of);
                        leader.check_sink(of)?;
                    }
                    leader.attach(client.clone(), role.clone());
                    let name = client.name;
                    self.note(|| format!("coordinator {ix}: {role:?} is behind {name}"));
                }
                ServerAction::Event(event) => {
                    let lives = |process: usize| self.processes[process].life;
                    self.witness.event(leader.life, &event, lives)?;
                    leader.note(&event);
                    self.core_hears(ix, event.into(), inputs)?;
                }
                // Nothing is checked here, so that all waits for the log only.
                ServerAction::Flush { flush, .. } => {
                    leader.outbox.flush(flush.0);
                    leader.flushes.insert(flush, leader.begun.clone());
                    match leader.taking {
                        Some(taking) => {
                            leader.flush_of.insert(taking.of_any_attempt(), flush);
                        }
                        None => leader.has_loose_flush = true,
                    }
                }
                ServerAction::Request {
                    client,
                    number,
                    request: asked,
                } => {
                    self.witness.request(leader.life, &client, number)?;
                    let name = client.name.clone();
                    self.note(|| format!("coordinator {ix} is asked {number} by {name}"));
                    let Some(leader) = &mut self.nodes[ix].leader else {
                        return Ok(());
                    };
                    let request = RequestId(leader.next_request);
                    leader.next_request += 1;
                    leader.requests.insert(request, (client, number));
                    let request = Event::Request {
                        id: request,
                        request: asked,
                    };
                    self.core_hears(ix, request, inputs)?;
                }
                ServerAction::Query { caller, query } => {
                    let answer = Answer::Query(leader.core.answer(query));
                    self.answer(ix, caller, &answer)?;
                }
                ServerAction::Answer { caller, answer } => self.answer(ix, caller, &answer)?,
                ServerAction::Notify {
                    notice, message, ..
                } => self.notify(ix, &notice, &message),
                ServerAction::CheckLease => {
                    self.lived.looks += 1;
                    self.look_at_lease(ix);
                }
                ServerAction::Lost => self.stops_leading(ix, "another has its lease"),
                ServerAction::Gone { client, why } => {
                    leader.forget(&client);
                    self.lived.clients_gone += 1;
                    self.note(|| format!("coordinator {ix}: {} is gone: {why}", client.name));
                }
            }
        }
        Ok(())
    }

    fn greet(&mut self, ix: usize, term: u64) {
        for process in 0..self.processes.len() {
            let life = self.processes[process].life;
            self.send(End::Node(ix), End::Process(process), || {
                Ev::Process(process, life, ProcessEv::Hello { term })
            });
        }
    }

    fn look_at_lease(&mut self, ix: usize) {
        let node = End::Node(ix);
        let delay = self.network.store_delay(&mut self.rng, node, self.calm);
        let Some(leader) = &self.nodes[ix].leader else {
            return;
        };
        let leadership = leader.life;
        let is_held = self.lead.is_held(self.nodes[ix].life, self.now_ms);
        let is_held = delay.is_some().then_some(is_held);
        let wait = delay.unwrap_or(2_000);
        self.after(
            wait,
            Ev::Node(ix, leadership, NodeEv::LeaseChecked(is_held)),
        );
    }

    fn answer(&mut self, ix: usize, caller: CallerId, answer: &Answer) -> Checked {
        let Some(leader) = &mut self.nodes[ix].leader else {
            return Ok(());
        };
        let Some(asking) = leader.callers.remove(&caller) else {
            return Err(format!("coordinator {ix} answers {caller:?} twice"));
        };
        leader.check_answer(&asking, answer)?;
        let to = asking.caller;
        let life = leader.life;
        self.send(End::Node(ix), End::Process(to.process), || {
            let answer = ProcessEv::Answer {
                call: to.call,
                attempt: to.attempt,
                answer: answer.clone(),
                by: life,
            };
            Ev::Process(to.process, to.life, answer)
        });
        Ok(())
    }

    fn notify(&mut self, ix: usize, of: &NoticeRef, notice: &Notice) {
        self.lived.notices_again += u64::from(of.attempt > 1);
        let Some(leader) = &self.nodes[ix].leader else {
            return;
        };
        let leadership = leader.life;
        let all = self.processes.iter();
        let listener = all
            .enumerate()
            .find(|(_, process)| process.state != State::Down && process.name == of.client.name)
            .map(|(number, process)| (number, process.life));
        let Some((process, life)) = listener else {
            let why = NoticeFailure::NoListener {
                connected_for: Duration::from_secs(10),
            };
            let delay = self.rng.within(1, 5);
            let failed = NodeEv::NoticeFailed(of.clone(), why);
            self.after(delay, Ev::Node(ix, leadership, failed));
            return;
        };
        self.send(End::Node(ix), End::Process(process), || {
            let notice = ProcessEv::Notice {
                node: ix,
                leadership,
                of: of.clone(),
                notice: notice.clone(),
            };
            Ev::Process(process, life, notice)
        });
    }

    fn node_ticks(&mut self, ix: usize) {
        let now_ms = self.now_ms;
        let node = &mut self.nodes[ix];
        let clock = node.clock;
        let Some(leader) = &mut node.leader else {
            return;
        };
        let of_session = leader.session.next_deadline();
        let of_core = leader.core.next_deadline().unwrap_or(of_session);
        let due = of_core.min(of_session);
        let at = clock.world_ms(due).max(now_ms);
        if leader.tick_at.is_none_or(|tick| at < tick) {
            leader.tick_at = Some(at);
            let life = leader.life;
            self.after(at - now_ms, Ev::Node(ix, life, NodeEv::Tick));
        }
    }
}
