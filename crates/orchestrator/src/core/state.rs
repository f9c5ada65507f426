//! The core's state, and how records of the log change it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use bytes::Bytes;
use proofmill_bus::{Expect, Op, Seq};

use super::event::{Action, Event, Now, RequestId, Reply, Settled, Submit, Time, Timing, Token};
use super::ready::{BlockCount, Class, Priority, ReadyQueue, TaskNo};
use super::view::Counters;
use crate::collector::Strategy;
use crate::id::{Part, TaskId, WorkerId};
use crate::plan::{Plan, QueueIx, StageIx, StageKind};
use crate::record::{
    Attempt, DeadRecord, DoneRecord, Finish, Record, RecordError, RecordKey, TaskRecord,
};

/// Settings of a core that no workflow file holds.
#[derive(Clone, Debug, Default)]
pub struct CoreOptions {
    /// How long after [`Core::start`] to wait for the heartbeats of workers that still hold leases
    /// given by an earlier coordinator, before their tasks are leased again. Zero where no worker
    /// outlives the coordinator.
    pub adopt_grace: std::time::Duration,
}

/// The log does not fit the workflow, or is not ours.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ReplayError {
    /// A record cannot be read.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A live task is for a stage that the workflow does not have.
    #[error(
        "the state holds unfinished task {task} but workflow {workflow:?} has no stage {stage:?}; \
         restore the stage, finish the old workflow first, or start with another state directory"
    )]
    NoSuchStage {
        /// The workflow.
        workflow: String,
        /// The stage.
        stage: String,
        /// The task.
        task: TaskId,
    },
}

/// The state machine. See the [module](super).
pub struct Core {
    pub(super) plan: Arc<Plan>,
    pub(super) options: CoreOptions,
    pub(super) leads: Vec<bool>,
    stage_ix: HashMap<Arc<str>, StageIx>,
    pub(super) groups: Vec<Arc<str>>,
    pub(super) now: Now,
    pub(super) started: bool,
    pub(super) draining: bool,
    pub(super) adopting_until: Option<Time>,
    next_no: u64,
    next_token: u64,
    pub(super) applied: Seq,
    pub(super) tasks: HashMap<TaskNo, Task>,
    pub(super) by_id: HashMap<TaskId, TaskNo>,
    pub(super) finished: Vec<Finished>,
    pub(super) dead: BTreeMap<TaskId, (DeadRecord, Seq)>,
    pub(super) ready: Vec<ReadyQueue>,
    pub(super) waiting: Vec<BlockCount>,
    pub(super) leased: Vec<BlockCount>,
    pub(super) workers: BTreeMap<WorkerId, Worker>,
    pub(super) next_batch: u64,
    pub(super) timers: BTreeSet<(Time, Timer)>,
    pub(super) pending: BTreeMap<Token, Pending>,
    pub(super) collectors: Vec<Option<Collector>>,
    pub(super) cursor: u64,
    pub(super) emit_next: u64,
    pub(super) emission: BTreeMap<(u64, Part), TaskNo>,
    pub(super) emitting: usize,
    pub(super) sources: BTreeMap<Arc<str>, u64>,
    pub(super) parked: BTreeMap<QueueIx, BTreeMap<(u64, u64), Submit>>,
    pub(super) next_park: u64,
    pub(super) counters: Vec<Counters>,
    pub(super) actions: Vec<Action>,
}

pub(super) struct Task {
    pub(super) no: TaskNo,
    pub(super) stage: StageIx,
    pub(super) record: Arc<TaskRecord>,
    pub(super) seq: Seq,
    pub(super) accepted: Time,
    pub(super) phase: Phase,
    pub(super) attempts: Vec<Attempt>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Just applied, or between two phases.
    New,
    /// Claimable.
    Ready,
    /// Waits for its backoff, or for the strategy that postponed it.
    Delayed { until: Time },
    /// A worker has it.
    Leased(Held),
    /// A failed attempt is being recorded.
    Recording,
    /// A collector has it.
    Held,
    /// In the sequencer's input, waiting for lower blocks.
    Queued,
    /// Handed to the sink.
    Emitting,
    /// Its end is being recorded.
    Finishing,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) worker: WorkerId,
    pub(super) attempt: u32,
    pub(super) batch: u64,
    pub(super) expires: Time,
    pub(super) since: Time,
}

pub(super) struct Worker {
    pub(super) group: usize,
    pub(super) labels: BTreeSet<String>,
    pub(super) memory: u64,
    pub(super) slots: usize,
    pub(super) retired: bool,
    pub(super) batches: BTreeMap<u64, BTreeSet<TaskNo>>,
    pub(super) heard: Time,
    pub(super) last_used: u64,
}

/// The finished tasks of a stage, as far back as they are remembered.
#[derive(Default)]
pub(super) struct Finished {
    pub(super) by_block: BTreeMap<u64, BTreeSet<Part>>,
    pub(super) newest: u64,
}

pub(super) struct Collector {
    pub(super) strategy: Box<dyn Strategy>,
    /// Keys of the groups that fired, with the last block of each.
    pub(super) fired: HashMap<Part, u64>,
    pub(super) fired_by_last: BTreeMap<u64, BTreeSet<Part>>,
    pub(super) deadlines: BTreeMap<String, Time>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timer {
    Lease(TaskNo, u32),
    Wake(TaskNo),
    Overdue(StageIx, String),
    Adopted,
}

pub(super) enum Change {
    Put { record: Record, expect: Expect },
    Delete,
}

pub(super) struct Pending {
    pub(super) changes: Vec<(RecordKey, Change)>,
    pub(super) then: Then,
}

/// What an acceptance leads to besides the changes of the records themselves.
pub(super) enum Then {
    Nothing,
    Reply { request: RequestId, reply: Reply },
    Settle { task: TaskId, timing: Option<Timing> },
    Settled(Vec<TaskId>),
}

// === impl Core ===

impl Core {
    /// A core with no tasks. Give it the log's records by [`Core::replay`], then [`Core::start`].
    pub fn new(plan: Arc<Plan>, options: CoreOptions) -> Self {
        let stages = plan.stages.len();
        let groups: BTreeSet<Arc<str>> = plan
            .stages
            .iter()
            .filter_map(|stage| Some(stage.dispatcher()?.group.clone()))
            .collect();
        let groups: Vec<Arc<str>> = groups.into_iter().collect();
        let start = plan.sequencer().map_or(0, |(_, start)| start);
        Self {
            leads: plan.leads_to_sequencer(),
            stage_ix: plan
                .stages
                .iter()
                .enumerate()
                .map(|(ix, stage)| (stage.name.clone(), StageIx(ix)))
                .collect(),
            ready: groups.iter().map(|_| ReadyQueue::default()).collect(),
            groups,
            now: Now::default(),
            started: false,
            draining: false,
            adopting_until: None,
            next_no: 1,
            next_token: 1,
            applied: Seq(0),
            tasks: HashMap::new(),
            by_id: HashMap::new(),
            finished: (0..stages).map(|_| Finished::default()).collect(),
            dead: BTreeMap::new(),
            waiting: (0..stages).map(|_| BlockCount::default()).collect(),
            leased: (0..stages).map(|_| BlockCount::default()).collect(),
            workers: BTreeMap::new(),
            next_batch: 0,
            timers: BTreeSet::new(),
            pending: BTreeMap::new(),
            collectors: plan
                .stages
                .iter()
                .map(|stage| stage.collector().map(|plan| Collector::new(plan.strategy.build())))
                .collect(),
            cursor: start,
            emit_next: start,
            emission: BTreeMap::new(),
            emitting: 0,
            sources: BTreeMap::new(),
            parked: BTreeMap::new(),
            next_park: 0,
            counters: vec![Counters::default(); stages],
            actions: Vec::new(),
            plan,
            options,
        }
    }

    /// The workflow.
    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// Takes a live record of the log into account; call in order of sequence numbers, before
    /// [`Core::start`].
    pub fn replay(&mut self, key: &str, value: &Bytes, seq: Seq) -> Result<(), ReplayError> {
        let record_key = RecordKey::parse(key)?;
        let record = Record::decode(key, value)?;
        let task = match (&record_key, &record) {
            (RecordKey::Task(id), _) | (RecordKey::Dead(id), _) => Some(id),
            _ => None,
        };
        if let Some(task) = task.filter(|id| !self.stage_ix.contains_key(&id.stage)) {
            return Err(ReplayError::NoSuchStage {
                workflow: self.plan.workflow.to_string(),
                stage: task.stage.to_string(),
                task: task.clone(),
            });
        }
        self.put(&record_key, record, seq);
        self.applied = self.applied.max(seq);
        Ok(())
    }

    /// Begins: every record has been replayed. Call once.
    pub fn start(&mut self, now: Now) -> Vec<Action> {
        self.now = now;
        self.started = true;
        self.emit_next = self.cursor;
        if !self.options.adopt_grace.is_zero() {
            let until = now.mono.plus(self.options.adopt_grace);
            self.adopting_until = Some(until);
            self.timers.insert((until, Timer::Adopted));
        }
        let mut numbers: Vec<TaskNo> = self.tasks.keys().copied().collect();
        numbers.sort_unstable();
        for no in numbers {
            self.enter(no);
        }
        self.settle_down();
        std::mem::take(&mut self.actions)
    }

    /// When the core next wants to hear [`Event::Tick`], if nothing else happens before.
    pub fn next_deadline(&self) -> Option<Time> {
        self.timers.first().map(|(time, _)| *time)
    }

    /// Takes an event into account.
    pub fn handle(&mut self, now: Now, event: Event) -> Vec<Action> {
        self.now = Now { mono: self.now.mono.max(now.mono), wall_ms: now.wall_ms };
        self.run_timers();
        self.dispatch(event);
        self.settle_down();
        std::mem::take(&mut self.actions)
    }

    /// Everything that any event may have made possible.
    fn settle_down(&mut self) {
        self.admit_parked();
        self.pump_emission();
        self.schedule();
    }

    pub(super) fn stage_of(&self, id: &TaskId) -> Option<StageIx> {
        self.stage_ix.get(&id.stage).copied()
    }

    /// Whether the task is finished, as far as is remembered.
    pub(super) fn is_finished(&self, stage: StageIx, id: &TaskId, last: u64) -> bool {
        if self.leads[stage.0] && last < self.cursor {
            return true;
        }
        let finished = &self.finished[stage.0];
        finished.by_block.get(&id.block).is_some_and(|parts| parts.contains(&id.part))
    }

    /// Queues an append, to be applied when it is accepted.
    pub(super) fn append(&mut self, changes: Vec<(RecordKey, Change)>, then: Then) {
        let token = Token(self.next_token);
        self.next_token += 1;
        let ops = changes
            .iter()
            .map(|(key, change)| match change {
                Change::Put { record, expect } => {
                    Op::Put { key: key.to_key(), value: record.encode(), expect: *expect }
                }
                Change::Delete => Op::Delete { key: key.to_key() },
            })
            .collect();
        self.pending.insert(token, Pending { changes, then });
        self.actions.push(Action::Append { token, ops });
    }

    pub(super) fn accepted(&mut self, token: Token, seq: Seq) {
        let Some(pending) = self.pending.remove(&token) else { return };
        self.applied = self.applied.max(seq);
        let mut entering = Vec::new();
        for (key, change) in pending.changes {
            match change {
                Change::Put { record, .. } => entering.extend(self.put(&key, record, seq)),
                Change::Delete => self.delete(&key),
            }
        }
        match pending.then {
            Then::Nothing => {}
            Then::Reply { request, reply } => self.reply(request, seq, reply),
            Then::Settle { task, timing } => self.settle(task, seq, timing),
            Then::Settled(tasks) => {
                tasks.into_iter().for_each(|task| self.settle(task, seq, None));
            }
        }
        entering.into_iter().for_each(|no| self.enter(no));
    }

    pub(super) fn reply(&mut self, request: RequestId, after: Seq, reply: Reply) {
        self.actions.push(Action::Reply { request, after, reply });
    }

    fn settle(&mut self, task: TaskId, after: Seq, timing: Option<Timing>) {
        let settled = Settled { task, completed: timing.is_some(), timing };
        self.actions.push(Action::Settle { after, settled });
    }

    /// Applies a record. Returns the task if it is a new one, still to [`Core::enter`] its stage.
    fn put(&mut self, key: &RecordKey, record: Record, seq: Seq) -> Option<TaskNo> {
        match (key, record) {
            (RecordKey::Task(id), Record::Task(task)) => {
                let stage = self.stage_of(id)?;
                if self.by_id.contains_key(id) || self.is_finished(stage, id, task.last) {
                    return None;
                }
                let no = TaskNo(self.next_no);
                self.next_no += 1;
                self.by_id.insert(id.clone(), no);
                let task = Task {
                    no,
                    stage,
                    record: Arc::new(task),
                    seq,
                    accepted: self.now.mono,
                    phase: Phase::New,
                    attempts: Vec::new(),
                };
                self.tasks.insert(no, task);
                self.counters[stage.0].accepted += 1;
                return Some(no);
            }
            (RecordKey::Tries(id), Record::Tries(attempts)) => {
                let no = self.by_id.get(id)?;
                self.tasks.get_mut(no)?.attempts = attempts;
                if self.started {
                    self.retry_later(*no);
                }
            }
            (RecordKey::Done(id), Record::Done(done)) => {
                let stage = self.stage_of(id)?;
                let finished = &mut self.finished[stage.0];
                finished.by_block.entry(id.block).or_default().insert(id.part.clone());
                finished.newest = finished.newest.max(id.block);
                self.counters[stage.0].count(&done.finish);
                self.forget(id);
            }
            (RecordKey::Dead(id), Record::Dead(dead)) => {
                let stage = self.stage_of(id)?;
                self.counters[stage.0].died += 1;
                self.forget(id);
                self.dead.insert(id.clone(), (dead, seq));
            }
            (RecordKey::Group(stage, key), Record::Group(group)) => {
                let stage = *self.stage_ix.get(stage)?;
                let collector = self.collectors[stage.0].as_mut()?;
                collector.fired.insert(key.clone(), group.last);
                collector.fired_by_last.entry(group.last).or_default().insert(key.clone());
            }
            (RecordKey::Cursor, Record::Cursor(next)) => {
                self.cursor = self.cursor.max(next);
                self.emit_next = self.emit_next.max(next);
            }
            (RecordKey::Source(name), Record::Source(next)) => {
                self.sources.insert(name.clone(), next);
            }
            (key, _) => {
                debug_assert!(false, "record under {key:?} is of another kind");
            }
        }
        None
    }

    fn delete(&mut self, key: &RecordKey) {
        match key {
            RecordKey::Task(id) => self.forget(id),
            RecordKey::Dead(id) => {
                self.dead.remove(id);
            }
            RecordKey::Done(id) => {
                let Some(stage) = self.stage_of(id) else { return };
                let finished = &mut self.finished[stage.0];
                if let Some(parts) = finished.by_block.get_mut(&id.block) {
                    parts.remove(&id.part);
                    if parts.is_empty() {
                        finished.by_block.remove(&id.block);
                    }
                }
            }
            RecordKey::Group(stage, key) => {
                let collector = self.stage_ix.get(stage).copied();
                let collector = collector.and_then(|ix| self.collectors[ix.0].as_mut());
                let Some(collector) = collector else { return };
                let Some(last) = collector.fired.remove(key) else { return };
                if let Some(keys) = collector.fired_by_last.get_mut(&last) {
                    keys.remove(key);
                    if keys.is_empty() {
                        collector.fired_by_last.remove(&last);
                    }
                }
            }
            RecordKey::Tries(_) | RecordKey::Cursor | RecordKey::Source(_) => {}
        }
    }

    /// Removes a live task from every index.
    fn forget(&mut self, id: &TaskId) {
        let Some(no) = self.by_id.remove(id) else { return };
        self.set_phase(no, Phase::New);
        self.tasks.remove(&no);
    }

    /// A task begins its life at its stage.
    pub(super) fn enter(&mut self, no: TaskNo) {
        if !self.started {
            return;
        }
        let Some(task) = self.tasks.get(&no) else { return };
        if task.phase != Phase::New {
            return;
        }
        let stage = task.stage;
        match self.plan.stage(stage).kind {
            StageKind::Dispatcher(_) => self.set_phase(no, Phase::Ready),
            StageKind::Collector(_) => self.offer(no),
            StageKind::Sequencer { .. } => self.set_phase(no, Phase::Queued),
        }
    }

    pub(super) fn class_of(&self, task: &Task) -> Option<(usize, Class, Priority)> {
        let dispatcher = self.plan.stage(task.stage).dispatcher()?;
        let group = self.groups.iter().position(|group| *group == dispatcher.group)?;
        let needs = task.record.needs.clone().unwrap_or_else(|| dispatcher.needs.clone());
        let priority = Priority {
            block: task.record.id.block,
            first_attempt: task.attempts.is_empty(),
            no: task.no,
        };
        Some((group, (task.stage, needs), priority))
    }

    /// The one place where a task changes phase: keeps every index in step.
    pub(super) fn set_phase(&mut self, no: TaskNo, phase: Phase) {
        let Some(task) = self.tasks.get(&no) else { return };
        let (stage, block) = (task.stage, task.record.id.block);
        let part = task.record.id.part.clone();
        let old = task.phase.clone();
        if old == Phase::Ready {
            if let Some((group, class, priority)) = self.class_of(task) {
                self.ready[group].remove(&class, &priority);
            }
        }
        if phase == Phase::Ready {
            if let Some((group, class, priority)) = self.class_of(task) {
                self.ready[group].insert(class, priority);
            }
        }
        if let Phase::Leased(held) = &old {
            self.leased[stage.0].remove(block);
            self.free_slot(no, held);
        }
        if let Phase::Leased(_) = &phase {
            self.leased[stage.0].add(block);
        }
        match (old.waits(), phase.waits()) {
            (true, false) => self.waiting[stage.0].remove(block),
            (false, true) => self.waiting[stage.0].add(block),
            _ => {}
        }
        match (old == Phase::Queued, phase == Phase::Queued) {
            (true, false) => {
                self.emission.remove(&(block, part));
            }
            (false, true) => {
                self.emission.insert((block, part), no);
            }
            _ => {}
        }
        if let Some(task) = self.tasks.get_mut(&no) {
            task.phase = phase;
        }
    }

    fn free_slot(&mut self, no: TaskNo, held: &Held) {
        let Some(worker) = self.workers.get_mut(&held.worker) else { return };
        if let Some(batch) = worker.batches.get_mut(&held.batch) {
            batch.remove(&no);
            if batch.is_empty() {
                worker.batches.remove(&held.batch);
            }
        }
    }

    pub(super) fn done(&self, finish: Finish) -> Change {
        let record = Record::Done(DoneRecord { finish, at_ms: self.now.wall_ms });
        Change::Put { record, expect: Expect::Absent }
    }
}

// === impl Phase ===

impl Phase {
    /// Whether the task counts against its queue's Q_max.
    pub(super) fn waits(&self) -> bool {
        matches!(self, Self::Ready | Self::Delayed { .. } | Self::Recording | Self::Queued)
    }
}

// === impl Collector ===

impl Collector {
    fn new(strategy: Box<dyn Strategy>) -> Self {
        Self {
            strategy,
            fired: HashMap::new(),
            fired_by_last: BTreeMap::new(),
            deadlines: BTreeMap::new(),
        }
    }
}

// === impl Change ===

impl Change {
    pub(super) fn put(record: Record) -> Self {
        Self::Put { record, expect: Expect::Any }
    }

    pub(super) fn put_new(record: Record) -> Self {
        Self::Put { record, expect: Expect::Absent }
    }
}
