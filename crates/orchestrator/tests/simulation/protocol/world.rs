//! Virtual time, and all processes of the history.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use proofmill_bus::Op;
use proofmill_orchestrator::conversation::LeaseRef;
use proofmill_orchestrator::core::Token;
use proofmill_orchestrator::remote::session::{CallId, NoticeFailure, NoticeRef};
use proofmill_orchestrator::remote::{Answer, Call, Notice, NoticeAck};

use super::checks::Witness;
use super::network::{End, Network};
use super::nodes::Node;
use super::processes::{Caller, Process};
use super::roles::Files;
use super::shared_log::{Appended, LeaseCell, SharedLog};
use crate::checks::Monitor;
use crate::plans::{self, Scene};
use crate::rng::Rng;
use crate::world::Checked;

/// A scheduled event.
pub(crate) enum Ev {
    /// For a coordinator: for its process in any state, or for one of its leaderships.
    Node(usize, u64, NodeEv),
    /// For a process of a role, in one of its lives.
    Process(usize, u64, ProcessEv),
    NodeUp(usize),
    NodeResumes(usize),
    ProcessUp(usize),
    ProcessResumes(usize),
    /// An append arrives at the log.
    Append {
        node: usize,
        leadership: u64,
        token: Token,
        ops: Vec<Op>,
    },
    Fault,
}

pub(crate) enum NodeEv {
    TryToLead,
    Leads {
        term: u64,
    },
    Renew,
    Renewed(bool),
    LeaseChecked(Option<bool>),
    Call {
        from: Caller,
        subject: String,
        call: Box<Call>,
    },
    NoticeAnswered(NoticeRef, NoticeAck),
    NoticeFailed(NoticeRef, NoticeFailure),
    Appended(Token, Appended),
    Tick,
}

pub(crate) enum ProcessEv {
    Answer {
        call: CallId,
        attempt: u32,
        answer: Answer,
        by: u64,
    },
    NoLeader {
        call: CallId,
        attempt: u32,
    },
    Notice {
        node: usize,
        leadership: u64,
        of: NoticeRef,
        notice: Notice,
    },
    Hello {
        term: u64,
    },
    Tick,
    Beat,
    Ran(usize, LeaseRef),
    Produce,
    Operate,
    TryToEmit,
    Emits {
        term: u64,
    },
    RenewSink,
    SinkRenewed(bool),
    SinkWrites,
}

/// Counts of a history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lived {
    pub(crate) digest: u64,
    pub(crate) leaderships: u64,
    /// Number of times that a second coordinator began to lead beside one that still did.
    pub(crate) splits: u64,
    pub(crate) looks: u64,
    pub(crate) attempts_again: u64,
    pub(crate) notices_again: u64,
    pub(crate) clients_gone: u64,
    pub(crate) sessions: u64,
    pub(crate) sinks: u64,
    pub(crate) rewinds: u64,
    pub(crate) log_failures: u64,
    pub(crate) lingered: u64,
}

pub(crate) struct Protocol {
    pub(crate) rng: Rng,
    pub(crate) scene: Scene,
    pub(crate) now_ms: u64,
    agenda: BTreeMap<(u64, u64), Ev>,
    next_ev: u64,
    pub(crate) network: Network,
    pub(crate) log: SharedLog,
    pub(crate) lead: LeaseCell,
    pub(crate) sink_lease: LeaseCell,
    pub(crate) files: Files,
    pub(crate) nodes: Vec<Node>,
    pub(crate) processes: Vec<Process>,
    pub(crate) monitor: Monitor,
    pub(crate) witness: Witness,
    pub(crate) calm: bool,
    pub(crate) lived: Lived,
    pub(crate) next_number: u64,
    steps: u64,
    trace: VecDeque<String>,
    print: bool,
}

const NODES: usize = 3;

impl Protocol {
    pub(crate) fn new(seed: u64, print: bool) -> Self {
        let mut rng = Rng::new(seed ^ 0x7072_6f74_6f63_6f6c);
        let scene = plans::scene(seed as usize % plans::SCENES, &mut rng);
        let nodes = (0..NODES).map(|_| Node::new(&mut rng)).collect();
        let processes = Process::all(&scene, &mut rng);
        let mut world = Self {
            rng,
            scene,
            now_ms: 0,
            agenda: BTreeMap::new(),
            next_ev: 0,
            network: Network::default(),
            log: SharedLog::default(),
            lead: LeaseCell::default(),
            sink_lease: LeaseCell::default(),
            files: Files::default(),
            nodes,
            processes,
            monitor: Monitor::default(),
            witness: Witness::default(),
            calm: false,
            lived: Lived::default(),
            next_number: 0,
            steps: 0,
            trace: VecDeque::new(),
            print,
        };
        for node in 0..NODES {
            let delay = world.rng.within(0, 200);
            world.after(delay, Ev::NodeUp(node));
        }
        for process in 0..world.processes.len() {
            let delay = world.rng.within(0, 500);
            world.after(delay, Ev::ProcessUp(process));
        }
        world.after(100, Ev::Fault);
        world
    }

    pub(crate) fn scene_name(&self) -> &'static str {
        self.scene.name
    }

    /// A number that has not been used before.
    pub(crate) fn fresh(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number
    }

    pub(crate) fn note(&mut self, line: impl FnOnce() -> String) {
        let line = format!("{:>7} {}", self.now_ms, line());
        for byte in line.bytes() {
            let digest = self.lived.digest ^ u64::from(byte);
            self.lived.digest = digest.wrapping_mul(0x0100_0000_01b3).wrapping_add(1);
        }
        if self.print {
            println!("{line}");
        }
        if self.trace.len() == 80 {
            self.trace.pop_front();
        }
        self.trace.push_back(line);
    }

    /// The last lines of the trace, for error messages.
    pub(crate) fn trace_tail(&self) -> String {
        self.trace.iter().map(|line| format!("{line}\n")).collect()
    }

    pub(crate) fn after(&mut self, delay_ms: u64, ev: Ev) {
        self.next_ev += 1;
        let at = (self.now_ms + delay_ms, self.next_ev);
        self.agenda.insert(at, ev);
    }

    /// Schedules an event for each copy of a message that the network delivers.
    pub(crate) fn send(&mut self, from: End, to: End, make: impl Fn() -> Ev) {
        for delay in self.network.delays(&mut self.rng, from, to, self.calm) {
            self.after(delay, make());
        }
    }

    /// Runs the whole history.
    pub(crate) fn run_history(&mut self) -> Result<Lived, String> {
        let turmoil = self.rng.within(4_000, 25_000);
        self.run(turmoil)?;
        self.end_faults();
        for _ in 0..60 {
            self.run(self.now_ms + 5_000)?;
            if self.check_end().is_ok() {
                break;
            }
        }
        self.check_end()?;
        Ok(self.lived)
    }

    fn run(&mut self, until_ms: u64) -> Checked {
        while let Some((&(at, number), _)) = self.agenda.first_key_value() {
            if at > until_ms {
                break;
            }
            let Some(ev) = self.agenda.remove(&(at, number)) else {
                break;
            };
            self.now_ms = at;
            self.steps += 1;
            if self.steps > 600_000 {
                return Err("(liveness) this history does not end".to_owned());
            }
            self.happen(ev)?;
        }
        self.now_ms = until_ms;
        Ok(())
    }

    fn happen(&mut self, ev: Ev) -> Checked {
        match ev {
            Ev::Node(node, life, ev) => self.node_event(node, life, ev),
            Ev::Process(process, life, ev) => self.process_event(process, life, ev),
            Ev::NodeUp(node) => {
                self.node_starts(node);
                Ok(())
            }
            Ev::NodeResumes(node) => {
                for ev in self.nodes[node].resume() {
                    self.after(0, ev);
                }
                Ok(())
            }
            Ev::ProcessUp(process) => self.process_starts(process),
            Ev::ProcessResumes(process) => {
                for ev in self.processes[process].resume() {
                    self.after(0, ev);
                }
                Ok(())
            }
            Ev::Append {
                node,
                leadership,
                token,
                ops,
            } => self.append_arrives(node, leadership, token, ops),
            Ev::Fault => {
                self.fault();
                Ok(())
            }
        }
    }

    fn fault(&mut self) {
        if self.calm {
            return;
        }
        let delay = self.rng.within(50, 1_500);
        self.after(delay, Ev::Fault);
        let node = self.rng.below(self.nodes.len());
        let process = self.rng.below(self.processes.len());
        match self.rng.within(0, 99) {
            0..10 => self.node_dies(node),
            10..22 => self.node_pauses(node),
            22..34 => self.process_dies(process),
            34..46 => self.process_pauses(process),
            46..54 => self.process_leaves(process),
            54..64 => self.splits(End::Process(process)),
            64..76 => self.splits(End::Node(node)),
            76..90 => {
                self.note(|| "the network heals".to_owned());
                self.network.heal();
            }
            _ => {}
        }
    }

    /// Cuts an end off from some others, in one direction or both.
    fn splits(&mut self, end: End) {
        let (from, to) = match self.rng.within(0, 2) {
            0 => (true, false),
            1 => (false, true),
            _ => (true, true),
        };
        let all = self.rng.flip();
        let others: BTreeSet<End> = (0..self.nodes.len())
            .map(End::Node)
            .chain((0..self.processes.len()).map(End::Process))
            .chain([End::Store])
            .filter(|other| *other != end)
            .collect();
        self.note(|| format!("{end:?} is cut off: its messages {from}, those to it {to}"));
        for other in others {
            if !all && self.rng.flip() {
                continue;
            }
            if from {
                self.network.cut(end, other);
            }
            if to {
                self.network.cut(other, end);
            }
        }
    }

    /// Ends all faults, and brings all processes back.
    fn end_faults(&mut self) {
        self.note(|| "calm".to_owned());
        self.calm = true;
        self.network.heal();
        for node in 0..self.nodes.len() {
            self.after(0, Ev::NodeResumes(node));
            self.after(0, Ev::NodeUp(node));
        }
        for process in 0..self.processes.len() {
            self.after(0, Ev::ProcessResumes(process));
            self.after(0, Ev::ProcessUp(process));
        }
    }
}

impl Lived {
    pub(crate) fn add(&mut self, other: &Self) {
        self.leaderships += other.leaderships;
        self.splits += other.splits;
        self.looks += other.looks;
        self.attempts_again += other.attempts_again;
        self.notices_again += other.notices_again;
        self.clients_gone += other.clients_gone;
        self.sessions += other.sessions;
        self.sinks += other.sinks;
        self.rewinds += other.rewinds;
        self.log_failures += other.log_failures;
        self.lingered += other.lingered;
    }

    /// Checks that every kind of event that these histories must cover has happened.
    pub(crate) fn check_coverage(&self) {
        let counts = [
            self.leaderships,
            self.splits,
            self.looks,
            self.attempts_again,
            self.notices_again,
            self.clients_gone,
            self.sessions,
            self.sinks,
            self.rewinds,
            self.log_failures,
            self.lingered,
        ];
        assert!(counts.iter().all(|count| *count >= 100), "{self:?}");
    }
}
