//! The invariants, checked by an observer of the durable log and of each step of the core.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proofmill_bus::Op;
use proofmill_orchestrator::conversation::{Lease, Request, WorkerCommand, WorkerEvent};
use proofmill_orchestrator::core::{Action, Core, Event, TaskPhase, TaskView};
use proofmill_orchestrator::id::TaskId;
use proofmill_orchestrator::plan::{Needs, Speculation, StageIx, StageKind};
use proofmill_orchestrator::record::{EndKind, PauseKind, PauseRecord, Record, RecordKey};

use crate::given::{Given, is_of_group};
use crate::late::Passed;
use crate::plans::{Barrier, Scene, T_ACK_MS};
use crate::several::has_worker_of_user;

/// The core's knowledge of a worker.
pub(super) struct Known {
    group: Arc<str>,
    pub(super) labels: BTreeSet<String>,
    memory: u64,
    pub(super) slots: usize,
    retired: bool,
    paused: bool,
    /// Whether an operator drains it.
    drained: bool,
    heard_ms: u64,
    /// Whether the core may have forgotten it after a long silence; false again once it joins.
    forgotten: bool,
}

#[derive(Default)]
pub(crate) struct Monitor {
    pub(crate) seen: BTreeSet<TaskId>,
    pub(super) live: BTreeSet<TaskId>,
    ended: BTreeSet<TaskId>,
    pub(crate) dead: BTreeSet<TaskId>,
    pub(crate) dropped: bool,
    fired: BTreeSet<(Arc<str>, String)>,
    tries: BTreeMap<TaskId, usize>,
    newest: BTreeMap<Arc<str>, u64>,
    /// Lowest block that a source has taken back.
    pub(super) taken_back: Option<u64>,
    pub(super) cursor: u64,
    pub(super) workers: BTreeMap<Arc<str>, Known>,
    assignments: BTreeMap<(TaskId, u32, Arc<str>), u64>,
    pub(super) parts: BTreeMap<TaskId, BTreeSet<Arc<str>>>,
    /// This count and the following ones show that the histories cover each case.
    pub(crate) hedged: u64,
    pub(crate) several: u64,
    pub(crate) cancelled: u64,
    pub(crate) missed: u64,
    pub(crate) given_up: u64,
    pub(super) slots: BTreeSet<u64>,
    next_assignment: u64,
    /// Every lease that was given, and its worker.
    pub(super) given: Given,
    /// Messages that must have reached their readers.
    pub(super) passed: Passed,
    /// Number of messages that came too late for their group.
    pub(crate) late: u64,
}

macro_rules! ensure {
    ($holds:expr, $($why:tt)+) => {
        if !$holds {
            return Err(format!($($why)+));
        }
    };
}

pub(super) use ensure;

impl Monitor {
    pub(crate) fn coordinator_died(&mut self) {
        self.workers.clear();
        self.assignments.clear();
    }

    pub(crate) fn has_passed(&self, block: u64) -> bool {
        block < self.cursor
    }

    /// Checks a batch that has become durable.
    pub(crate) fn durable(&mut self, scene: &Scene, ops: &[Op]) -> Result<(), String> {
        let (mut puts, mut deletes) = (Vec::new(), BTreeSet::new());
        for op in ops {
            let key = RecordKey::parse(op.key().as_str()).map_err(|error| error.to_string())?;
            match op {
                Op::Put { value, .. } => {
                    let record = Record::decode(op.key().as_str(), value);
                    puts.push((key, record.map_err(|error| error.to_string())?));
                }
                Op::Delete { .. } => {
                    deletes.insert(key);
                }
            }
        }
        let brings = |wanted: &RecordKey| puts.iter().any(|(key, _)| key == wanted);
        for key in &deletes {
            match key {
                RecordKey::Task(id) if self.live.remove(id) => {
                    let ends = brings(&RecordKey::Done(id.clone()))
                        || brings(&RecordKey::Dead(id.clone()))
                        || brings(&RecordKey::Cursor)
                        || self.is_taken_back(id);
                    ensure!(ends, "(a) task {id} vanished without a mark");
                }
                RecordKey::Dead(id) if self.dead.remove(id) => {
                    let moves = brings(&RecordKey::Task(id.clone()))
                        || brings(&RecordKey::Done(id.clone()))
                        || id.block < self.cursor
                        || self.is_taken_back(id);
                    ensure!(moves, "(a) dead letter {id} vanished");
                }
                RecordKey::Attempts(id) => {
                    self.tries.remove(id);
                }
                RecordKey::Done(id)
                    if self.is_taken_back(id) || self.passed.is_revived(id, &puts) =>
                {
                    self.ended.remove(id);
                }
                RecordKey::Group(stage, key) if self.taken_back.is_some() => {
                    self.fired.remove(&(stage.clone(), key.to_string()));
                }
                _ => {}
            }
        }
        self.given.check(scene, &puts, &deletes)?;
        self.check_results(scene, &puts, &deletes)?;
        self.check_slots(scene, &puts, &deletes)?;
        self.check_passed(scene, &puts)?;
        for (key, record) in &puts {
            match (key, record) {
                (RecordKey::Task(id), _) => {
                    ensure!(self.live.insert(id.clone()), "(a) task {id} was put twice");
                    let again = self.ended.contains(id) && !self.is_forgotten(scene, id);
                    ensure!(!again, "(b) task {id} has ended and was accepted again");
                    self.seen.insert(id.clone());
                    let newest = self.newest.entry(id.stage.clone()).or_default();
                    *newest = (*newest).max(id.block);
                }
                (RecordKey::Done(id), Record::Done(done)) => {
                    let first = self.ended.insert(id.clone()) || self.is_forgotten(scene, id);
                    ensure!(first, "(b) a second result of task {id} was accepted");
                    self.dropped |= done.end == EndKind::Dropped;
                }
                (RecordKey::Dead(id), Record::Dead(dead)) => {
                    self.cancelled += u64::from(dead.reason.starts_with("cancelled"));
                    self.given_up += u64::from(dead.reason.starts_with("its block"));
                    self.dead.insert(id.clone());
                    self.seen.insert(id.clone());
                    check_dead(scene, dead)?;
                }
                (RecordKey::Attempts(id), Record::Attempts(tries)) => {
                    let before = self.tries.insert(id.clone(), tries.len()).unwrap_or(0);
                    ensure!(
                        tries.len() == before + 1,
                        "(h) task {id} had {before} attempts and now {}",
                        tries.len()
                    );
                }
                (RecordKey::Group(stage, key), Record::Group(group)) => {
                    let new = self.fired.insert((stage.clone(), key.to_string()));
                    ensure!(new, "(d) barrier {stage} fired again for {key}");
                    let members: BTreeSet<&TaskId> = puts
                        .iter()
                        .filter_map(|(other, record)| match (other, record) {
                            (RecordKey::Done(id), Record::Done(done)) => match &done.end {
                                EndKind::Grouped { key: of } if *of == key.to_string() => Some(id),
                                _ => None,
                            },
                            _ => None,
                        })
                        .collect();
                    ensure!(
                        members.len() == group.members as usize,
                        "(d) barrier {stage}/{key} consumed {} of {} members",
                        members.len(),
                        group.members
                    );
                    check_barrier(scene, stage, key.as_str(), group.last, &members)
                        .map_err(|why| format!("(d) barrier {stage}/{key}: {why}: {members:?}"))?;
                }
                (RecordKey::Cursor, Record::Cursor(next)) => {
                    ensure!(
                        *next > self.cursor,
                        "(e) the cursor went from {} to {next}",
                        self.cursor
                    );
                    self.cursor = *next;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Whether the mark of a task may have been removed: stages that do not lead to the sequencer keep them
    /// for a limited number of blocks.
    fn is_forgotten(&self, scene: &Scene, id: &TaskId) -> bool {
        let leads = scene.plan.leads_to_sequencer();
        let side = scene
            .plan
            .stage_named(&id.stage)
            .is_some_and(|stage| !leads[stage.0]);
        let newest = self.newest.get(&id.stage).copied().unwrap_or(0);
        side && id.block < newest.saturating_sub(scene.plan.retain_blocks)
    }

    /// Notes an event before the core handles it, so that the core's choice of workers can be checked.
    pub(crate) fn hears(&mut self, event: &Event, now_ms: u64) {
        let event = match event {
            Event::Request {
                request: Request::Rewind(rewind),
                ..
            } => return self.hears_rewind(rewind.from),
            Event::Worker(event) => event,
            _ => return,
        };
        match event {
            WorkerEvent::Join(join) => {
                let known = Known {
                    group: join.group.clone(),
                    labels: join.labels.clone(),
                    memory: join.memory,
                    slots: join.slots,
                    retired: false,
                    paused: false,
                    drained: false,
                    heard_ms: now_ms,
                    forgotten: false,
                };
                self.workers.insert(join.worker.clone(), known);
            }
            WorkerEvent::Retire { worker } => {
                if let Some(known) = self.workers.get_mut(worker) {
                    known.retired = true;
                }
            }
            WorkerEvent::Leave { worker } | WorkerEvent::Lost { worker } => {
                self.workers.remove(worker);
            }
            WorkerEvent::Complete(complete) => self.passed.hears(complete),
            WorkerEvent::Heartbeat {
                worker,
                retired,
                paused,
                ..
            } => {
                if let Some(known) = self.workers.get_mut(worker) {
                    known.retired = *retired;
                    known.paused = paused.is_some();
                    known.forgotten |= now_ms.saturating_sub(known.heard_ms) > 2 * T_ACK_MS;
                    known.heard_ms = now_ms;
                }
            }
            _ => {}
        }
    }

    /// Checks a step of the core.
    pub(crate) fn step(
        &mut self,
        scene: &Scene,
        core: &Core,
        actions: &[Action],
        now_ms: u64,
    ) -> Result<(), String> {
        let assigns: Vec<(&Arc<str>, &Vec<Lease>)> = actions
            .iter()
            .filter_map(|action| match action {
                Action::Worker {
                    worker,
                    command: WorkerCommand::Assign(leases),
                    ..
                } => Some((worker, leases)),
                _ => None,
            })
            .collect();
        let emits = actions
            .iter()
            .any(|action| matches!(action, Action::Sink { .. }));
        if assigns.is_empty() && !emits {
            return Ok(());
        }
        let status = core.status();
        self.check_pauses(scene, &status.pauses, &assigns, emits)?;
        let counters = status.stages.into_iter().map(|stage| stage.counters);
        self.hedged = self
            .hedged
            .max(counters.map(|counters| counters.hedged).sum());
        for (worker, leases) in &assigns {
            self.next_assignment += 1;
            for lease in *leases {
                self.given.note(worker, lease);
                let key = (lease.task.id.clone(), lease.attempt, (*worker).clone());
                self.assignments.insert(key, self.next_assignment);
            }
        }
        let views = core.tasks(|_| true);
        for (worker, leases) in &assigns {
            self.check_assignment(scene, &views, worker, leases, now_ms)?;
        }
        check_room(scene, &views, &assigns)
    }

    /// (r) Nothing is leased in a paused stage or to a drained worker, and a paused sequencer emits nothing.
    fn check_pauses(
        &mut self,
        scene: &Scene,
        pauses: &[PauseRecord],
        assigns: &[(&Arc<str>, &Vec<Lease>)],
        emits: bool,
    ) -> Result<(), String> {
        let is_paused = |kind, name: &str| {
            let mut pauses = pauses.iter();
            pauses.any(|pause| pause.kind == kind && &*pause.name == name)
        };
        for (name, known) in &mut self.workers {
            known.drained = is_paused(PauseKind::Worker, name);
        }
        for (worker, leases) in assigns {
            ensure!(
                !is_paused(PauseKind::Worker, worker),
                "(r) {worker} drains and was given work"
            );
            for lease in *leases {
                let stage = &lease.task.id.stage;
                ensure!(
                    !is_paused(PauseKind::Stage, stage),
                    "(r) {} was leased, and its stage is paused",
                    lease.task.id
                );
            }
        }
        let sequencer = scene.plan.sequencer();
        let sequencer = sequencer.map(|(stage, _)| &scene.plan.stage(stage).name);
        let rests = sequencer.is_some_and(|name| is_paused(PauseKind::Stage, name));
        ensure!(!(emits && rests), "(r) a paused sequencer emits");
        Ok(())
    }

    fn check_assignment(
        &self,
        scene: &Scene,
        views: &[TaskView],
        worker: &Arc<str>,
        leases: &[Lease],
        now_ms: u64,
    ) -> Result<(), String> {
        let Some(first) = leases.first() else {
            return Err("an empty assignment".to_owned());
        };
        let stage = scene.plan.stage(first.stage);
        let Some(dispatcher) = stage.dispatcher() else {
            return Err(format!("stage {} has no dispatcher", stage.name));
        };
        ensure!(
            leases.len() <= dispatcher.batch,
            "(g) {worker} was given {} tasks at once; a batch is {}",
            leases.len(),
            dispatcher.batch
        );
        let Some(known) = self.workers.get(worker) else {
            return Err(format!("(g) {worker} was given work without having joined"));
        };
        ensure!(
            !known.retired,
            "(g) {worker} has retired and was given work"
        );
        ensure!(!known.paused, "(g) {worker} is paused and was given work");
        ensure!(
            known.group == dispatcher.group && is_of_group(worker, &dispatcher.group),
            "(g) {worker} is of another group"
        );
        let has = self.slots_in_use(views, worker);
        ensure!(
            has <= known.slots,
            "(g) {worker} has {has} assignments, F_max is {}",
            known.slots
        );
        for (ix, lease) in leases.iter().enumerate() {
            let id = &lease.task.id;
            let needs = needs_of(scene, lease.stage, lease.task.needs.as_ref());
            ensure!(
                needs.met_by(&known.labels, known.memory),
                "(g) {worker} cannot run {id}: it needs {needs:?}"
            );
            let copies = dispatcher.speculation.copies as u32;
            ensure!(
                lease.attempt <= (dispatcher.r_max + 1) * copies,
                "(h) attempt {} at {id}, R_max is {}",
                lease.attempt,
                dispatcher.r_max
            );
            // A dropped task may be submitted again, and its new record need not be durable yet.
            let again = self.ended.contains(id)
                && !self.is_forgotten(scene, id)
                && !self.passed.is_dropped(id);
            ensure!(!again, "(b) {id} has ended and was leased again");
            for view in views {
                let record = &view.record;
                if record.id == *id {
                    self.check_copies(dispatcher, view)?;
                    ensure!(
                        !has_worker_of_user(dispatcher, view, worker),
                        "(o) {worker} was given {id}, which its user has already"
                    );
                }
                let overtaken = view.claimable
                    && record.id.stage == id.stage
                    && record.id.block < id.block
                    && self.may_take(dispatcher, view, worker);
                if overtaken {
                    let other = needs_of(scene, lease.stage, record.needs.as_ref());
                    let could = ix == 0 && other.met_by(&known.labels, known.memory);
                    ensure!(
                        other != needs && !could,
                        "(c) {id} was leased to {worker} while {} waits",
                        record.id
                    );
                }
            }
        }
        self.check_avoidance(scene, views, worker, first, now_ms)
    }

    fn check_avoidance(
        &self,
        scene: &Scene,
        views: &[TaskView],
        worker: &Arc<str>,
        lease: &Lease,
        now_ms: u64,
    ) -> Result<(), String> {
        let view = views.iter().find(|view| view.record.id == lease.task.id);
        let failed_by = view
            .and_then(|view| view.attempts.last())
            .map(|attempt| &attempt.worker);
        let Some(dispatcher) = scene.plan.stage(lease.stage).dispatcher() else {
            return Ok(());
        };
        let (Some(view), true) = (view, failed_by == Some(worker)) else {
            return Ok(());
        };
        let needs = needs_of(scene, lease.stage, lease.task.needs.as_ref());
        for (name, known) in &self.workers {
            let able = name != worker
                && !known.retired
                && !known.paused
                && !known.drained
                && !known.forgotten
                && known.group == dispatcher.group
                && needs.met_by(&known.labels, known.memory)
                && now_ms.saturating_sub(known.heard_ms) <= T_ACK_MS
                && views
                    .iter()
                    .filter(|view| view.workers.iter().any(|(has, _)| has == name))
                    .count()
                    < known.slots
                && self.may_take(dispatcher, view, name)
                // The worker may be kept for a lower block that a full queue holds back.
                && !views.iter().any(|other| {
                    other.claimable
                        && other.record.id.stage == view.record.id.stage
                        && other.record.id.block < view.record.id.block
                        && self.may_take(dispatcher, other, name)
                });
            ensure!(
                !able,
                "(h) {} went back to {worker}, which failed it, while {name} is free",
                lease.task.id
            );
        }
        Ok(())
    }

    /// Number of assignments that a worker has; a lease adopted from a heartbeat counts as one.
    fn slots_in_use(&self, views: &[TaskView], worker: &Arc<str>) -> usize {
        let (mut assigned, mut adopted) = (BTreeSet::new(), 0);
        for view in views {
            let held = view.workers.iter().find(|(has, _)| has == worker);
            let Some((_, attempt)) = held else { continue };
            let key = (view.record.id.clone(), *attempt, worker.clone());
            match self.assignments.get(&key) {
                Some(number) => {
                    assigned.insert(*number);
                }
                None => adopted += 1,
            }
        }
        assigned.len() + adopted
    }
}

fn needs_of(scene: &Scene, stage: StageIx, needs: Option<&Needs>) -> Needs {
    let of_stage = || {
        scene
            .plan
            .stage(stage)
            .dispatcher()
            .map(|plan| plan.needs.clone())
    };
    needs.cloned().or_else(of_stage).unwrap_or_default()
}

/// Q_max: the last task leased towards a queue found room there, or lies below all others.
fn check_room(
    scene: &Scene,
    views: &[TaskView],
    assigns: &[(&Arc<str>, &Vec<Lease>)],
) -> Result<(), String> {
    let leases: Vec<&Lease> = assigns
        .iter()
        .flat_map(|(_, leases)| leases.iter())
        .collect();
    for (ix, queue) in scene.plan.queues.iter().enumerate() {
        let writes = |name: &str| {
            let stage = scene.plan.stages.iter().find(|stage| &*stage.name == name);
            stage.is_some_and(|stage| stage.outputs.iter().any(|output| output.0 == ix))
        };
        let last = leases.iter().rev().find(|lease| {
            // A further copy brings no more messages.
            let mut of = views.iter().filter(|view| view.record.id == lease.task.id);
            writes(&lease.task.id.stage) && of.any(|view| view.workers.len() <= 1)
        });
        let Some(last) = last else { continue };
        for reader in &queue.readers {
            let stage = scene.plan.stage(*reader);
            if matches!(stage.kind, StageKind::Collector(_)) {
                continue;
            }
            let before: Vec<u64> = views
                .iter()
                .filter(|view| {
                    let id = &view.record.id;
                    let waits = id.stage == stage.name
                        && view.workers.is_empty()
                        && matches!(view.phase, TaskPhase::Waiting | TaskPhase::Delayed);
                    let comes = view.phase == TaskPhase::Leased && writes(&id.stage);
                    (waits || comes) && *id != last.task.id
                })
                .map(|view| view.record.id.block)
                .collect();
            let passes = before.len() < queue.q_max
                || before.iter().all(|block| last.task.id.block < *block);
            ensure!(
                passes,
                "(g) {} was leased towards {}, where {before:?} are; Q_max is {}",
                last.task.id,
                queue.name,
                queue.q_max
            );
        }
    }
    Ok(())
}

fn check_dead(
    scene: &Scene,
    dead: &proofmill_orchestrator::record::DeadRecord,
) -> Result<(), String> {
    let id = &dead.task.id;
    ensure!(!dead.reason.is_empty(), "(h) {id} died without a reason");
    let stage = scene
        .plan
        .stage_named(&id.stage)
        .map(|stage| scene.plan.stage(stage));
    let Some(dispatcher) = stage.and_then(|stage| stage.dispatcher()) else {
        return Ok(());
    };
    let permanent = dead
        .attempts
        .iter()
        .filter(|attempt| attempt.failure.permanent)
        .count();
    let last = dead
        .attempts
        .last()
        .is_some_and(|attempt| attempt.failure.permanent);
    if dead.reason.starts_with("cancelled") || dead.reason.starts_with("its block") {
        return Ok(());
    }
    let Speculation {
        copies,
        accept,
        ref hedge,
        ..
    } = dispatcher.speculation;
    let alone = copies == 1 && hedge.is_none();
    ensure!(
        !alone || (permanent <= 1 && (permanent == 0 || last)),
        "(h) {id} outlived a permanent failure"
    );
    let most = (dispatcher.r_max as usize + 1) * copies;
    // An attempt from before a restart may be given up while another one is under way.
    let is_lost = |reason: &str| reason.contains("ended while it did");
    let mut attempts = dead.attempts.iter();
    let lost = attempts.any(|attempt| is_lost(&attempt.failure.reason));
    ensure!(
        copies.saturating_sub(permanent) < accept
            || dead.attempts.len() == most
            || ((!alone || lost) && dead.attempts.len() > most),
        "(h) {id} died after {} attempts, R_max is {}",
        dead.attempts.len(),
        dispatcher.r_max
    );
    let numbered = dead
        .attempts
        .iter()
        .enumerate()
        .all(|(ix, a)| a.number as usize == ix + 1);
    ensure!(
        numbered,
        "(h) the attempts at {id} are not numbered in order"
    );
    Ok(())
}

fn check_barrier(
    scene: &Scene,
    stage: &str,
    key: &str,
    last: u64,
    members: &BTreeSet<&TaskId>,
) -> Result<(), String> {
    let Some(barrier) = scene.barriers.get(stage) else {
        return Err("unexpected".to_owned());
    };
    let blocks: Vec<u64> = members.iter().map(|id| id.block).collect();
    let number = || {
        key.parse::<u64>()
            .map_err(|_| "its key is no number".to_owned())
    };
    match barrier {
        Barrier::OfBlock(count) => {
            let key = number()?;
            ensure!(
                members.len() == *count && blocks.iter().all(|b| *b == key),
                "not its group"
            );
        }
        Barrier::OneByQueue(count) => {
            let key = number()?;
            let queues: BTreeSet<_> = members
                .iter()
                .filter_map(|id| id.part.as_str().split(':').next())
                .collect();
            ensure!(
                queues.len() == *count && members.len() == *count,
                "not one by each queue"
            );
            ensure!(blocks.iter().all(|block| *block == key), "not of one block");
        }
        Barrier::Run { n, partial } => {
            let first = number()? * n;
            ensure!(
                blocks.iter().all(|b| (first..first + n).contains(b)),
                "not its run"
            );
            ensure!(*partial || members.len() as u64 == *n, "not all of its run");
        }
        Barrier::Cover => {
            let first = key
                .split(':')
                .next()
                .and_then(|first| first.parse::<u64>().ok());
            let Some(first) = first else {
                return Err("its key has no block".to_owned());
            };
            let expected = last - first + 2;
            ensure!(
                members.len() as u64 == expected,
                "{expected} members were expected"
            );
            ensure!(
                blocks.iter().all(|b| (first..=last).contains(b)),
                "not its range"
            );
        }
        Barrier::Pair => {
            let first = number()? * 2;
            ensure!(blocks == [first, first + 1], "not its pair");
        }
    }
    Ok(())
}
