//! Calls that the liar makes from her seats, as bytes.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use proofmill_orchestrator::collector::PartitionRef;
use proofmill_orchestrator::conversation::{
    Decision, HostEvent, HostJoin, Lease, LeaseRef, Output, Query, Request, Rewind, RoleEvent,
    SinkEvent, Submit, Target, Uniqueness, Verdict, Verdicts, WorkerEvent, WorkerFailure,
    WorkerJoin, WorkerResult,
};
use proofmill_orchestrator::core::LeaseTag;
use proofmill_orchestrator::grouping::{Group, OfferDecision, OverdueDecision};
use proofmill_orchestrator::id::{Part, TaskId};
use proofmill_orchestrator::message::Message;
use proofmill_orchestrator::payload::{INLINE_LIMIT, Payload};
use proofmill_orchestrator::plan::{Needs, QueueIx, StageIx};
use proofmill_orchestrator::principal::worker_name;
use proofmill_orchestrator::record::{Failure, PauseKind};
use proofmill_orchestrator::remote::{Call, CallBody};
use proofmill_trace::{SpanId, TraceContext, TraceId};

use crate::actors::outputs;
use crate::byzantine::{Liar, USER};
use crate::forgery::{NESTED, PART, encoded, forged};
use crate::given::is_entrance;
use crate::plans::{PROVER, PROVERS, Scene};
use crate::rng::Rng;
use crate::world::World;

/// Number of earlier calls that she remembers.
const CALLS: usize = 32;

struct Names {
    workers: Vec<Arc<str>>,
    hosts: Vec<Arc<str>>,
}

impl Liar {
    pub(crate) fn own_workers(
        group: &Arc<str>,
        rng: &mut Rng,
    ) -> Vec<(Arc<str>, BTreeSet<String>)> {
        let labels = ["0", "1", "2", "invented", "invented-too"];
        let worker = |number: u64| {
            let name = worker_name(&format!("w{number}"), group, USER, "process");
            let label = labels[rng.below(labels.len())];
            let labels = [format!("{PROVER}{label}"), "gpu".to_owned()];
            (name.into(), labels.into())
        };
        (0..PROVERS).map(worker).collect()
    }

    fn subject(&self, role: &str) -> String {
        format!("proofmill.leader.simulated.{}", self.seat(role))
    }

    fn seat(&self, role: &str) -> String {
        match role {
            "dispatcher" => format!("dispatcher.{}.{USER}", self.group),
            other => other.to_owned(),
        }
    }

    /// A call that the liar makes in her own name, about herself.
    pub(crate) fn own_call(&self, role: &str, events: Vec<RoleEvent>) -> (String, Vec<u8>) {
        let call = Call {
            plan: self.digest,
            term: 1,
            client: format!("{}.{USER}", self.seat(role)).into(),
            session: 1,
            open_from: 0,
            body: CallBody::Events {
                number: 1,
                events,
                presence: Vec::new(),
            },
        };
        (self.subject(role), encoded(&call))
    }

    /// Subject and bytes of her next call.
    pub(crate) fn next_call(&mut self, world: &World) -> (String, Vec<u8>) {
        if !self.said.is_empty() && self.rng.per_mille(120) {
            let at = self.rng.below(self.said.len());
            return self.said[at].clone();
        }
        let role = match self.rng.within(0, 99) {
            0..62 => "dispatcher",
            62..77 => "collector",
            77..91 => "source",
            _ => "sequencer",
        };
        let names = Names {
            workers: world.workers.iter().map(|w| w.name.clone()).collect(),
            hosts: world.hosts.iter().map(|host| host.name.clone()).collect(),
        };
        let scene = &world.scene;
        let call = Call {
            plan: self.digest,
            term: if self.rng.flip() { 1 } else { u64::MAX },
            client: self.client(role),
            session: 1,
            open_from: 0,
            body: self.body(role, scene, &names),
        };
        let deep = if self.rng.per_mille(100) { 10_000 } else { 3 };
        let mut bytes = forged(&call, deep);
        if self.rng.per_mille(60) {
            self.damage(&mut bytes);
        }
        if self.said.len() == CALLS {
            self.said.pop_front();
        }
        if bytes.len() < 4096 {
            self.said.push_back((self.subject(role), bytes.clone()));
        }
        (self.subject(role), bytes)
    }

    fn damage(&mut self, bytes: &mut Vec<u8>) {
        if self.rng.flip() {
            bytes.truncate(self.rng.below(bytes.len()));
        }
        for _ in 0..self.rng.within(0, 3).min(bytes.len() as u64) {
            let at = self.rng.below(bytes.len());
            bytes[at] = self.rng.next() as u8;
        }
    }

    fn client(&mut self, role: &str) -> Arc<str> {
        let seat = self.seat(role);
        match self.rng.within(0, 39) {
            0 => "dispatcher.one.user-0.host".into(),
            1 => format!("{seat}.a.b").into(),
            2 => format!("{seat}.>").into(),
            3 => format!("operator.{USER}").into(),
            4 => "".into(),
            5 => format!("{seat}.{}", "x".repeat(300)).into(),
            _ => format!("{seat}.{USER}").into(),
        }
    }

    fn body(&mut self, role: &str, scene: &Scene, names: &Names) -> CallBody {
        let number = self.rng.within(0, 1 << 40);
        match (role, self.rng.within(0, 99)) {
            (_, 0) => CallBody::Query(Query::Status),
            (_, 1) => CallBody::Query(Query::SourceNext("headers".into())),
            ("source", 2..75) | (_, 2..6) => CallBody::Request {
                number,
                request: self.request(scene),
            },
            ("dispatcher", 2..16) => {
                let votes = self.votes_twice(scene);
                let events = votes.into_iter().map(RoleEvent::from).collect();
                CallBody::Events {
                    number,
                    events,
                    presence: Vec::new(),
                }
            }
            _ => {
                let mut events = Vec::new();
                for _ in 0..self.rng.within(1, 3) {
                    events.push(match (role, self.rng.within(0, 9)) {
                        ("dispatcher", 0..9) | (_, 0) => self.of_workers(scene, names).into(),
                        ("sequencer", 1..8) => RoleEvent::Sink(SinkEvent::Emitted {
                            task: self.task(),
                            places: vec!["file".to_owned()],
                        }),
                        ("collector", _) | ("dispatcher", _) => self.of_hosts(scene, names).into(),
                        _ => RoleEvent::Sink(SinkEvent::Attach { term: u64::MAX }),
                    });
                }
                let presence = match role {
                    "dispatcher" => (0..self.rng.below(3))
                        .map(|_| self.of_workers(scene, names))
                        .collect(),
                    _ => Vec::new(),
                };
                CallBody::Events {
                    number,
                    events,
                    presence,
                }
            }
        }
    }

    // === Workers ===

    fn worker(&mut self, names: &Names) -> Arc<str> {
        let own = self.rng.below(self.workers.len());
        match self.rng.within(0, 9) {
            0..6 => self.workers[own].0.clone(),
            6..8 => one_of(&mut self.rng, &names.workers),
            8 => {
                let honest = one_of(&mut self.rng, &names.workers);
                let (_, address) = honest.rsplit_once('@').unwrap_or_default();
                format!("w0@{address}").into()
            }
            _ => match self.rng.within(0, 3) {
                0 => format!("w0@{}.{USER}@one.user-0", self.group).into(),
                1 => format!("{}@{}.{USER}.p", "x".repeat(300), self.group).into(),
                2 => "".into(),
                _ => "w0".into(),
            },
        }
    }

    /// One of the leases that her workers were given, usually a late one, and its worker.
    fn own_lease(&mut self) -> Option<(Arc<str>, Lease)> {
        let count = self.given.len();
        if count == 0 {
            return None;
        }
        let back = self.rng.within(0, 3) as usize;
        let at = match self.rng.per_mille(750) {
            true => (count - 1).saturating_sub(back),
            false => self.rng.below(count),
        };
        Some(self.given[at].clone())
    }

    /// A lease that she was not given, with true data as far as she has any.
    fn forged_lease(&mut self) -> (Option<Arc<str>>, LeaseRef) {
        let own = self.own_lease();
        let tag = match (&own, self.rng.flip()) {
            (Some((_, lease)), true) => lease.tag,
            _ => LeaseTag::from_bytes([self.rng.next() as u8; 16]),
        };
        if let (Some((worker, lease)), true) = (&own, self.rng.per_mille(300)) {
            // Her own lease, with another attempt or a false tag, and perhaps for another worker of hers.
            let mut name = lease.reference();
            if self.rng.flip() {
                name.attempt += 1;
            } else {
                name.tag = LeaseTag::from_bytes([7; 16]);
            }
            return (Some(worker.clone()), name);
        }
        let known = one_of_queue(&mut self.rng, &self.others);
        let (worker, task, attempt) = match known {
            Some((worker, task, attempt)) => (Some(worker), task, attempt),
            None => (None, self.task(), 1),
        };
        (worker, LeaseRef { task, attempt, tag })
    }

    fn task(&mut self) -> TaskId {
        match one_of_queue(&mut self.rng, &self.others) {
            Some((_, task, _)) if self.rng.flip() => task,
            Some((_, task, _)) => TaskId {
                stage: "emit".into(),
                ..task
            },
            None => TaskId {
                stage: "prove".into(),
                block: self.rng.within(0, 20),
                part: Part::whole(),
            },
        }
    }

    fn of_workers(&mut self, scene: &Scene, names: &Names) -> WorkerEvent {
        let mut worker = self.worker(names);
        match self.rng.within(0, 99) {
            0..18 => WorkerEvent::Join(self.join(worker, scene)),
            18..34 => {
                let mut running = Vec::new();
                for _ in 0..self.rng.within(0, 3) {
                    let own = self.own_lease().filter(|_| self.rng.flip());
                    running.push(match own {
                        Some((of, lease)) => {
                            worker = of;
                            lease.reference()
                        }
                        None => self.forged_lease().1,
                    });
                }
                let retired = self.rng.per_mille(150);
                WorkerEvent::Heartbeat {
                    worker,
                    running,
                    retired,
                    paused: retired.then(|| "a lie".to_owned()),
                }
            }
            34..50 => self.own_result(scene, worker),
            50..66 => self.forged_result(scene, worker),
            66..80 => {
                let (holder, lease) = self.some_lease(&worker);
                let failure = Failure {
                    permanent: self.rng.per_mille(300),
                    ..Failure::retryable("a lie")
                };
                WorkerEvent::Fail(WorkerFailure {
                    worker: holder,
                    lease,
                    failure,
                })
            }
            80..92 => {
                let (holder, lease) = self.some_lease(&worker);
                WorkerEvent::Release {
                    worker: holder,
                    lease,
                }
            }
            92..96 => WorkerEvent::Retire { worker },
            _ => WorkerEvent::Leave { worker },
        }
    }

    fn join(&mut self, worker: Arc<str>, scene: &Scene) -> WorkerJoin {
        let own = self.workers.iter().find(|(own, _)| *own == worker);
        let mut labels = own.map(|(_, labels)| labels.clone()).unwrap_or_default();
        if self.rng.per_mille(20) {
            labels.extend((0..300).map(|number| format!("zzz-{number}")));
        }
        let group = match self.rng.within(0, 19) {
            0 => "nonsense".into(),
            1..4 => {
                let stages = scene.plan.stages.iter();
                let groups: Vec<_> = stages.filter_map(|stage| stage.dispatcher()).collect();
                groups[self.rng.below(groups.len())].group.clone()
            }
            _ => self.group.clone(),
        };
        let slots = match self.rng.within(0, 99) {
            0..2 => 1 << 16,
            2..5 => usize::MAX,
            5..10 => 0,
            _ => self.rng.within(1, 3) as usize,
        };
        WorkerJoin {
            worker,
            group,
            labels,
            memory: u64::MAX,
            slots,
        }
    }

    /// A lease of hers or of another worker.
    fn some_lease(&mut self, worker: &Arc<str>) -> (Arc<str>, LeaseRef) {
        if let Some((own, lease)) = self.own_lease().filter(|_| self.rng.flip()) {
            return (own, lease.reference());
        }
        let (holder, lease) = self.forged_lease();
        let holder = holder.filter(|_| self.rng.flip());
        (holder.unwrap_or_else(|| worker.clone()), lease)
    }

    /// Correct results of two of her workers for one task, or events that may pass the task from one to the
    /// other.
    fn votes_twice(&mut self, scene: &Scene) -> Vec<WorkerEvent> {
        let Some((worker, lease)) = self.own_lease() else {
            return Vec::new();
        };
        let mut given = self.given.iter().rev();
        let again = given.find(|(by, of)| *by != worker && of.task.id == lease.task.id);
        let Some((other, later)) = again else {
            let name = lease.reference();
            let release = WorkerEvent::Release {
                worker: worker.clone(),
                lease: name,
            };
            return vec![release, WorkerEvent::Retire { worker }];
        };
        let right = |worker: &Arc<str>, lease: &Lease| {
            WorkerEvent::Complete(WorkerResult {
                worker: worker.clone(),
                lease: lease.reference(),
                outputs: outputs(scene, lease.stage, &lease.task),
                ran: Duration::MAX,
            })
        };
        vec![right(other, later), right(&worker, &lease)]
    }

    /// A result that an honest worker would report, or one with invalid values.
    fn own_result(&mut self, scene: &Scene, worker: Arc<str>) -> WorkerEvent {
        let Some((worker, lease)) = self.own_lease() else {
            return WorkerEvent::Leave { worker };
        };
        let mut outputs = outputs(scene, lease.stage, &lease.task);
        if self.rng.per_mille(300) {
            self.spoil(&mut outputs);
        }
        WorkerEvent::Complete(WorkerResult {
            worker,
            lease: lease.reference(),
            outputs,
            ran: Duration::MAX,
        })
    }

    fn spoil(&mut self, outputs: &mut [Output]) {
        let Some(output) = outputs.first_mut() else {
            return;
        };
        match self.rng.within(0, 3) {
            0 => output.payload = self.group_of(),
            1 => output.payload = Payload::binary(NESTED),
            2 => output.grouping = self.grouping(),
            _ => output.payload = Payload::binary(vec![0; INLINE_LIMIT + 1]),
        }
    }

    fn forged_result(&mut self, scene: &Scene, worker: Arc<str>) -> WorkerEvent {
        let (holder, lease) = self.forged_lease();
        let holder = holder.filter(|_| self.rng.per_mille(300));
        let worker = holder.unwrap_or(worker);
        let fan_out = scene.fan_out.get(&*lease.task.stage).copied();
        let outputs = (0..fan_out.unwrap_or(1)).map(|element| Output {
            element: fan_out.map(|_| element),
            payload: Payload::json("\"forged\""),
            grouping: Vec::new(),
        });
        WorkerEvent::Complete(WorkerResult {
            worker,
            lease,
            outputs: outputs.collect(),
            ran: Duration::ZERO,
        })
    }

    fn group_of(&mut self) -> Payload {
        let member = ("prover:0".into(), Payload::json("1"));
        Payload::Group {
            by_queue: self.rng.flip(),
            members: vec![member; self.rng.within(0, 3) as usize],
        }
    }

    fn grouping(&mut self) -> Vec<(StageIx, Result<Arc<str>, String>)> {
        let stage = StageIx(match self.rng.within(0, 2) {
            0 => 99,
            1 => usize::MAX,
            // A stage that exists but does not read the output of those before it.
            _ => 0,
        });
        vec![(stage, Ok("1".into()))]
    }

    // === Other seats ===

    fn of_hosts(&mut self, scene: &Scene, names: &Names) -> HostEvent {
        let honest = match names.hosts.is_empty() || self.rng.flip() {
            true => None,
            false => Some(one_of(&mut self.rng, &names.hosts)),
        };
        let is_own = honest.is_none();
        let host = honest.unwrap_or_else(|| USER.into());
        match self.rng.within(0, 9) {
            0..3 => {
                if is_own && self.rng.flip() {
                    self.session += 1;
                    self.verdicts = 0;
                }
                let all = (0..scene.plan.stages.len()).map(StageIx);
                let mut stages: BTreeSet<StageIx> = all
                    .filter(|ix| scene.plan.stage(*ix).collector().is_some())
                    .collect();
                if self.rng.per_mille(150) {
                    stages.insert(StageIx(99));
                }
                HostEvent::Join(HostJoin {
                    host,
                    session: self.session | 1 << 40,
                    stages,
                })
            }
            3..5 => HostEvent::Leave { host },
            5..6 => HostEvent::Heartbeat { host },
            _ => {
                self.verdicts += 1;
                HostEvent::Verdicts(Verdicts {
                    host,
                    session: self.session | 1 << 40,
                    number: self.verdicts,
                    verdicts: vec![self.verdict()],
                })
            }
        }
    }

    fn verdict(&mut self) -> Verdict {
        let known = one_of_queue(&mut self.rng, &self.partitions);
        let (mut partition, epoch) = known.unwrap_or((
            PartitionRef {
                stage: StageIx(1),
                number: 0,
            },
            1,
        ));
        match self.rng.within(0, 9) {
            0 => partition.stage = StageIx(99),
            1 => partition.number = usize::MAX,
            _ => {}
        }
        let task = self.task();
        let group = Group {
            key: "0".to_owned(),
            first: task.block,
            last: task.block,
            members: vec![task.clone()],
        };
        let decision = match self.rng.within(0, 4) {
            0 => Decision::Offered(task, OfferDecision::Skip("a lie".to_owned())),
            1 => Decision::Offered(task, OfferDecision::Finished(vec![group])),
            2 => Decision::Offered(task, OfferDecision::Postpone(Duration::MAX)),
            3 => Decision::Overdue(OverdueDecision::Emit(group)),
            _ => Decision::Overdue(OverdueDecision::Reject {
                members: vec![task],
                why: "a lie".to_owned(),
            }),
        };
        Verdict {
            partition,
            epoch,
            decision,
        }
    }

    fn request(&mut self, scene: &Scene) -> Request {
        match self.rng.within(0, 9) {
            0 => Request::Cancel(Target::All),
            1 => Request::RetryDead(self.task()),
            2 => match self.rng.within(0, 3) {
                0 => Request::RunNow(self.task()),
                1 => Request::Pause {
                    kind: PauseKind::Stage,
                    name: self.task().stage,
                    by: "mallory".into(),
                },
                2 => Request::Resume {
                    kind: PauseKind::Stage,
                    name: self.task().stage,
                },
                _ => Request::DropDead(self.task()),
            },
            3 => Request::Rewind(Rewind {
                source: one_of(&mut self.rng, &["headers".into(), "a.b".into(), "".into()]),
                queues: vec![self.queue(scene, false)],
                from: self.rng.within(0, 9),
            }),
            _ => Request::Submit(self.submission(scene)),
        }
    }

    /// A queue that stages write, or one that does not exist; with `entrance`, an entrance of the workflow.
    fn queue(&mut self, scene: &Scene, entrance: bool) -> QueueIx {
        let queues = &scene.plan.queues;
        let all = (0..queues.len()).map(QueueIx);
        let fit = all.filter(|ix| is_entrance(scene, &queues[ix.0].name) == entrance);
        let fit: Vec<QueueIx> = fit.collect();
        match self.rng.within(0, 9) {
            0 if !entrance => QueueIx(queues.len()),
            1 if !entrance => QueueIx(usize::MAX),
            _ => fit
                .get(self.rng.below(fit.len().max(1)))
                .copied()
                .unwrap_or(QueueIx(99)),
        }
    }

    /// A message that no source may bring, or that has one invalid value.
    fn submission(&mut self, scene: &Scene) -> Submit {
        let block = self.rng.within(0, 20);
        let wrong = self.rng.within(0, 9);
        let mut request = Submit {
            producer: "headers".into(),
            queue: self.queue(scene, wrong < 6),
            message: Message {
                first: block,
                last: block,
                part: Part::whole(),
                payload: Payload::json("\"forged\""),
                needs: None,
                grouping: Vec::new(),
            },
            uniqueness: Uniqueness::Multiple,
            source_next: self.rng.flip().then_some(u64::MAX),
            caller: Some(Arc::new(trace_of_another(block))),
        };
        let message = &mut request.message;
        match wrong {
            0 => message.payload = self.group_of(),
            1 => message.payload = Payload::binary(NESTED),
            2 => message.grouping = vec![(StageIx(99), Ok("1".into()))],
            3 => message.part = Part::new(PART).expect("one, so far"),
            4 => {
                request.producer = "a.b c".into();
                request.source_next = Some(0);
            }
            5 => {
                let labels = (0..300).map(|number| number.to_string()).collect();
                message.needs = Some(Needs { labels, memory: 0 });
            }
            _ => {}
        }
        request
    }
}

/// The context of a trace that is another block's.
fn trace_of_another(block: u64) -> TraceContext {
    let trace = TraceId::of_block("another", block);
    let span = SpanId::derive(trace, "lie", []);
    TraceContext::new(trace, span, true, None)
}

fn one_of<T: Clone>(rng: &mut Rng, these: &[T]) -> T {
    these[rng.below(these.len())].clone()
}

fn one_of_queue<T: Clone>(rng: &mut Rng, these: &std::collections::VecDeque<T>) -> Option<T> {
    (!these.is_empty()).then(|| these[rng.below(these.len())].clone())
}
