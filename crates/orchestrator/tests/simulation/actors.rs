//! Workers: the tasks that they run, the messages that they resend, and their deaths.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use proofmill_orchestrator::conversation::{
    Lease, LeaseRef, Output, WorkerCommand, WorkerEvent, WorkerFailure, WorkerJoin, WorkerResult,
};
use proofmill_orchestrator::id::TaskId;
use proofmill_orchestrator::message::grouping;
use proofmill_orchestrator::payload::Payload;
use proofmill_orchestrator::plan::StageIx;
use proofmill_orchestrator::principal::worker_name;
use proofmill_orchestrator::record::{Failure, TaskRecord};

use crate::chain::forks_of;
use crate::plans::{PROVER, PROVERS, Scene, Source};
use crate::rng::Rng;
use crate::world::{Ev, World};

/// An event at a worker.
#[derive(Clone)]
pub(crate) enum Hears {
    Command(WorkerCommand),
    /// A task has ended, durably.
    Settled(TaskId),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    Up,
    Paused,
    Down,
}

pub(crate) struct SimWorker {
    pub(crate) name: Arc<str>,
    pub(crate) group: Arc<str>,
    labels: BTreeSet<String>,
    memory: u64,
    slots: usize,
    pub(crate) state: State,
    pub(crate) leaving: bool,
    /// Whether its disk is full: it takes no tasks, and hands back those that it is given.
    full: bool,
    pub(crate) inc: u64,
    running: BTreeMap<LeaseRef, Lease>,
    /// Results that the coordinator has not acknowledged.
    results: BTreeMap<LeaseRef, WorkerEvent>,
    /// Time at which it last renewed the blobs of these results.
    renewed_ms: u64,
    pub(crate) asleep: Vec<Ev>,
}

pub(crate) struct Producer {
    pub(crate) up: bool,
    pub(crate) inc: u64,
    pub(crate) epoch: u64,
    pub(crate) known: Vec<bool>,
    pub(crate) sent: Vec<Option<u64>>,
    pub(crate) in_order_until: u64,
}

#[derive(Default)]
pub(crate) struct Sink {
    pub(crate) up: bool,
    pub(crate) busy: bool,
    pub(crate) inbox: VecDeque<Arc<TaskRecord>>,
    pub(crate) files: BTreeMap<u64, (u64, u64)>,
    pub(crate) next: u64,
}

const BEAT_MS: u64 = 500;

impl Producer {
    pub(crate) fn new(source: &Source) -> Self {
        let count = source.spans.len();
        Self {
            up: false,
            inc: 0,
            epoch: 0,
            known: vec![false; count],
            sent: vec![None; count],
            in_order_until: 0,
        }
    }
}

impl SimWorker {
    pub(crate) fn crew(scene: &Scene, rng: &mut Rng) -> Vec<Self> {
        let groups: BTreeSet<Arc<str>> = scene
            .plan
            .stages
            .iter()
            .filter_map(|stage| Some(stage.dispatcher()?.group.clone()))
            .collect();
        let mut crew = Vec::new();
        for group in groups {
            let mut stages = scene
                .plan
                .stages
                .iter()
                .filter_map(|stage| stage.dispatcher());
            let several = stages.any(|plan| plan.group == group && plan.speculation.copies > 1);
            let least = if several { PROVERS } else { 1 };
            for number in 0..rng.within(least, 5) {
                // The first worker of each group can run every task.
                let able = number < least || rng.flip();
                let mut labels = BTreeSet::from([format!("{PROVER}{}", number % PROVERS)]);
                if able {
                    labels.insert("gpu".to_owned());
                }
                crew.push(Self {
                    name: worker_name(
                        &format!("{group}-{number}"),
                        &group,
                        &format!("user-{number}"),
                        "host",
                    )
                    .into(),
                    group: group.clone(),
                    labels,
                    memory: if able { 2 } else { rng.within(0, 2) },
                    slots: rng.within(1, 3) as usize,
                    state: State::Down,
                    leaving: false,
                    full: false,
                    inc: 0,
                    running: BTreeMap::new(),
                    results: BTreeMap::new(),
                    renewed_ms: 0,
                    asleep: Vec::new(),
                });
            }
        }
        crew
    }

    pub(crate) fn waits_for(&self, task: &TaskId) -> bool {
        self.results.keys().any(|lease| lease.task == *task)
    }

    pub(crate) fn join(&self) -> WorkerEvent {
        WorkerEvent::Join(WorkerJoin {
            worker: self.name.clone(),
            group: self.group.clone(),
            labels: self.labels.clone(),
            memory: self.memory,
            slots: self.slots,
        })
    }

    fn heartbeat(&self) -> WorkerEvent {
        let done = self
            .results
            .iter()
            .filter(|(_, event)| matches!(event, WorkerEvent::Complete(_)));
        let running = self
            .running
            .keys()
            .chain(done.map(|(lease, _)| lease))
            .cloned()
            .collect();
        WorkerEvent::Heartbeat {
            worker: self.name.clone(),
            running,
            retired: self.leaving,
            paused: self.full.then(|| "no disk space".to_owned()),
        }
    }
}

impl World {
    pub(crate) fn worker_event(&mut self, ev: Ev) {
        let (Ev::ToWorker(ix, ..)
        | Ev::Beat(ix, _)
        | Ev::Ran(ix, ..)
        | Ev::WorkerUp(ix)
        | Ev::WorkerResumes(ix)
        | Ev::WorkerGone(ix, _)
        | Ev::WorkerHasRoom(ix, _)) = ev
        else {
            return;
        };
        match (self.workers[ix].state, ev) {
            (State::Down, Ev::WorkerUp(_)) => self.worker_starts(ix),
            (State::Paused, Ev::WorkerResumes(_)) => {
                self.note(|| format!("worker {ix} resumes"));
                self.workers[ix].state = State::Up;
                for ev in std::mem::take(&mut self.workers[ix].asleep) {
                    self.after(0, ev);
                }
            }
            // The worker was paused when this happened, and handles it when it resumes.
            (
                State::Paused,
                ev @ (Ev::ToWorker(..)
                | Ev::Beat(..)
                | Ev::Ran(..)
                | Ev::WorkerGone(..)
                | Ev::WorkerHasRoom(..)),
            ) => {
                self.workers[ix].asleep.push(ev);
            }
            (State::Up, Ev::ToWorker(_, inc, message)) if inc == self.workers[ix].inc => {
                self.worker_hears(ix, message);
            }
            (State::Up, Ev::Beat(_, inc)) if inc == self.workers[ix].inc => self.worker_beats(ix),
            (State::Up, Ev::Ran(_, inc, lease)) if inc == self.workers[ix].inc => {
                self.worker_ran(ix, &lease);
            }
            (State::Up, Ev::WorkerHasRoom(_, inc)) if inc == self.workers[ix].inc => {
                self.note(|| format!("worker {ix} has room again"));
                self.workers[ix].full = false;
                let beat = self.workers[ix].heartbeat();
                self.lossy(|| Ev::ToCore(None, beat.clone().into()));
            }
            (State::Up, Ev::WorkerGone(_, inc)) if inc == self.workers[ix].inc => {
                let worker = self.workers[ix].name.clone();
                let gone = match self.rng.flip() {
                    true => WorkerEvent::Leave { worker },
                    // It was cut off before it had left.
                    false => WorkerEvent::Lost { worker },
                };
                self.lossy(|| Ev::ToCore(None, gone.clone().into()));
                self.worker_dies(ix);
            }
            _ => {}
        }
    }

    fn worker_starts(&mut self, ix: usize) {
        let worker = &mut self.workers[ix];
        worker.state = State::Up;
        worker.leaving = false;
        worker.full = false;
        worker.inc += 1;
        worker.running.clear();
        worker.results.clear();
        worker.asleep.clear();
        let (join, inc) = (worker.join(), worker.inc);
        self.note(|| format!("worker {ix} starts"));
        self.lossy(|| Ev::ToCore(None, join.clone().into()));
        self.after(BEAT_MS, Ev::Beat(ix, inc));
    }

    pub(crate) fn worker_dies(&mut self, ix: usize) {
        if self.workers[ix].state == State::Down {
            return;
        }
        self.note(|| format!("worker {ix} dies"));
        self.workers[ix].state = State::Down;
        let delay = self.rng.within(1, 5_000);
        self.after(delay, Ev::WorkerUp(ix));
    }

    pub(crate) fn worker_pauses(&mut self, ix: usize) {
        if self.workers[ix].state == State::Up {
            self.note(|| format!("worker {ix} is paused"));
            self.workers[ix].state = State::Paused;
            let delay = self.rng.within(100, 9_000);
            self.after(delay, Ev::WorkerResumes(ix));
        }
    }

    /// The worker hands back some of its tasks, and leaves.
    pub(crate) fn worker_retires(&mut self, ix: usize) {
        if self.workers[ix].state != State::Up || self.workers[ix].leaving {
            return;
        }
        self.note(|| format!("worker {ix} retires"));
        let worker = self.workers[ix].name.clone();
        self.workers[ix].leaving = true;
        self.after(
            0,
            Ev::ToCore(
                None,
                WorkerEvent::Retire {
                    worker: worker.clone(),
                }
                .into(),
            ),
        );
        let running: Vec<LeaseRef> = self.workers[ix].running.keys().cloned().collect();
        for lease in running {
            if self.rng.flip() {
                self.workers[ix].running.remove(&lease);
                let worker = worker.clone();
                let release = WorkerEvent::Release { worker, lease };
                self.lossy(|| Ev::ToCore(None, release.clone().into()));
            }
        }
        let inc = self.workers[ix].inc;
        self.after(1_500, Ev::WorkerGone(ix, inc));
    }

    /// The worker's disk fills up: it reports that, and hands back its tasks.
    pub(crate) fn worker_fills(&mut self, ix: usize) {
        if self.workers[ix].state != State::Up || self.workers[ix].full {
            return;
        }
        self.note(|| format!("worker {ix} has a full disk"));
        self.workers[ix].full = true;
        let running = std::mem::take(&mut self.workers[ix].running);
        let beat = self.workers[ix].heartbeat();
        self.lossy(|| Ev::ToCore(None, beat.clone().into()));
        for lease in running.into_keys() {
            self.hand_back(ix, lease);
        }
        let (delay, inc) = (self.rng.within(100, 9_000), self.workers[ix].inc);
        self.after(delay, Ev::WorkerHasRoom(ix, inc));
    }

    fn hand_back(&mut self, ix: usize, lease: LeaseRef) {
        let worker = self.workers[ix].name.clone();
        let release = WorkerEvent::Release { worker, lease };
        self.lossy(|| Ev::ToCore(None, release.clone().into()));
    }

    fn worker_hears(&mut self, ix: usize, message: Hears) {
        match message {
            Hears::Command(WorkerCommand::Assign(leases)) => {
                for lease in leases {
                    let of = lease.reference();
                    if self.workers[ix].full {
                        self.hand_back(ix, of);
                        continue;
                    }
                    let worker = &mut self.workers[ix];
                    if worker.running.contains_key(&of) || worker.results.contains_key(&of) {
                        continue;
                    }
                    worker.running.insert(of.clone(), lease);
                    let inc = worker.inc;
                    let duration = match self.rng.within(0, 99) {
                        _ if self.calm => self.rng.within(5, 300),
                        // Longer than T_ack; or without end, except for the executor's own limit.
                        0..4 => self.rng.within(3_000, 8_000),
                        4..6 => 40_000,
                        _ => self.rng.within(1, 800),
                    };
                    self.after(duration, Ev::Ran(ix, inc, of));
                }
            }
            Hears::Command(WorkerCommand::Cancel(lease)) => {
                self.workers[ix].running.remove(&lease);
                self.workers[ix].results.remove(&lease);
            }
            Hears::Settled(task) => {
                self.workers[ix]
                    .results
                    .retain(|lease, _| lease.task != task);
            }
            Hears::Command(WorkerCommand::Unknown) => {
                if !self.workers[ix].leaving {
                    let join = self.workers[ix].join();
                    self.lossy(|| Ev::ToCore(None, join.clone().into()));
                    let beat = self.workers[ix].heartbeat();
                    self.lossy(|| Ev::ToCore(None, beat.clone().into()));
                }
            }
        }
    }

    fn worker_beats(&mut self, ix: usize) {
        let inc = self.workers[ix].inc;
        let beat = self.workers[ix].heartbeat();
        self.lossy(|| Ev::ToCore(None, beat.clone().into()));
        let age_ms = self.now_ms - self.workers[ix].renewed_ms;
        self.workers[ix].renewed_ms = self.now_ms;
        let results: Vec<_> = self.workers[ix].results.clone().into_iter().collect();
        for (lease, mut result) in results {
            if !self.blobs.renew(&result, age_ms) {
                // The worker was stopped for so long that the blobs of its result are gone.
                self.workers[ix].results.remove(&lease);
                let worker = self.workers[ix].name.clone();
                result = WorkerEvent::Release { worker, lease };
            }
            self.lossy(|| Ev::ToCore(None, result.clone().into()));
        }
        self.after(BEAT_MS, Ev::Beat(ix, inc));
    }

    fn worker_ran(&mut self, ix: usize, of: &LeaseRef) {
        let Some(lease) = self.workers[ix].running.remove(of) else {
            return;
        };
        let worker = self.workers[ix].name.clone();
        let at_task = |failure: Failure| Failure {
            stderr: format!("{worker} at {}", lease.task.id),
            ..failure
        };
        let failure = match self.rng.within(0, 999) {
            _ if self.calm => None,
            0..10 => Some(at_task(Failure::permanent("bad witness"))),
            10..130 => Some(at_task(Failure::retryable("out of memory"))),
            _ => None,
        };
        let result = match failure {
            Some(failure) => WorkerEvent::Fail(WorkerFailure {
                worker: worker.clone(),
                lease: of.clone(),
                failure,
            }),
            None => WorkerEvent::Complete(WorkerResult {
                worker: worker.clone(),
                lease: of.clone(),
                outputs: self.store_outputs(outputs(&self.scene, lease.stage, &lease.task)),
                ran: Duration::from_millis(1),
            }),
        };
        self.workers[ix].results.insert(of.clone(), result.clone());
        self.lossy(|| Ev::ToCore(None, result.clone().into()));
    }
}

/// Outputs of a stage for a task; the same for every worker.
pub(crate) fn outputs(scene: &Scene, stage: StageIx, task: &TaskRecord) -> Vec<Output> {
    let plan = scene.plan.stage(stage);
    let count = scene.fan_out.get(&*plan.name).copied();
    (0..count.unwrap_or(1))
        .map(|index| {
            let content = digest(&task.payload) ^ (stage.0 as u64 * 31 + index as u64);
            let mut json = format!("{{\"g\":{},\"h\":\"{content:016x}\"", task.id.block);
            if scene.chain {
                // Two results of one task may be about the same block, but never about two forks of it.
                let forks = forks_of(&task.payload).unwrap_or_default();
                let forks: Vec<_> = forks.into_iter().map(<[u64; 2]>::from).collect();
                json += &format!(",\"forks\":{forks:?}");
            }
            json.push('}');
            let grouping = plan
                .outputs
                .iter()
                .flat_map(|queue| grouping(&scene.plan, *queue, Some(json.as_bytes())))
                .collect();
            Output {
                element: count.map(|_| index),
                payload: Payload::json(json),
                grouping,
            }
        })
        .collect()
}

/// FNV-1a hash of a payload.
pub(crate) fn digest(payload: &Payload) -> u64 {
    let mix = |hash: u64, byte: u64| (hash ^ byte).wrapping_mul(0x0100_0000_01b3);
    let start = 0xcbf2_9ce4_8422_2325;
    match payload {
        Payload::Inline { bytes, .. } => bytes.iter().fold(start, |h, b| mix(h, u64::from(*b))),
        Payload::Blob { digest, .. } => digest.iter().fold(start, |h, b| mix(h, u64::from(*b))),
        Payload::Group { members, .. } => members
            .iter()
            .fold(start, |hash, (_, member)| mix(hash, digest(member))),
    }
}
