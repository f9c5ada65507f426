//! Property tests of the core against a naive model: one queue, its leases, retries, dead letters
//! and deduplication, as lists that are searched from end to end.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use proofmill_bus::Seq;
use proofmill_orchestrator::conversation::{
    LeaseRef, Reply, Request, Submit, Uniqueness, WorkerEvent, WorkerFailure, WorkerJoin,
    WorkerResult,
};
use proofmill_orchestrator::core::{
    Action, Core, CoreOptions, Event, LeaseKey, LeaseTag, Now, RequestId, TaskPhase, Time,
};
use proofmill_orchestrator::id::{Part, TaskId};
use proofmill_orchestrator::message::Message;
use proofmill_orchestrator::payload::Payload;
use proofmill_orchestrator::plan::{
    Backoff, DispatcherPlan, Needs, Plan, QueueIx, QueuePlan, StageIx, StageKind, StagePlan,
};
use proofmill_orchestrator::record::Failure;
use proptest::prelude::*;

const R_MAX: u32 = 1;
const BACKOFF_MS: u64 = 100;
const T_ACK_MS: u64 = 1_000;
const WORKERS: [&str; 3] = ["a", "b", "c"];

#[derive(Clone, Debug)]
enum Step {
    Submit { block: u64, content: u8 },
    Join { worker: usize, slots: usize },
    Retire { worker: usize },
    Leave { worker: usize },
    Lose { worker: usize },
    Beat { worker: usize },
    Complete { nth: usize },
    Fail { nth: usize, permanent: bool },
    Release { nth: usize },
    RetryDead { nth: usize },
    DropDead { nth: usize },
    Pass { ms: u64 },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..12u64, 0..2u8).prop_map(|(block, content)| Step::Submit { block, content }),
        2 => (0..3usize, 1..3usize).prop_map(|(worker, slots)| Step::Join { worker, slots }),
        1 => (0..3usize).prop_map(|worker| Step::Retire { worker }),
        1 => (0..3usize).prop_map(|worker| Step::Leave { worker }),
        1 => (0..3usize).prop_map(|worker| Step::Lose { worker }),
        3 => (0..3usize).prop_map(|worker| Step::Beat { worker }),
        3 => (0..4usize).prop_map(|nth| Step::Complete { nth }),
        3 => (0..4usize, prop::bool::weighted(0.2))
            .prop_map(|(nth, permanent)| Step::Fail { nth, permanent }),
        1 => (0..4usize).prop_map(|nth| Step::Release { nth }),
        1 => (0..3usize).prop_map(|nth| Step::RetryDead { nth }),
        1 => (0..3usize).prop_map(|nth| Step::DropDead { nth }),
        3 => (1..700u64).prop_map(|ms| Step::Pass { ms }),
    ]
}

#[derive(Clone, Debug, PartialEq)]
enum State {
    Waiting,
    Delayed {
        until: u64,
    },
    Leased {
        worker: usize,
        expires: u64,
        number: u64,
    },
}

#[derive(Clone, Debug)]
struct Task {
    block: u64,
    content: u8,
    order: u64,
    failed_by: Vec<usize>,
    state: State,
}

#[derive(Clone, Debug)]
struct Worker {
    ix: usize,
    slots: usize,
    retired: bool,
    heard: u64,
    used: u64,
}

#[derive(Default)]
struct Model {
    now: u64,
    counter: u64,
    tasks: Vec<Task>,
    /// Content of each finished task, by block.
    done: Vec<(u64, u8)>,
    dead: Vec<(u64, u8, usize)>,
    workers: Vec<Worker>,
}

impl Model {
    fn submit(&mut self, block: u64, content: u8) -> Reply {
        let task = TaskId {
            stage: "prove".into(),
            block,
            part: Part::whole(),
        };
        if let Some(live) = self.tasks.iter().find(|task| task.block == block) {
            return if live.content == content {
                Reply::Duplicate { same: Some(true) }
            } else {
                Reply::Differs { task }
            };
        }
        if let Some((_, of)) = self.done.iter().find(|(done, _)| *done == block) {
            let same = Some(*of == content);
            return Reply::Duplicate { same };
        }
        if self
            .dead
            .iter()
            .any(|(dead, of, _)| *dead == block && *of == content)
        {
            return Reply::IsDead {
                task,
                why: String::new(),
            };
        }
        self.dead.retain(|(dead, ..)| *dead != block);
        self.enter(block, content);
        Reply::Accepted
    }

    fn enter(&mut self, block: u64, content: u8) {
        self.counter += 1;
        let (order, failed_by) = (self.counter, Vec::new());
        self.tasks.push(Task {
            block,
            content,
            order,
            failed_by,
            state: State::Waiting,
        });
    }

    fn leased(&self) -> Vec<(u64, usize, u64)> {
        let mut leased: Vec<(u64, usize, u64)> = self
            .tasks
            .iter()
            .filter_map(|task| match task.state {
                State::Leased { worker, number, .. } => Some((task.block, worker, number)),
                _ => None,
            })
            .collect();
        leased.sort_unstable();
        leased
    }

    /// Makes a task claimable at once, as after its worker has left.
    fn without_wait(&mut self, block: u64) {
        for task in &mut self.tasks {
            if task.block == block && matches!(task.state, State::Delayed { .. }) {
                task.state = State::Waiting;
            }
        }
    }

    fn attempt_failed(&mut self, block: u64, permanent: bool) {
        let Some(at) = self.tasks.iter().position(|task| task.block == block) else {
            return;
        };
        let task = &mut self.tasks[at];
        let State::Leased { worker, .. } = task.state else {
            return;
        };
        task.failed_by.push(worker);
        if permanent || task.failed_by.len() > R_MAX as usize {
            self.dead.push((block, task.content, task.failed_by.len()));
            self.dead.sort_unstable();
            self.tasks.remove(at);
        } else {
            task.state = State::Delayed {
                until: self.now + BACKOFF_MS,
            };
        }
    }

    fn pass(&mut self, to: u64) {
        // Steps through time, in the order of due timers.
        while self.now < to {
            self.now += 1;
            let due: Vec<u64> = self
                .tasks
                .iter()
                .filter(|task| {
                    matches!(task.state, State::Leased { expires, .. } if expires <= self.now)
                })
                .map(|task| task.block)
                .collect();
            for block in due {
                self.attempt_failed(block, false);
            }
            for task in &mut self.tasks {
                if matches!(task.state, State::Delayed { until } if until <= self.now) {
                    task.state = State::Waiting;
                }
            }
            let leased = self.leased();
            self.workers.retain(|worker| {
                worker.heard + 10 * T_ACK_MS > self.now
                    || leased.iter().any(|(_, holder, _)| *holder == worker.ix)
            });
            self.assign();
        }
    }

    /// Assigns tasks as the core must: the lowest block first, retries before first attempts, then the older
    /// task; to a worker that did not fail it last, then the least busy, then the one idle for longest.
    fn assign(&mut self) {
        loop {
            let head = self
                .tasks
                .iter()
                .enumerate()
                .filter(|(_, task)| task.state == State::Waiting)
                .min_by_key(|(_, task)| (task.block, task.failed_by.is_empty(), task.order));
            let Some((at, task)) = head else { return };
            let leased = self.leased();
            let has = |worker: &Worker| leased.iter().filter(|(_, ix, _)| *ix == worker.ix).count();
            let chosen = self
                .workers
                .iter()
                .filter(|worker| {
                    !worker.retired
                        && has(worker) < worker.slots
                        && self.now - worker.heard <= T_ACK_MS
                })
                .min_by_key(|worker| {
                    let failed = task.failed_by.last() == Some(&worker.ix);
                    (failed, has(worker), worker.used, worker.ix)
                })
                .map(|worker| worker.ix);
            let Some(worker) = chosen else { return };
            self.counter += 1;
            let number = task.failed_by.len() as u64 + 1;
            let expires = self.now + T_ACK_MS;
            self.tasks[at].state = State::Leased {
                worker,
                expires,
                number,
            };
            for known in &mut self.workers {
                if known.ix == worker {
                    known.used = self.counter;
                }
            }
        }
    }

    fn hear(&mut self, ix: usize) {
        let now = self.now;
        self.workers
            .iter_mut()
            .filter(|worker| worker.ix == ix)
            .for_each(|w| w.heard = now);
    }
}

struct Real {
    core: Core,
    now: u64,
    log: BTreeMap<String, ()>,
    seq: u64,
    replies: BTreeMap<RequestId, Reply>,
}

impl Real {
    /// The lease that the core would give a worker for the task in its present state.
    fn lease(&self, worker: usize, block: u64, number: u64) -> LeaseRef {
        let task = task(block);
        let attempt = u32::try_from(number).expect("few attempts");
        let live = self.core.tasks(|record| record.id == task);
        let key = LeaseKey::new(&CoreOptions::default().fresh_lease_key);
        let tag = live.first().map(|live| {
            let content = live.record.content();
            key.tag(WORKERS[worker], &live.record, &content, attempt)
        });
        LeaseRef {
            task,
            attempt,
            tag: tag.unwrap_or(LeaseTag::from_bytes([0; 16])),
        }
    }

    fn new() -> Self {
        let dispatcher = DispatcherPlan {
            group: "g".into(),
            needs: Needs::default(),
            t_ack: Duration::from_millis(T_ACK_MS),
            r_max: R_MAX,
            backoff: Backoff {
                initial: Duration::from_millis(BACKOFF_MS),
                max: Duration::from_millis(BACKOFF_MS),
                factor: 1.0,
                jitter: 0.0,
            },
            batch: 1,
            speculation: Default::default(),
        };
        let plan = Plan {
            workflow: "model".into(),
            stages: vec![StagePlan {
                name: "prove".into(),
                inputs: vec![QueueIx(0)],
                outputs: Vec::new(),
                kind: StageKind::Dispatcher(dispatcher),
            }],
            queues: vec![QueuePlan {
                name: "in".into(),
                readers: vec![StageIx(0)],
                many_writers: false,
                q_max: 1_000,
            }],
            sources: Vec::new(),
            retain_blocks: 1_000,
            cuts_blocks: false,
            deadline: None,
        };
        let mut core = Core::new(Arc::new(plan), CoreOptions::default());
        core.start(Now::default());
        Self {
            core,
            now: 0,
            log: BTreeMap::new(),
            seq: 0,
            replies: BTreeMap::new(),
        }
    }

    fn tell(&mut self, event: impl Into<Event>) {
        let now = Now {
            mono: Time(self.now * 1000),
            wall_ms: 0,
        };
        let mut todo = std::collections::VecDeque::from([event.into()]);
        while let Some(event) = todo.pop_front() {
            for action in self.core.handle(now, event) {
                match action {
                    Action::Append { token, ops } => {
                        self.seq += ops.len() as u64;
                        for op in ops {
                            let key = op.key().as_str().to_owned();
                            match op {
                                proofmill_bus::Op::Put { expect, .. } => {
                                    let before = self.log.insert(key.clone(), ());
                                    let absent = expect == proofmill_bus::Expect::Absent;
                                    assert!(!(absent && before.is_some()), "{key} exists");
                                }
                                proofmill_bus::Op::Delete { .. } => {
                                    self.log.remove(&key);
                                }
                            }
                        }
                        todo.push_back(Event::Accepted {
                            token,
                            seq: Seq(self.seq),
                        });
                    }
                    Action::Reply { request, reply, .. } => {
                        self.replies.insert(request, reply);
                    }
                    _ => {}
                }
            }
        }
        #[cfg(debug_assertions)]
        assert_eq!(self.core.check(), Ok(()));
    }

    fn leased(&self) -> Vec<(u64, usize, u64)> {
        let views = self.core.tasks(|_| true);
        let mut leased: Vec<(u64, usize, u64)> = views
            .iter()
            .filter_map(|view| {
                let worker = view.worker.as_ref()?;
                let ix = WORKERS.iter().position(|name| **name == **worker)?;
                Some((view.record.id.block, ix, view.attempts.len() as u64 + 1))
            })
            .collect();
        leased.sort_unstable();
        leased
    }
}

fn task(block: u64) -> TaskId {
    TaskId {
        stage: "prove".into(),
        block,
        part: Part::whole(),
    }
}

fn play(steps: &[Step]) -> Result<(), TestCaseError> {
    let (mut model, mut real) = (Model::default(), Real::new());
    for (n, step) in steps.iter().enumerate() {
        let request = RequestId(n as u64);
        let leased = model.leased();
        let at = |nth: usize| (!leased.is_empty()).then(|| leased[nth % leased.len()]);
        let dead = model.dead.clone();
        let dead_at = |nth: usize| (!dead.is_empty()).then(|| dead[nth % dead.len()]);
        match *step {
            Step::Submit { block, content } => {
                let message = Message {
                    first: block,
                    last: block,
                    part: Part::whole(),
                    payload: Payload::binary(vec![content]),
                    needs: None,
                    grouping: Vec::new(),
                };
                let (producer, queue) = ("test".into(), QueueIx(0));
                real.tell(Event::Request {
                    id: request,
                    request: Request::Submit(Submit {
                        producer,
                        queue,
                        message,
                        uniqueness: Uniqueness::Multiple,
                        source_next: None,
                        caller: None,
                    }),
                });
                let expected = model.submit(block, content);
                let mut reply = real.replies.remove(&request);
                if let Some(Reply::IsDead { why, .. }) = &mut reply {
                    prop_assert!(!why.is_empty());
                    why.clear();
                }
                prop_assert_eq!(reply, Some(expected), "step {}", n);
            }
            Step::Join { worker, slots } => {
                real.tell(WorkerEvent::Join(WorkerJoin {
                    worker: WORKERS[worker].into(),
                    group: "g".into(),
                    labels: Default::default(),
                    memory: 0,
                    slots,
                }));
                let used = model
                    .workers
                    .iter()
                    .find(|w| w.ix == worker)
                    .map_or(0, |w| w.used);
                model.workers.retain(|known| known.ix != worker);
                let heard = model.now;
                model.workers.push(Worker {
                    ix: worker,
                    slots,
                    retired: false,
                    heard,
                    used,
                });
            }
            Step::Retire { worker } => {
                real.tell(WorkerEvent::Retire {
                    worker: WORKERS[worker].into(),
                });
                let known = model.workers.iter_mut().filter(|known| known.ix == worker);
                known.for_each(|known| known.retired = true);
            }
            Step::Leave { worker } => {
                real.tell(WorkerEvent::Leave {
                    worker: WORKERS[worker].into(),
                });
                for held in &mut model.tasks {
                    if matches!(held.state, State::Leased { worker: holder, .. } if holder == worker)
                    {
                        held.state = State::Waiting;
                    }
                }
                model.workers.retain(|known| known.ix != worker);
            }
            Step::Lose { worker } => {
                real.tell(WorkerEvent::Lost {
                    worker: WORKERS[worker].into(),
                });
                for (block, holder, _) in leased {
                    if holder == worker {
                        model.attempt_failed(block, false);
                        model.without_wait(block);
                    }
                }
                model.workers.retain(|known| known.ix != worker);
            }
            Step::Beat { worker } => {
                let mine = leased.iter().filter(|(_, holder, _)| *holder == worker);
                let running = mine
                    .map(|(block, _, number)| real.lease(worker, *block, *number))
                    .collect();
                let mut known = model.workers.iter();
                let retired = known.any(|known| known.ix == worker && known.retired);
                real.tell(WorkerEvent::Heartbeat {
                    worker: WORKERS[worker].into(),
                    running,
                    retired,
                    paused: None,
                });
                model.hear(worker);
                let now = model.now;
                for held in &mut model.tasks {
                    if let State::Leased {
                        worker: holder,
                        expires,
                        ..
                    } = &mut held.state
                        && *holder == worker
                    {
                        *expires = now + T_ACK_MS;
                    }
                }
            }
            Step::Complete { nth } => {
                let Some((block, worker, number)) = at(nth) else {
                    continue;
                };
                real.tell(WorkerEvent::Complete(WorkerResult {
                    worker: WORKERS[worker].into(),
                    lease: real.lease(worker, block, number),
                    outputs: Vec::new(),
                    ran: Duration::ZERO,
                }));
                model.hear(worker);
                let task = model.tasks.iter().find(|task| task.block == block);
                model.done.extend(task.map(|task| (block, task.content)));
                model.tasks.retain(|task| task.block != block);
            }
            Step::Fail { nth, permanent } => {
                let Some((block, worker, number)) = at(nth) else {
                    continue;
                };
                real.tell(WorkerEvent::Fail(WorkerFailure {
                    worker: WORKERS[worker].into(),
                    lease: real.lease(worker, block, number),
                    failure: Failure {
                        permanent,
                        ..Failure::retryable("no")
                    },
                }));
                model.hear(worker);
                model.attempt_failed(block, permanent);
            }
            Step::Release { nth } => {
                let Some((block, worker, number)) = at(nth) else {
                    continue;
                };
                let lease = real.lease(worker, block, number);
                real.tell(WorkerEvent::Release {
                    worker: WORKERS[worker].into(),
                    lease,
                });
                model.hear(worker);
                let held = model.tasks.iter_mut().filter(|held| held.block == block);
                held.for_each(|held| held.state = State::Waiting);
            }
            Step::RetryDead { nth } => {
                let Some((block, content, _)) = dead_at(nth) else {
                    continue;
                };
                real.tell(Event::Request {
                    id: request,
                    request: Request::RetryDead(task(block)),
                });
                model.dead.retain(|(other, ..)| *other != block);
                model.enter(block, content);
            }
            Step::DropDead { nth } => {
                let Some((block, content, _)) = dead_at(nth) else {
                    continue;
                };
                real.tell(Event::Request {
                    id: request,
                    request: Request::DropDead(task(block)),
                });
                model.dead.retain(|(other, ..)| *other != block);
                model.done.push((block, content));
            }
            Step::Pass { ms } => {
                let to = model.now + ms;
                while real.now < to {
                    real.now += 1;
                    real.tell(Event::Tick);
                }
                model.pass(to);
            }
        }
        model.assign();
        prop_assert_eq!(real.leased(), model.leased(), "leases after step {}", n);
        let status = real.core.status();
        prop_assert_eq!(status.live, model.tasks.len(), "live after step {}", n);
        let dead: Vec<(u64, usize)> = real
            .core
            .dead_letters()
            .map(|dead| (dead.task.id.block, dead.attempts.len()))
            .collect();
        let expected: Vec<(u64, usize)> = model.dead.iter().map(|(b, _, n)| (*b, *n)).collect();
        prop_assert_eq!(dead, expected, "dead letters after step {}", n);
        let views = real.core.tasks(|_| true);
        let delayed = views
            .iter()
            .filter(|view| view.phase == TaskPhase::Delayed)
            .count();
        let is_delayed = |task: &&Task| matches!(task.state, State::Delayed { .. });
        prop_assert_eq!(delayed, model.tasks.iter().filter(is_delayed).count());
        for block in 0..12 {
            let finished = real.core.has_finished(&task(block), block);
            prop_assert_eq!(
                finished,
                model.done.iter().any(|(done, _)| *done == block),
                "block {}",
                block
            );
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn the_core_does_what_the_model_does(steps in prop::collection::vec(step(), 1..120)) {
        play(&steps)?;
    }
}
