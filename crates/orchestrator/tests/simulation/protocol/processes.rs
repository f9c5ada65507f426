//! Processes of roles: each is a client's session with a role behind it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use proofmill_orchestrator::conversation::{HostCommand, RoleCommand, RoleEvent, WorkerCommand};
use proofmill_orchestrator::remote::session::{
    CallFailure, CallId, ClientAction, ClientInput, ClientSession,
};
use proofmill_orchestrator::remote::{Answer, Call, CallBody, NoticeAck, Role as Seated, Seat};

use super::clock::Clock;
use super::network::End;
use super::roles::{self, Role};
use super::world::{Ev, NodeEv, ProcessEv, Protocol};
use crate::actors::State;
use crate::checks::ensure;
use crate::plans::Scene;
use crate::rng::Rng;
use crate::world::Checked;

/// A process of one role, or of a worker group's dispatchers.
pub(crate) struct Process {
    pub(crate) state: State,
    /// Number of this life of the process.
    pub(crate) life: u64,
    /// Number of its session: in most lives higher than in the one before.
    number: u64,
    pub(crate) name: Arc<str>,
    subject: String,
    clock: Clock,
    session: ClientSession,
    pub(crate) role: Role,
    /// Whether it is ending in order: it has reported that all roles behind it have left.
    pub(crate) leaving: bool,
    asleep: VecDeque<Ev>,
    tick_at: Option<u64>,
    /// Results carried by each attempt at a call with events.
    brought: BTreeMap<CallId, Vec<u64>>,
    /// Latest term that it knows.
    heard_term: u64,
    /// Last notice from which a command was handed to the role.
    last_notice: (u64, u64, u64),
}

/// An attempt at a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Caller {
    pub(crate) process: usize,
    pub(crate) life: u64,
    pub(crate) call: CallId,
    pub(crate) attempt: u32,
}

// === impl Caller ===

impl Caller {
    pub(crate) fn of_any_attempt(self) -> Self {
        Self { attempt: 0, ..self }
    }
}

// === impl Process ===

impl Process {
    pub(crate) fn all(scene: &Scene, rng: &mut Rng) -> Vec<Self> {
        let mut all = Vec::new();
        for (group, user, role) in roles::crews(scene, rng) {
            let seat = Seat::of_workers(&group, &user);
            all.push(Self::new(scene, &seat, "host", role));
        }
        for role in roles::hosts(scene, rng) {
            let name = role.host_name();
            all.push(Self::new(scene, &Seat::of(Seated::Collector), &name, role));
        }
        for (number, _) in scene.sources.iter().enumerate() {
            let seat = Seat::of(Seated::Source);
            let name = format!("source-{number}");
            all.push(Self::new(scene, &seat, &name, Role::source(scene, number)));
        }
        for number in 0..2 {
            let seat = Seat::of(Seated::Sequencer);
            let name = format!("sequencer-{number}");
            all.push(Self::new(scene, &seat, &name, Role::sequencer()));
        }
        let seat = Seat::of(Seated::Operator);
        all.push(Self::new(scene, &seat, "operator", Role::Operator));
        all
    }

    fn new(scene: &Scene, seat: &Seat, name: &str, role: Role) -> Self {
        let name: Arc<str> = format!("{seat}.{name}").into();
        Self {
            state: State::Down,
            life: 0,
            number: 0,
            subject: format!("proofmill.leader.w.{seat}"),
            clock: Clock::new(&mut Rng::new(0)),
            session: ClientSession::new(scene.plan.digest(), name.clone(), 0),
            name,
            role,
            leaving: false,
            asleep: VecDeque::new(),
            tick_at: None,
            brought: BTreeMap::new(),
            heard_term: 0,
            last_notice: (0, 0, 0),
        }
    }

    pub(crate) fn resume(&mut self) -> VecDeque<Ev> {
        if self.state != State::Paused {
            return VecDeque::new();
        }
        self.state = State::Up;
        std::mem::take(&mut self.asleep)
    }

    pub(crate) fn sink_term(&self) -> Option<u64> {
        match &self.role {
            Role::Sequencer(sink) => Some(sink.term),
            _ => None,
        }
    }

    pub(crate) fn set_sink_term(&mut self, term: u64) {
        self.session.set_sink_term(term);
    }
}

impl Protocol {
    pub(crate) fn process_starts(&mut self, ix: usize) -> Checked {
        if self.processes[ix].state != State::Down {
            return Ok(());
        }
        let life = self.fresh();
        let clock = Clock::new(&mut self.rng);
        let digest = self.scene.plan.digest();
        let number = match self.rng.per_mille(900) {
            true => life + (1 << 32),
            false => life,
        };
        let process = &mut self.processes[ix];
        process.state = State::Up;
        process.life = life;
        process.number = number;
        process.clock = clock;
        process.session = ClientSession::new(digest, process.name.clone(), number);
        process.leaving = false;
        process.asleep.clear();
        process.tick_at = None;
        process.brought.clear();
        process.heard_term = 0;
        process.last_notice = (0, 0, 0);
        let name = process.name.clone();
        self.lived.sessions += 1;
        self.note(|| format!("process {ix} starts: {name}"));
        self.role_starts(ix)
    }

    pub(crate) fn process_dies(&mut self, ix: usize) {
        if self.processes[ix].state == State::Down {
            return;
        }
        self.note(|| format!("process {ix} dies"));
        self.processes[ix].state = State::Down;
        let delay = self.rng.within(1, 5_000);
        self.after(delay, Ev::ProcessUp(ix));
    }

    pub(crate) fn process_pauses(&mut self, ix: usize) {
        if self.processes[ix].state == State::Up {
            self.note(|| format!("process {ix} is stopped"));
            self.processes[ix].state = State::Paused;
            let delay = self.rng.within(100, 9_000);
            self.after(delay, Ev::ProcessResumes(ix));
        }
    }

    /// Ends the process in order.
    pub(crate) fn process_leaves(&mut self, ix: usize) {
        let process = &mut self.processes[ix];
        if process.state != State::Up || process.leaving || !process.role.can_leave() {
            return;
        }
        process.leaving = true;
        self.note(|| format!("process {ix} leaves"));
        self.after(0, Ev::Process(ix, self.processes[ix].life, ProcessEv::Beat));
    }

    pub(crate) fn process_event(&mut self, ix: usize, life: u64, ev: ProcessEv) -> Checked {
        let process = &mut self.processes[ix];
        match process.state {
            // Notices go to a name, so the process that has the name now gets those still on their way.
            _ if life != process.life && !matches!(ev, ProcessEv::Notice { .. }) => return Ok(()),
            State::Down => return Ok(()),
            State::Paused => {
                process.asleep.push_back(Ev::Process(ix, life, ev));
                return Ok(());
            }
            State::Up => {}
        }
        match ev {
            ProcessEv::Answer {
                call,
                attempt,
                answer,
                by,
            } => self.hears_answer(ix, call, attempt, answer, by),
            ProcessEv::NoLeader { call, attempt } => {
                let why = CallFailure::NoLeader;
                let failed = ClientInput::AttemptFailed { call, attempt, why };
                self.tell_session(ix, failed)
            }
            ProcessEv::Hello { term } => {
                process.heard_term = process.heard_term.max(term);
                self.tell_session(ix, ClientInput::Hello { term })
            }
            ProcessEv::Notice {
                node,
                leadership,
                of,
                notice,
            } => {
                let place = (notice.term, notice.incarnation, notice.number);
                let session = notice.session;
                let ticket = self.fresh();
                let actions = self.session_acts(ix, ClientInput::Notice { ticket, notice });
                self.check_notice(ix, place, session, &actions)?;
                for action in &actions {
                    if let ClientAction::AnswerNotice { ack, .. } = action {
                        self.notice_answered(ix, node, leadership, &of, *ack);
                    }
                }
                self.perform(ix, actions)
            }
            ProcessEv::Tick => {
                process.tick_at = None;
                self.tell_session(ix, ClientInput::Tick)
            }
            other => self.role_event(ix, other),
        }
    }

    fn notice_answered(
        &mut self,
        ix: usize,
        node: usize,
        leadership: u64,
        of: &proofmill_orchestrator::remote::session::NoticeRef,
        ack: NoticeAck,
    ) {
        self.send(End::Process(ix), End::Node(node), || {
            Ev::Node(node, leadership, NodeEv::NoticeAnswered(of.clone(), ack))
        });
    }

    /// (4) and (5): checks the commands that a notice hands to the role.
    fn check_notice(
        &mut self,
        ix: usize,
        place: (u64, u64, u64),
        session: u64,
        actions: &[ClientAction],
    ) -> Checked {
        let process = &mut self.processes[ix];
        let term = place.0;
        // The process announces itself to a new leader, and to one that has another session for its name.
        let is_introduction = term > process.heard_term || session != process.number;
        let hands = |action: &ClientAction| match action {
            ClientAction::Deliver(RoleCommand::Worker(_, WorkerCommand::Unknown)) => false,
            ClientAction::Deliver(RoleCommand::Host(_, HostCommand::Unknown)) => !is_introduction,
            ClientAction::Deliver(_) => true,
            _ => false,
        };
        if !actions.iter().any(hands) {
            process.heard_term =
                process
                    .heard_term
                    .max(if session == process.number { term } else { 0 });
            return Ok(());
        }
        ensure!(
            session == process.number,
            "(5) process {ix} takes what is for another session"
        );
        ensure!(
            term >= process.heard_term,
            "(4) process {ix} knows of term {}, and takes something from {term}",
            process.heard_term
        );
        ensure!(
            place > process.last_notice,
            "(5) process {ix} takes notice {place:?} after {:?}",
            process.last_notice
        );
        process.heard_term = term;
        process.last_notice = place;
        Ok(())
    }

    fn hears_answer(
        &mut self,
        ix: usize,
        call: CallId,
        attempt: u32,
        answer: Answer,
        by: u64,
    ) -> Checked {
        let is_done = matches!(answer, Answer::Done { .. });
        let input = ClientInput::Answered {
            call,
            attempt,
            answer,
        };
        let actions = self.session_acts(ix, input);
        let ended = |action: &ClientAction| matches!(action, ClientAction::Ended { call: of } if *of == call);
        if is_done && actions.iter().any(ended) {
            let brought = self.processes[ix].brought.remove(&call);
            self.witness.answered(by, &brought.unwrap_or_default())?;
        }
        self.perform(ix, actions)
    }

    /// Passes an event of the role to its session.
    pub(crate) fn say(&mut self, ix: usize, said: RoleEvent) -> Checked {
        self.tell_session(ix, ClientInput::Event(said))
    }

    pub(crate) fn tell_session(&mut self, ix: usize, input: ClientInput) -> Checked {
        let actions = self.session_acts(ix, input);
        self.perform(ix, actions)
    }

    fn session_acts(&mut self, ix: usize, input: ClientInput) -> Vec<ClientAction> {
        let process = &mut self.processes[ix];
        let now = process.clock.time(self.now_ms);
        process.session.handle(now, input)
    }

    fn perform(&mut self, ix: usize, actions: Vec<ClientAction>) -> Checked {
        for action in actions {
            match action {
                ClientAction::Send {
                    call,
                    attempt,
                    message,
                    ..
                } => self.call(ix, call, attempt, &message),
                ClientAction::Deliver(command) => self.role_hears(ix, command)?,
                ClientAction::Answer { ticket, answer } => {
                    self.role_is_answered(ix, ticket, answer)?;
                }
                ClientAction::Fail(refusal) => {
                    return Err(format!("process {ix} is refused: {refusal:?}"));
                }
                ClientAction::Finished => {
                    self.lived.lingered += 1;
                    self.process_dies(ix);
                    return Ok(());
                }
                ClientAction::Ended { .. } | ClientAction::AnswerNotice { .. } => {}
            }
        }
        self.process_ticks(ix);
        Ok(())
    }

    fn call(&mut self, ix: usize, call: CallId, attempt: u32, message: &Call) {
        self.lived.attempts_again += u64::from(attempt > 1);
        let process = &mut self.processes[ix];
        if let CallBody::Events { events, .. } = &message.body {
            let brought = events.iter().filter_map(roles::result_number).collect();
            process.brought.insert(call, brought);
        }
        let (subject, life) = (process.subject.clone(), process.life);
        let from = Caller {
            process: ix,
            life,
            call,
            attempt,
        };
        let nodes = self.nodes.iter().enumerate();
        let listening: Vec<(usize, u64)> = nodes
            .filter(|(_, node)| node.listens())
            .filter_map(|(number, node)| Some((number, node.leader.as_ref()?.life)))
            .collect();
        if listening.is_empty() {
            let delay = self.rng.within(1, 5);
            let none = ProcessEv::NoLeader { call, attempt };
            self.after(delay, Ev::Process(ix, life, none));
        }
        for (node, leadership) in listening {
            self.send(End::Process(ix), End::Node(node), || {
                let call = NodeEv::Call {
                    from,
                    subject: subject.clone(),
                    call: Box::new(message.clone()),
                };
                Ev::Node(node, leadership, call)
            });
        }
    }

    fn process_ticks(&mut self, ix: usize) {
        let now_ms = self.now_ms;
        let process = &mut self.processes[ix];
        let Some(due) = process.session.next_deadline() else {
            return;
        };
        let at = process.clock.world_ms(due).max(now_ms);
        if process.tick_at.is_none_or(|tick| at < tick) {
            process.tick_at = Some(at);
            let life = process.life;
            self.after(at - now_ms, Ev::Process(ix, life, ProcessEv::Tick));
        }
    }
}
