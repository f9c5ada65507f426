//! Roles behind the clients: dispatchers, hosts, sources, sinks, an operator.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use proofmill_orchestrator::collector::Host;
use proofmill_orchestrator::conversation::{
    HostCommand, HostEvent, Lease, LeaseRef, Query, RoleCommand, RoleEvent, SinkCommand,
    WorkerCommand, WorkerEvent, WorkerFailure, WorkerJoin, WorkerResult,
};
use proofmill_orchestrator::plan::{Plan, StageIx};
use proofmill_orchestrator::record::{Failure, TaskRecord};
use proofmill_orchestrator::remote::session::{ClientInput, Question};

use super::world::{Ev, ProcessEv, Protocol};
use crate::actors::{SimWorker, outputs};
use crate::plans::Scene;
use crate::rng::Rng;
use crate::world::Checked;

const BEAT_MS: u64 = 500;

pub(crate) enum Role {
    Crew(Vec<Worker>),
    Host(Keeper),
    Source(SimSource),
    Sequencer(Emitter),
    Operator,
}

pub(crate) struct Worker {
    join: WorkerJoin,
    running: BTreeMap<LeaseRef, Lease>,
}

pub(crate) struct Keeper {
    name: Arc<str>,
    stages: Vec<StageIx>,
    host: Option<Host>,
}

/// A source: it sends its messages in order, a few at a time, and continues from the position in the log.
pub(crate) struct SimSource {
    pub(super) number: usize,
    /// Whether each message is known to the coordinator.
    pub(super) known: Vec<bool>,
    pub(super) sent: Vec<bool>,
    pub(super) tickets: BTreeMap<u64, Brings>,
    pub(super) begun: bool,
    /// Whether it waits for open questions, to send a rewind afterwards.
    pub(super) takes_back: bool,
}

pub(super) enum Brings {
    Next,
    Message(usize),
    TakesBack,
}

pub(crate) struct Emitter {
    pub(crate) term: u64,
    pub(super) holds: bool,
    pub(super) inbox: VecDeque<Arc<TaskRecord>>,
    pub(super) busy: bool,
}

/// Files that sinks have written, over all their processes.
#[derive(Default)]
pub(crate) struct Files {
    pub(crate) next: u64,
    pub(super) files: BTreeMap<u64, (u64, u64)>,
}

/// Dispatchers of each user: group, user, role.
pub(crate) fn crews(scene: &Scene, rng: &mut Rng) -> Vec<(Arc<str>, String, Role)> {
    let crew = SimWorker::crew(scene, rng);
    crew.iter()
        .filter_map(|worker| {
            let WorkerEvent::Join(join) = worker.join() else {
                return None;
            };
            let user = worker.name.split('.').nth(1)?.to_owned();
            let group = worker.group.clone();
            let running = BTreeMap::new();
            Some((group, user, Role::Crew(vec![Worker { join, running }])))
        })
        .collect()
}

/// Hosts for all collectors, in every other history that has collectors.
pub(crate) fn hosts(scene: &Scene, rng: &mut Rng) -> Vec<Role> {
    let is_collector = |ix: &StageIx| scene.plan.stage(*ix).collector().is_some();
    let all = (0..scene.plan.stages.len()).map(StageIx);
    let collectors: Vec<StageIx> = all.filter(is_collector).collect();
    if collectors.is_empty() || rng.flip() {
        return Vec::new();
    }
    let sim_host = |number| {
        Role::Host(Keeper {
            name: format!("host-{number}").into(),
            stages: collectors.clone(),
            host: None,
        })
    };
    (0..rng.within(1, 4)).map(sim_host).collect()
}

/// Number carried by a result.
pub(crate) fn result_number(said: &RoleEvent) -> Option<u64> {
    match said {
        RoleEvent::Worker(WorkerEvent::Complete(complete)) => {
            u64::try_from(complete.ran.as_micros()).ok()
        }
        RoleEvent::Worker(WorkerEvent::Fail(fail)) => fail.failure.stderr.parse().ok(),
        _ => None,
    }
}

// === impl Role ===

impl Role {
    pub(crate) fn source(scene: &Scene, number: usize) -> Self {
        let count = scene.sources[number].spans.len();
        Self::Source(SimSource {
            number,
            known: vec![false; count],
            sent: vec![false; count],
            tickets: BTreeMap::new(),
            begun: false,
            takes_back: false,
        })
    }

    pub(crate) fn sequencer() -> Self {
        Self::Sequencer(Emitter {
            term: 0,
            holds: false,
            inbox: VecDeque::new(),
            busy: false,
        })
    }

    pub(crate) fn host_name(&self) -> String {
        match self {
            Self::Host(sim_host) => sim_host.name.to_string(),
            _ => String::new(),
        }
    }

    /// Whether it can end by itself while others go on.
    pub(crate) fn can_leave(&self) -> bool {
        matches!(self, Self::Crew(_) | Self::Host(_))
    }

    /// Resets the role to the state of a process that has just started.
    pub(crate) fn reset(&mut self, scene: &Scene) {
        match self {
            Self::Crew(workers) => workers.iter_mut().for_each(|worker| worker.running.clear()),
            Self::Host(sim_host) => sim_host.start(&scene.plan),
            Self::Source(sim_source) => *self = Self::source(scene, sim_source.number),
            Self::Sequencer(_) => *self = Self::sequencer(),
            Self::Operator => {}
        }
    }
}

impl Keeper {
    fn start(&mut self, plan: &Arc<Plan>) {
        let host = Host::new(plan.clone(), self.name.clone(), self.stages.clone());
        self.host = Some(host);
    }
}

impl Worker {
    fn heartbeat(&self, retired: bool) -> RoleEvent {
        RoleEvent::Worker(WorkerEvent::Heartbeat {
            worker: self.join.worker.clone(),
            running: self.running.keys().cloned().collect(),
            retired,
            paused: None,
        })
    }
}

impl SimSource {
    /// Position from which the source continues if it starts anew now.
    pub(super) fn next(&self, scene: &Scene) -> Option<u64> {
        let source = &scene.sources[self.number];
        let first_unknown = self.known.iter().position(|known| !known);
        let known = first_unknown.unwrap_or(self.known.len());
        let last = source.spans.get(known.checked_sub(1)?)?;
        source.recorded.then_some(last.1 + 1)
    }
}

impl Protocol {
    pub(crate) fn role_starts(&mut self, ix: usize) -> Checked {
        let scene = &self.scene;
        self.processes[ix].role.reset(scene);
        let life = self.processes[ix].life;
        let number = self.fresh();
        match &mut self.processes[ix].role {
            Role::Crew(workers) => {
                let joins: Vec<WorkerJoin> =
                    workers.iter().map(|worker| worker.join.clone()).collect();
                for join in joins {
                    self.say(ix, RoleEvent::Worker(WorkerEvent::Join(join)))?;
                }
                self.after(BEAT_MS, Ev::Process(ix, life, ProcessEv::Beat));
            }
            Role::Host(sim_host) => {
                let join = sim_host.host.as_mut().map(|host| host.join(number));
                if let Some(join) = join {
                    self.say(ix, RoleEvent::Host(HostEvent::Join(join)))?;
                }
                self.after(2 * BEAT_MS, Ev::Process(ix, life, ProcessEv::Beat));
            }
            Role::Source(sim_source) => {
                sim_source.tickets.insert(number, Brings::Next);
                let name = self.scene.sources[sim_source.number].name.into();
                self.ask(ix, number, Question::Query(Query::SourceNext(name)))?;
                self.after(1, Ev::Process(ix, life, ProcessEv::Produce));
            }
            Role::Sequencer(_) => self.after(1, Ev::Process(ix, life, ProcessEv::TryToEmit)),
            Role::Operator => self.after(300, Ev::Process(ix, life, ProcessEv::Operate)),
        }
        Ok(())
    }

    pub(super) fn ask(&mut self, ix: usize, ticket: u64, question: Question) -> Checked {
        self.tell_session(ix, ClientInput::Ask { ticket, question })
    }

    pub(crate) fn role_event(&mut self, ix: usize, ev: ProcessEv) -> Checked {
        match ev {
            ProcessEv::Beat => self.beats(ix),
            ProcessEv::Ran(worker, lease) => self.ran(ix, worker, &lease),
            ProcessEv::Produce => self.produces(ix),
            ProcessEv::Operate => self.operates(ix),
            ProcessEv::TryToEmit | ProcessEv::RenewSink => {
                self.asks_for_sink(ix, matches!(ev, ProcessEv::RenewSink));
                Ok(())
            }
            ProcessEv::Emits { term } => self.emits(ix, term),
            ProcessEv::SinkRenewed(true) => Ok(()),
            ProcessEv::SinkRenewed(false) => {
                self.process_dies(ix);
                Ok(())
            }
            ProcessEv::SinkWrites => self.writes(ix),
            _ => Ok(()),
        }
    }

    fn beats(&mut self, ix: usize) -> Checked {
        let process = &self.processes[ix];
        let (life, leaving) = (process.life, process.leaving);
        let beats: Vec<RoleEvent> = match &process.role {
            Role::Crew(workers) if leaving => {
                let all = workers.iter().flat_map(|worker| {
                    let name = &worker.join.worker;
                    let running = worker.running.keys();
                    let back = running.map(|lease| {
                        RoleEvent::from(WorkerEvent::Release {
                            worker: name.clone(),
                            lease: lease.clone(),
                        })
                    });
                    back.chain([WorkerEvent::Leave {
                        worker: name.clone(),
                    }
                    .into()])
                });
                all.collect()
            }
            Role::Crew(workers) => workers
                .iter()
                .map(|worker| worker.heartbeat(false))
                .collect(),
            Role::Host(sim_host) if leaving => vec![
                HostEvent::Leave {
                    host: sim_host.name.clone(),
                }
                .into(),
            ],
            Role::Host(sim_host) => vec![
                HostEvent::Heartbeat {
                    host: sim_host.name.clone(),
                }
                .into(),
            ],
            _ => Vec::new(),
        };
        for said in beats {
            self.say(ix, said)?;
        }
        if leaving {
            return self.tell_session(ix, ClientInput::Close);
        }
        self.after(BEAT_MS, Ev::Process(ix, life, ProcessEv::Beat));
        Ok(())
    }

    /// Handles a command of the coordinator.
    pub(crate) fn role_hears(&mut self, ix: usize, command: RoleCommand) -> Checked {
        let number = self.fresh();
        let process = &mut self.processes[ix];
        let (life, leaving) = (process.life, process.leaving);
        match (command, &mut process.role) {
            (RoleCommand::Worker(name, message), Role::Crew(workers)) => {
                let mut at = workers.iter();
                let Some(at) = at.position(|worker| worker.join.worker == name) else {
                    return Ok(());
                };
                self.worker_hears(ix, at, message)
            }
            (RoleCommand::Host(_, message), Role::Host(sim_host)) => {
                let Some(host) = &mut sim_host.host else {
                    return Ok(());
                };
                let is_unknown = matches!(message, HostCommand::Unknown);
                match host.handle([message]) {
                    _ if leaving && is_unknown => Ok(()),
                    Some(verdicts) if verdicts.is_empty() => Ok(()),
                    Some(verdicts) => {
                        let verdicts = host.report(verdicts);
                        self.say(ix, RoleEvent::Host(HostEvent::Verdicts(verdicts)))
                    }
                    None => {
                        let join = host.join(number);
                        self.say(ix, RoleEvent::Host(HostEvent::Join(join)))
                    }
                }
            }
            (RoleCommand::Sink(SinkCommand::Emit(task)), Role::Sequencer(emitter)) => {
                emitter.inbox.push_back(task);
                if !std::mem::replace(&mut emitter.busy, true) {
                    let delay = self.rng.within(1, 30);
                    self.after(delay, Ev::Process(ix, life, ProcessEv::SinkWrites));
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn worker_hears(&mut self, ix: usize, at: usize, message: WorkerCommand) -> Checked {
        let process = &mut self.processes[ix];
        let (life, leaving) = (process.life, process.leaving);
        let Role::Crew(workers) = &mut process.role else {
            return Ok(());
        };
        let worker = &mut workers[at];
        match message {
            WorkerCommand::Assign(leases) => {
                let names: Vec<LeaseRef> = leases.iter().map(Lease::reference).collect();
                worker.running.extend(names.iter().cloned().zip(leases));
                for name in names {
                    let duration = match self.rng.within(0, 99) {
                        _ if self.calm => self.rng.within(5, 300),
                        // Longer than T_ack.
                        0..4 => self.rng.within(3_000, 8_000),
                        _ => self.rng.within(1, 800),
                    };
                    self.after(duration, Ev::Process(ix, life, ProcessEv::Ran(at, name)));
                }
                Ok(())
            }
            WorkerCommand::Cancel(lease) => {
                worker.running.remove(&lease);
                Ok(())
            }
            WorkerCommand::Unknown if leaving => Ok(()),
            WorkerCommand::Unknown => {
                let (join, beat) = (worker.join.clone(), worker.heartbeat(false));
                self.say(ix, RoleEvent::Worker(WorkerEvent::Join(join)))?;
                self.say(ix, beat)
            }
        }
    }

    /// Ends a run; its result is reported once.
    fn ran(&mut self, ix: usize, at: usize, name: &LeaseRef) -> Checked {
        let mark = self.fresh();
        self.witness.makes(ix, self.processes[ix].life, mark);
        let leaving = self.processes[ix].leaving;
        let Role::Crew(workers) = &mut self.processes[ix].role else {
            return Ok(());
        };
        let worker = &mut workers[at];
        let Some(lease) = worker.running.remove(name).filter(|_| !leaving) else {
            return Ok(());
        };
        let by = worker.join.worker.clone();
        let said = if !self.calm && self.rng.per_mille(100) {
            RoleEvent::Worker(WorkerEvent::Fail(WorkerFailure {
                worker: by,
                lease: name.clone(),
                failure: Failure {
                    stderr: mark.to_string(),
                    ..Failure::retryable("out of memory")
                },
            }))
        } else {
            RoleEvent::Worker(WorkerEvent::Complete(WorkerResult {
                worker: by,
                lease: name.clone(),
                outputs: outputs(&self.scene, lease.stage, &lease.task),
                ran: Duration::from_micros(mark),
            }))
        };
        self.say(ix, said)
    }
}
