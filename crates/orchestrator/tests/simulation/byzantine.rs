//! A liar, in every other history: Mallory, with the credentials of a dispatcher, a collector, a source or a
//! sequencer.
//!
//! She has all knowledge that such a process may have: the workflow, the tasks and attempts, the names of
//! workers and hosts, the leases that her own workers were given, with their tags, and other workers' leases
//! without tags. (Those tags travel to other users' subjects.) She sends any message at any time, by the same
//! way as a peer in production: a [`Call`] on a subject of her seat, as bytes, which is decoded, admitted or
//! refused, and becomes events.
//!
//! Three properties are checked, lettered (o). Admitted calls have valid values. Her events change no other
//! process's registration, lease or task, which is checked directly before and after each event. And the
//! records of results, failures and quorums name workers that were given the task, whatever happened
//! ([`Given`](crate::given::Given)). All other invariants must hold as they do without her.
//!
//! Excluded are messages that her seat permits and that break only work that depends on it: as a source,
//! valid messages for an entrance of the workflow, and rewinds of them; as a sequencer, the confirmation of
//! messages that are being emitted; as a collector, wrong verdicts about a partition that she keeps, and the
//! name of another collector's process; as a dispatcher, wrong results, with valid values, for leases that
//! she was given.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use proofmill_bus::Op;
use proofmill_orchestrator::collector::PartitionRef;
use proofmill_orchestrator::conversation::{
    HostCommand, HostEvent, Lease, LeaseRef, Request, RoleEvent, SinkCommand, SinkEvent, Verdict,
    WorkerCommand, WorkerEvent, WorkerFailure, WorkerResult,
};
use proofmill_orchestrator::core::{Action, Core, Event, RequestId, Time, WorkerView};
use proofmill_orchestrator::id::TaskId;
use proofmill_orchestrator::record::{EndKind, Record, RecordKey};
use proofmill_orchestrator::remote::{Call, CallBody, admit, parse};

use crate::actors::outputs;
use crate::checks::ensure;
use crate::plans::Scene;
use crate::rng::Rng;
use crate::valid::{check_nesting, check_valid};
use crate::world::{Checked, Ev, World};

pub(crate) const USER: &str = "mallory";

/// Numbers of the liar's calls, by outcome.
#[derive(Clone, Copy, Default)]
pub(crate) struct Count {
    pub(crate) heard: u64,
    pub(crate) admitted: u64,
    pub(crate) refused: u64,
    pub(crate) told: u64,
}

pub(crate) struct Liar {
    pub(crate) rng: Rng,
    /// Worker group of her dispatcher's seat.
    pub(crate) group: Arc<str>,
    /// Her workers, each with its labels.
    pub(crate) workers: Vec<(Arc<str>, BTreeSet<String>)>,
    pub(crate) digest: [u8; 16],
    /// All leases that her workers have been given.
    pub(crate) given: Vec<(Arc<str>, Lease)>,
    /// Leases of other workers: the worker, the task, the attempt.
    pub(crate) others: VecDeque<(Arc<str>, TaskId, u32)>,
    /// Partitions that other hosts keep, each with its present epoch.
    pub(crate) partitions: VecDeque<(PartitionRef, u64)>,
    /// Partitions that she was given, with their epochs.
    kept: BTreeSet<(PartitionRef, u64)>,
    pub(crate) session: u64,
    pub(crate) verdicts: u64,
    /// Earlier calls, with their subjects.
    pub(crate) said: VecDeque<(String, Vec<u8>)>,
    emitted: BTreeSet<TaskId>,
    pub(crate) count: Count,
}

/// Maximum number of other workers' leases, and of other hosts' partitions, that the liar remembers.
const MEMORY: usize = 64;

/// State that the liar must not change, copied before an event.
struct Before {
    workers: Vec<WorkerView>,
    hosts: BTreeMap<Arc<str>, u64>,
    attempts: BTreeMap<TaskId, usize>,
}

/// Changes to tasks that one event of the liar may make.
enum May {
    Nothing,
    /// End her lease of this task.
    End(TaskId),
    /// End all her leases.
    EndAll,
}

// === impl Liar ===

impl Liar {
    pub(crate) fn new(seed: u64, scene: &Scene) -> Self {
        let mut rng = Rng::new(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ 0x6d61_6c6c_6f72_7921);
        let stages = scene.plan.stages.iter();
        let groups: Vec<_> = stages.filter_map(|stage| stage.dispatcher()).collect();
        let group = groups[rng.below(groups.len())].group.clone();
        let workers = Self::own_workers(&group, &mut rng);
        Self {
            rng,
            group,
            workers,
            digest: scene.plan.digest(),
            given: Vec::new(),
            others: VecDeque::new(),
            partitions: VecDeque::new(),
            kept: BTreeSet::new(),
            session: 0,
            verdicts: 0,
            said: VecDeque::new(),
            emitted: BTreeSet::new(),
            count: Count::default(),
        }
    }

    /// Whether the worker belongs to her user, according to its name.
    pub(crate) fn is_hers(&self, worker: &str) -> bool {
        let address = worker.rsplit_once('@').map(|(_, address)| address);
        let mut tokens = address.unwrap_or_default().split('.');
        tokens.next() == Some(&*self.group) && tokens.next() == Some(USER)
    }

    /// Updates the liar's knowledge from a coordinator's action: actions for her in full, of others only the
    /// names.
    pub(crate) fn learns(&mut self, action: &Action) {
        match action {
            Action::Worker {
                worker,
                command: WorkerCommand::Assign(leases),
                ..
            } => {
                let own = self.is_hers(worker);
                for lease in leases {
                    if own {
                        self.given.push((worker.clone(), lease.clone()));
                    } else {
                        let known = (worker.clone(), lease.task.id.clone(), lease.attempt);
                        remember(&mut self.others, known);
                    }
                }
            }
            Action::Host {
                host,
                command:
                    HostCommand::Request {
                        partition, epoch, ..
                    },
            } => {
                if **host == *USER {
                    self.kept.insert((*partition, *epoch));
                } else {
                    remember(&mut self.partitions, (*partition, *epoch));
                }
            }
            Action::Sink {
                command: SinkCommand::Emit(task),
                ..
            } => {
                self.emitted.insert(task.id.clone());
            }
            _ => {}
        }
    }

    fn lease_of(&self, worker: &Arc<str>, lease: &LeaseRef) -> Option<&Lease> {
        let mut given = self.given.iter();
        let of = given.find(|(own, given)| own == worker && given.reference() == *lease);
        of.map(|(_, lease)| lease)
    }

    /// Whether the event is permitted to her seat, and therefore excluded.
    fn is_in_her_power(&self, scene: &Scene, event: &Event) -> bool {
        match event {
            Event::Request {
                request: Request::Submit(_) | Request::Rewind(_),
                ..
            } => true,
            // A damaged name may still be one of hers; the observer assumes that the labels of a worker never
            // change.
            Event::Worker(WorkerEvent::Join(join)) => {
                let own = (join.worker.clone(), join.labels.clone());
                self.is_hers(&join.worker) && !self.workers.contains(&own)
            }
            Event::Sink(SinkEvent::Emitted { task, .. }) => self.emitted.contains(task),
            Event::Worker(WorkerEvent::Complete(WorkerResult {
                worker,
                lease,
                outputs: said,
                ..
            })) => self
                .lease_of(worker, lease)
                .is_some_and(|lease| *said != outputs(scene, lease.stage, &lease.task)),
            Event::Host(HostEvent::Verdicts(said)) => {
                let of_kept =
                    |verdict: &Verdict| self.kept.contains(&(verdict.partition, verdict.epoch));
                said.verdicts.iter().any(of_kept)
            }
            _ => false,
        }
    }

    fn may(&self, event: &Event) -> May {
        let Event::Worker(event) = event else {
            return May::Nothing;
        };
        match event {
            WorkerEvent::Complete(WorkerResult { worker, lease, .. })
            | WorkerEvent::Fail(WorkerFailure { worker, lease, .. })
            | WorkerEvent::Release { worker, lease }
                if self.lease_of(worker, lease).is_some() =>
            {
                May::End(lease.task.clone())
            }
            WorkerEvent::Leave { worker } if self.is_hers(worker) => May::EndAll,
            _ => May::Nothing,
        }
    }
}

fn remember<T>(memory: &mut VecDeque<T>, what: T) {
    if memory.len() == MEMORY {
        memory.pop_front();
    }
    memory.push_back(what);
}

impl May {
    fn allows(&self, liar: &Liar, id: &TaskId) -> bool {
        match self {
            Self::Nothing => false,
            Self::End(task) => task == id,
            Self::EndAll => liar.given.iter().any(|(_, lease)| lease.task.id == *id),
        }
    }
}

impl World {
    /// Makes her send one call.
    pub(crate) fn lie(&mut self) -> Checked {
        let Some(mut liar) = self.liar.take() else {
            return Ok(());
        };
        let pause = if self.calm { 2_000 } else { 250 };
        let delay = liar.rng.within(5, pause);
        self.after(delay, Ev::Lie);
        let call = self.core.is_some().then(|| liar.next_call(self));
        self.liar = Some(liar);
        match call {
            Some((subject, bytes)) => self.hear_call(&subject, &bytes),
            None => Ok(()),
        }
    }

    /// Makes her leave when the faults end; otherwise her leases would be kept from others.
    pub(crate) fn liar_calms_down(&mut self) -> Checked {
        let Some(liar) = &self.liar else {
            return Ok(());
        };
        let own = liar.workers.iter();
        let leave = own.map(|(worker, _)| WorkerEvent::Leave {
            worker: worker.clone(),
        });
        let leave = leave.map(RoleEvent::from).collect();
        let (subject, bytes) = liar.own_call("dispatcher", leave);
        self.hear_call(&subject, &bytes)?;
        let Some(liar) = &self.liar else {
            return Ok(());
        };
        let leave = HostEvent::Leave { host: USER.into() };
        let (subject, bytes) = liar.own_call("collector", vec![leave.into()]);
        self.hear_call(&subject, &bytes)
    }

    /// Handles a call on a subject, as the server does.
    fn hear_call(&mut self, subject: &str, bytes: &[u8]) -> Checked {
        let plan = self.scene.plan.clone();
        let Some(liar) = &mut self.liar else {
            return Ok(());
        };
        let Ok(call) = parse::<Call>(bytes) else {
            liar.count.refused += 1;
            return Ok(());
        };
        liar.count.heard += 1;
        check_nesting(&call)?;
        if call.plan != liar.digest || admit(&call, subject, &plan).is_err() {
            liar.count.refused += 1;
            return Ok(());
        }
        liar.count.admitted += 1;
        let seat = subject.splitn(4, '.').last().unwrap_or_default();
        ensure!(
            call.client.starts_with(&format!("{seat}.")),
            "(o) client {} was heard on {subject}",
            call.client
        );
        let events: Vec<Event> = match call.body {
            CallBody::Events {
                events, presence, ..
            } => {
                let presence = presence.into_iter().map(Event::from);
                presence
                    .chain(events.into_iter().map(Event::from))
                    .collect()
            }
            CallBody::Request { request, number } => {
                let id = RequestId(u64::MAX - number);
                vec![Event::Request { id, request }]
            }
            CallBody::Query(_) => Vec::new(),
        };
        for event in events {
            // The server handles this event itself.
            if matches!(event, Event::Sink(SinkEvent::Attach { .. })) {
                continue;
            }
            check_valid(&self.scene, &event)
                .map_err(|why| format!("(o) admitted on {subject}: {why}: {event:?}"))?;
            self.hear_liar(event)?;
        }
        Ok(())
    }

    fn hear_liar(&mut self, event: Event) -> Checked {
        let Some(liar) = &self.liar else {
            return Ok(());
        };
        let begins = matches!(
            event,
            Event::Worker(WorkerEvent::Join(_)) | Event::Host(HostEvent::Join(_))
        );
        if liar.is_in_her_power(&self.scene, &event) || (self.calm && begins) {
            return Ok(());
        }
        // Due timers are not her doing.
        self.tell(Event::Tick)?;
        let (Some(liar), Some(core)) = (&mut self.liar, &self.core) else {
            return Ok(());
        };
        liar.count.told += 1;
        let (may, before) = (liar.may(&event), Before::of(core, liar));
        let what = format!("{event:?}");
        let Some(actions) = self.pass_event(event) else {
            return Ok(());
        };
        let (Some(liar), Some(core)) = (&self.liar, &self.core) else {
            return Ok(());
        };
        let harmless = before
            .check(core, liar, &may)
            .and_then(|()| before.check_records(&self.scene, liar, &may, &actions));
        harmless.map_err(|why| format!("(o) {why}, by {what}"))?;
        let mut todo = VecDeque::new();
        self.perform(actions, &mut todo)?;
        self.work_off(todo)
    }
}

// === impl Before ===

impl Before {
    fn of(core: &Core, liar: &Liar) -> Self {
        let (workers, hosts) = others(core, liar);
        let tasks = core.tasks(|_| true);
        let attempts = tasks
            .iter()
            .map(|view| (view.record.id.clone(), view.attempts.len()));
        Self {
            workers,
            hosts,
            attempts: attempts.collect(),
        }
    }

    /// Checks that other processes are registered as before, and have the same leases.
    fn check(&self, core: &Core, liar: &Liar, may: &May) -> Checked {
        let (workers, hosts) = others(core, liar);
        ensure!(
            hosts == self.hosts,
            "hosts were {:?} and are {hosts:?}",
            self.hosts
        );
        let names = |views: &[WorkerView]| -> Vec<Arc<str>> {
            views.iter().map(|view| view.worker.clone()).collect()
        };
        ensure!(
            names(&self.workers) == names(&workers),
            "workers were {:?} and are {:?}",
            names(&self.workers),
            names(&workers)
        );
        for (before, after) in self.workers.iter().zip(&workers) {
            let own = |view: &WorkerView| WorkerView {
                leases: Vec::new(),
                ..view.clone()
            };
            ensure!(
                own(before) == own(after),
                "a worker was {before:?} and is {after:?}"
            );
            let lost = |lease: &&(TaskId, u32, Time)| {
                !after.leases.contains(lease) && !may.allows(liar, &lease.0)
            };
            if let Some(lost) = before.leases.iter().find(lost) {
                return Err(format!("{} had {lost:?}, and has not", before.worker));
            }
        }
        Ok(())
    }

    /// Checks that nothing about other workers' leases is recorded.
    fn check_records(&self, scene: &Scene, liar: &Liar, may: &May, actions: &[Action]) -> Checked {
        let appends = actions.iter().filter_map(|action| match action {
            Action::Append { ops, .. } => Some(ops),
            _ => None,
        });
        for op in appends.flatten() {
            let key = RecordKey::parse(op.key().as_str()).map_err(|error| error.to_string())?;
            let record = match op {
                Op::Put { value, .. } => Record::decode(op.key().as_str(), value).ok(),
                Op::Delete { .. } => None,
            };
            let is_forbidden = match (&key, &record) {
                (RecordKey::Attempts(id), Some(_)) | (RecordKey::PartialResult(id, _), Some(_)) => {
                    !may.allows(liar, id)
                }
                (RecordKey::Done(id), Some(Record::Done(done))) => match done.end {
                    EndKind::Completed { .. } => !may.allows(liar, id),
                    EndKind::Dropped => true,
                    // Barriers may fire in the core when her host leaves.
                    EndKind::Grouped { .. } | EndKind::Skipped { .. } | EndKind::Late { .. } => {
                        false
                    }
                },
                (RecordKey::Dead(id), Some(Record::Dead(dead))) => {
                    // A task that no worker may try any more dies when a worker is free.
                    let before = self.attempts.get(id).copied().unwrap_or(0);
                    let failed = before != dead.attempts.len();
                    failed && !may.allows(liar, id) && is_worked_on(scene, id)
                }
                (RecordKey::Cursor, _) => true,
                _ => false,
            };
            ensure!(!is_forbidden, "{key:?} was recorded: {record:?}");
        }
        Ok(())
    }
}

/// Workers and hosts that are not hers.
fn others(core: &Core, liar: &Liar) -> (Vec<WorkerView>, BTreeMap<Arc<str>, u64>) {
    let workers = core.workers().into_iter();
    let hosts = core.host_sessions().into_iter();
    (
        workers.filter(|view| !liar.is_hers(&view.worker)).collect(),
        hosts.filter(|(host, _)| **host != *USER).collect(),
    )
}

fn is_worked_on(scene: &Scene, id: &TaskId) -> bool {
    let stage = scene.plan.stage_named(&id.stage);
    stage.is_some_and(|stage| scene.plan.stage(stage).dispatcher().is_some())
}
