//! The world: a core behind a log that accepts at once, workers on machines, and an autoscaler.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use proofmill_bus::Seq;
use proofmill_orchestrator::conversation::{
    Lease, LeaseRef, Output, Request, SinkCommand, SinkEvent, Submit, Uniqueness, WorkerCommand,
    WorkerEvent, WorkerJoin, WorkerResult,
};
use proofmill_orchestrator::core::{
    Action, Core, CoreOptions, Event, Now, PoolStatus, RequestId, Time, Token,
};
use proofmill_orchestrator::id::Part;
use proofmill_orchestrator::message::{Message, grouping};
use proofmill_orchestrator::payload::Payload;
use proofmill_orchestrator::plan::{Plan, PoolPlan, QueueIx, pools};
use proofmill_workflow::Workflow;

use crate::rng::Rng;

/// Time between two looks of the autoscaler, as of Kubernetes' controller.
const AUTOSCALE_MS: u64 = 15_000;
/// Time between two heartbeats of a worker.
const HEARTBEAT_MS: u64 = 10_000;

/// The machines behind a pool.
pub(crate) struct Machines {
    /// Shortest and longest time from the start of a machine until its worker joins, in milliseconds.
    pub(crate) start_ms: (u64, u64),
    /// Number of machines that can be had at a time, in milliseconds.
    pub(crate) available: Box<dyn Fn(u64) -> u64>,
}

/// Duration of the runs of each stage: the mean in milliseconds, and the deviation in percent.
pub(crate) type Runs = BTreeMap<&'static str, (u64, u64)>;

/// A moment of the history: each pool as the core saw it.
pub(crate) struct Look {
    pub(crate) at_ms: u64,
    pub(crate) pools: Vec<PoolStatus>,
}

pub(crate) struct World {
    core: Core,
    plan: Arc<Plan>,
    pools: Vec<PoolPlan>,
    machines: Vec<Machines>,
    runs: Runs,
    /// Outputs of a stage whose result is split.
    parts: usize,
    rng: Rng,
    now_ms: u64,
    next: BinaryHeap<Reverse<(u64, u64, Due)>>,
    numbers: u64,
    last: Seq,
    workers: BTreeMap<String, Worker>,
    /// Assignments that wait for their append.
    held_back: Vec<(Token, String, Vec<Lease>)>,
    /// Blocks whose first run never ends, though its worker is alive.
    pub(crate) hangs: BTreeSet<u64>,
    pub(crate) looks: Vec<Look>,
    /// Time of each block's submission and emission, in milliseconds.
    pub(crate) submitted: BTreeMap<u64, u64>,
    pub(crate) emitted: BTreeMap<u64, u64>,
}

/// A worker, from the start of its machine on.
struct Worker {
    pool: usize,
    joined: bool,
    leaving: bool,
    running: Vec<LeaseRef>,
}

/// An event of the world, at a time.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    Join(String),
    Beat(String),
    Done(String, LeaseRef),
    Autoscale,
    Block(u64),
}

// === impl Machines ===

impl Machines {
    /// As many machines as are asked for.
    pub(crate) fn plenty(start_ms: (u64, u64)) -> Self {
        Self {
            start_ms,
            available: Box::new(|_| u64::MAX),
        }
    }
}

// === impl World ===

impl World {
    /// `machines` are in the order of the workflow's pools.
    pub(crate) fn new(text: &str, machines: Vec<Machines>, runs: Runs, seed: u64) -> Self {
        let workflow = Workflow::parse(text, Path::new("scaling.toml")).expect("a workflow");
        let plan = Arc::new(Plan::compile(&workflow, &BTreeMap::new()).expect("a plan"));
        let pools = pools(&workflow);
        assert_eq!(pools.len(), machines.len(), "machines for each pool");
        let options = CoreOptions {
            pools: pools.clone(),
            ..CoreOptions::default()
        };
        let mut world = Self {
            core: Core::new(plan.clone(), options),
            plan,
            pools,
            machines,
            runs,
            parts: 1,
            rng: Rng::new(seed),
            now_ms: 0,
            next: BinaryHeap::new(),
            numbers: 0,
            last: Seq(0),
            workers: BTreeMap::new(),
            held_back: Vec::new(),
            hangs: BTreeSet::new(),
            looks: Vec::new(),
            submitted: BTreeMap::new(),
            emitted: BTreeMap::new(),
        };
        let actions = world.core.start(world.now());
        world.carry_out(actions);
        world.at(0, Due::Autoscale);
        world
    }

    /// Makes results of the stage `split` be split into so many messages.
    pub(crate) fn split_into(mut self, parts: usize) -> Self {
        self.parts = parts;
        self
    }

    /// Submits the blocks `from..to` to the queue `blocks` at a time.
    pub(crate) fn blocks_at(&mut self, at_ms: u64, blocks: std::ops::Range<u64>) {
        for block in blocks {
            self.at(at_ms, Due::Block(block));
        }
    }

    /// Lets everything happen until a time.
    pub(crate) fn run_until(&mut self, until_ms: u64) {
        loop {
            let tick = self.core.next_deadline().map(|due| due.0.div_ceil(1000));
            let due = self.next.peek().map(|Reverse((at, ..))| *at);
            let Some(at) = tick
                .into_iter()
                .chain(due)
                .min()
                .filter(|at| *at <= until_ms)
            else {
                break;
            };
            self.now_ms = self.now_ms.max(at);
            if due.is_some_and(|due| due <= at)
                && let Some(Reverse((_, _, due))) = self.next.pop()
            {
                self.happen(due);
            } else {
                self.tell(Event::Tick);
            }
        }
        self.now_ms = until_ms;
    }

    pub(crate) fn status(&self) -> proofmill_orchestrator::core::Status {
        self.core.status()
    }

    /// Workers of a pool that have joined and are not leaving.
    pub(crate) fn joined(&self, pool: usize) -> usize {
        let workers = self.workers.values();
        let of_pool = workers.filter(|it| it.pool == pool && it.joined && !it.leaving);
        of_pool.count()
    }

    /// Wanted numbers of a pool at the autoscaler's looks from a time on.
    pub(crate) fn wanted_from(&self, pool: usize, from_ms: u64) -> Vec<u64> {
        let looks = self.looks.iter().filter(|look| look.at_ms >= from_ms);
        looks.map(|look| look.pools[pool].wanted).collect()
    }

    /// Longest time from a block's submission to its emission, in milliseconds, of the blocks from one on; all must
    /// have been emitted.
    pub(crate) fn longest(&self, blocks: std::ops::Range<u64>) -> u64 {
        let took = blocks.map(|block| {
            let emitted = self.emitted.get(&block);
            let emitted = emitted.unwrap_or_else(|| panic!("block {block} has not been emitted"));
            emitted - self.submitted[&block]
        });
        took.max().unwrap_or(0)
    }

    fn now(&self) -> Now {
        Now {
            mono: Time(self.now_ms * 1000),
            wall_ms: 1_000_000_000_000 + self.now_ms,
        }
    }

    fn at(&mut self, at_ms: u64, due: Due) {
        self.numbers += 1;
        self.next.push(Reverse((at_ms, self.numbers, due)));
    }

    fn happen(&mut self, due: Due) {
        match due {
            Due::Join(name) => self.join(name),
            Due::Beat(name) => self.beat(name),
            Due::Done(name, lease) => self.done(&name, lease),
            Due::Autoscale => self.autoscale(),
            Due::Block(block) => self.submit(block),
        }
    }

    fn submit(&mut self, block: u64) {
        self.submitted.insert(block, self.now_ms);
        self.numbers += 1;
        let queue = self.plan.queue_named("blocks").expect("a queue");
        let payload = Payload::json(format!("{{\"block\":{block}}}"));
        let bytes = payload_bytes(&payload);
        self.tell(Event::Request {
            id: RequestId(self.numbers),
            request: Request::Submit(Submit {
                producer: "chain".into(),
                queue,
                message: Message {
                    first: block,
                    last: block,
                    part: Part::whole(),
                    needs: None,
                    grouping: grouping(&self.plan, queue, Some(&bytes[..])),
                    payload,
                },
                uniqueness: Uniqueness::Multiple,
                source_next: None,
                caller: None,
            }),
        });
    }

    fn join(&mut self, name: String) {
        let Some(worker) = self.workers.get_mut(&name).filter(|it| !it.leaving) else {
            self.workers.remove(&name);
            return;
        };
        worker.joined = true;
        let pool = &self.pools[worker.pool];
        let join = WorkerJoin {
            worker: name.as_str().into(),
            group: pool.group.clone(),
            labels: pool.labels.clone(),
            memory: u64::MAX,
            slots: usize::try_from(pool.slots).expect("few"),
        };
        self.tell(WorkerEvent::Join(join));
        self.at(self.now_ms + HEARTBEAT_MS, Due::Beat(name));
    }

    fn beat(&mut self, name: String) {
        let Some(worker) = self.workers.get(&name) else {
            return;
        };
        let beat = WorkerEvent::Heartbeat {
            worker: name.as_str().into(),
            running: worker.running.clone(),
            retired: worker.leaving,
            paused: None,
        };
        self.tell(beat);
        self.at(self.now_ms + HEARTBEAT_MS, Due::Beat(name));
    }

    fn done(&mut self, name: &str, lease: LeaseRef) {
        let Some(worker) = self.workers.get_mut(name) else {
            return;
        };
        let Some(at) = worker.running.iter().position(|other| *other == lease) else {
            return;
        };
        worker.running.remove(at);
        let stage = self.plan.stage_named(&lease.task.stage).expect("a stage");
        let outputs = &self.plan.stage(stage).outputs;
        let json = format!("{{\"block\":{}}}", lease.task.block);
        let output = |element| Output {
            element,
            payload: Payload::json(json.clone()),
            grouping: groupings(&self.plan, outputs, json.as_bytes()),
        };
        let outputs = match &*lease.task.stage {
            "split" => (0..self.parts).map(|part| output(Some(part))).collect(),
            _ => vec![output(None)],
        };
        self.tell(WorkerEvent::Complete(WorkerResult {
            worker: name.into(),
            lease,
            outputs,
            ran: Duration::ZERO,
        }));
        self.leave_if_idle(name);
    }

    /// Starts and stops machines, so that there are as many as are wanted and can be had.
    fn autoscale(&mut self) {
        let status = self.core.status().scaling;
        for (pool, asked) in status.iter().enumerate() {
            let available = (self.machines[pool].available)(self.now_ms);
            let mut names: Vec<String> = self.of_pool(pool);
            // Machines that are taken away go at once, with what they run.
            while names.len() as u64 > available {
                let name = names.swap_remove(self.rng.below(names.len()));
                self.workers.remove(&name);
                self.tell(WorkerEvent::Lost {
                    worker: name.as_str().into(),
                });
            }
            let wanted = asked.wanted.min(available);
            let active = |name: &String| !self.workers[name].leaving;
            names.retain(active);
            while (names.len() as u64) < wanted {
                names.push(self.start(pool));
            }
            while names.len() as u64 > wanted {
                let name = names.swap_remove(self.rng.below(names.len()));
                self.stop(&name);
            }
        }
        self.looks.push(Look {
            at_ms: self.now_ms,
            pools: status,
        });
        self.at(self.now_ms + AUTOSCALE_MS, Due::Autoscale);
    }

    fn of_pool(&self, pool: usize) -> Vec<String> {
        let workers = self.workers.iter().filter(|(_, it)| it.pool == pool);
        workers.map(|(name, _)| name.clone()).collect()
    }

    fn start(&mut self, pool: usize) -> String {
        self.numbers += 1;
        let name = format!("{}-{}", self.pools[pool].name, self.numbers);
        let worker = Worker {
            pool,
            joined: false,
            leaving: false,
            running: Vec::new(),
        };
        self.workers.insert(name.clone(), worker);
        let (least, most) = self.machines[pool].start_ms;
        let after = self.rng.within(least, most);
        self.at(self.now_ms + after, Due::Join(name.clone()));
        name
    }

    /// Stops a machine once its worker has ended what it runs.
    fn stop(&mut self, name: &str) {
        let worker = self.workers.get_mut(name).expect("it is there");
        worker.leaving = true;
        if worker.joined {
            self.tell(WorkerEvent::Retire {
                worker: name.into(),
            });
            self.leave_if_idle(name);
        }
    }

    fn leave_if_idle(&mut self, name: &str) {
        let leaves = |worker: &&Worker| worker.leaving && worker.running.is_empty();
        if self.workers.get(name).is_some_and(|it| leaves(&it)) {
            self.workers.remove(name);
            self.tell(WorkerEvent::Leave {
                worker: name.into(),
            });
        }
    }

    fn tell(&mut self, event: impl Into<Event>) {
        let actions = self.core.handle(self.now(), event.into());
        self.carry_out(actions);
    }

    fn carry_out(&mut self, actions: Vec<Action>) {
        let mut answers: Vec<Event> = Vec::new();
        for action in actions {
            match action {
                Action::Append { token, ops } => {
                    for _ in &ops {
                        self.last = self.last.next();
                    }
                    let seq = self.last;
                    answers.push(Event::Accepted { token, seq });
                }
                Action::Worker {
                    after,
                    worker,
                    command,
                } => match (command, after) {
                    (WorkerCommand::Assign(leases), Some(token)) => {
                        self.held_back.push((token, worker.to_string(), leases));
                    }
                    (WorkerCommand::Assign(leases), None) => self.assigned(&worker, leases),
                    (WorkerCommand::Cancel(lease), _) => {
                        if let Some(worker) = self.workers.get_mut(&*worker) {
                            worker.running.retain(|other| *other != lease);
                        }
                        self.leave_if_idle(&worker);
                    }
                    (WorkerCommand::Unknown, _) => {}
                },
                Action::Sink {
                    command: SinkCommand::Emit(task),
                    ..
                } => {
                    for block in task.id.block..=task.last {
                        self.emitted.insert(block, self.now_ms);
                    }
                    answers.push(
                        SinkEvent::Emitted {
                            task: task.id.clone(),
                            places: Vec::new(),
                        }
                        .into(),
                    );
                }
                Action::Defect { why } => panic!("{why}"),
                _ => {}
            }
        }
        for answer in answers {
            if let Event::Accepted { token, .. } = &answer {
                let token = *token;
                let ready = self.held_back.extract_if(.., |(after, ..)| *after == token);
                for (_, worker, leases) in ready.collect::<Vec<_>>() {
                    self.assigned(&worker, leases);
                }
            }
            self.tell(answer);
        }
    }

    fn assigned(&mut self, name: &str, leases: Vec<Lease>) {
        for lease in leases {
            let block = lease.task.id.block;
            let (mean, percent) = self.runs[&*lease.task.id.stage];
            let deviation = mean * percent / 100;
            let took = self.rng.within(mean - deviation, mean + deviation);
            let lease = lease.reference();
            let Some(worker) = self.workers.get_mut(name) else {
                continue;
            };
            worker.running.push(lease.clone());
            if !self.hangs.remove(&block) {
                self.at(self.now_ms + took, Due::Done(name.to_owned(), lease));
            }
        }
    }
}

fn payload_bytes(payload: &Payload) -> Vec<u8> {
    match payload {
        Payload::Inline { bytes, .. } => bytes.to_vec(),
        _ => Vec::new(),
    }
}

/// Grouping values for the readers of all queues.
fn groupings(
    plan: &Plan,
    queues: &[QueueIx],
    json: &[u8],
) -> Vec<(
    proofmill_orchestrator::plan::StageIx,
    Result<Arc<str>, String>,
)> {
    let all = queues.iter();
    let values: Vec<_> = all
        .flat_map(|queue| grouping(plan, *queue, Some(json)))
        .collect();
    let mut seen = BTreeSet::new();
    values
        .into_iter()
        .filter(|(reader, _)| seen.insert(*reader))
        .collect()
}
