//! The core's state, how it begins, and how it goes from event to event.

mod accept;
mod append;
mod apply;
mod blocks;
mod cancel;
#[cfg(debug_assertions)]
mod check;
mod collect;
mod counts;
mod dead;
mod deadline;
mod forget;
mod handle;
mod hedge;
mod hosts;
mod late;
mod lease;
mod marks;
mod past;
mod phase;
mod progress;
mod rewind;
mod schedule;
mod sequence;
mod submit;
mod view;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use proofmill_bus::Seq;

pub use self::apply::ReplayError;
pub use self::collect::{GROUP_MAX, KEY_MAX};
use self::counts::Counted;
use self::deadline::Slot;
use self::hedge::History;
use self::hosts::{Gathering, Host};
use self::marks::Finished;
pub use self::past::HistoryOptions;
use self::past::{Chronicle, Ending};
use self::progress::Unrecorded;
use self::rewind::Rewinding;
use self::sequence::Emission;
use super::change::Change;
use super::event::{
    Action, Event, Now, Reply, RequestId, Settled, Submit, Target, Time, Timing, Token,
};
use super::ready::{BlockCount, Class, Priority, ReadyQueue, TaskNo};
use super::tag::{LEASE_KEY_BYTES, LeaseKey, LeaseTag};
use super::view::Counters;
use crate::collector::PartitionRef;
use crate::id::{Part, TaskId, WorkerId};
use crate::plan::{Needs, Plan, QueueIx, StageIx, StageKind};
use crate::record::{Attempt, Begun, DeadRecord, PartRecord, RecordKey, RewindRecord, TaskRecord};

/// Settings of a core that no workflow file holds.
#[derive(Clone, Default)]
pub struct CoreOptions {
    /// How long after [`Core::start`] to wait for the heartbeats of workers that still hold leases
    /// given by an earlier coordinator, before their tasks are leased again. Zero where no worker
    /// outlives the coordinator.
    pub adopt_grace: std::time::Duration,
    /// How messages find the partition of a collector.
    pub routing: Routing,
    /// The key that leases are tagged with, if the log has none: random bytes, which whoever runs the
    /// core has recorded if leases outlive it.
    pub fresh_lease_key: [u8; LEASE_KEY_BYTES],
    /// How much of the past of blocks is remembered.
    pub history: HistoryOptions,
}

impl std::fmt::Debug for CoreOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The key is not shown.
        f.debug_struct("CoreOptions")
            .field("adopt_grace", &self.adopt_grace)
            .field("routing", &self.routing)
            .field("history", &self.history)
            .finish_non_exhaustive()
    }
}

/// How messages find the partition of a collector, where hosts keep them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Routing {
    /// All of a group go to one partition.
    #[default]
    Affine,
    /// One after the other to each host, whatever they belong to: groups do not come together. For
    /// an experiment that shows this.
    RoundRobin,
}

/// The state machine. See the [module](super).
pub struct Core {
    plan: Arc<Plan>,
    options: CoreOptions,
    leads: Vec<bool>,
    stage_ix: HashMap<Arc<str>, StageIx>,
    groups: Vec<Arc<str>>,
    now: Now,
    started: bool,
    draining: bool,
    adopting_until: Option<Time>,
    next_no: u64,
    next_token: u64,
    applied: Seq,
    /// Records that could not be applied: their keys, and why.
    set_aside: Vec<(String, String)>,
    /// Set from [`Core::start`] on.
    lease_key: Option<LeaseKey>,
    tasks: HashMap<TaskNo, Task>,
    by_id: HashMap<TaskId, TaskNo>,
    finished: Vec<Finished>,
    dead: BTreeMap<TaskId, (DeadRecord, Seq)>,
    /// Dead letters about which a decision is on its way to the log.
    deciding: BTreeSet<TaskId>,
    /// By worker group.
    ready: Vec<ReadyQueue>,
    /// By worker group: claimable tasks that not every worker of their class may have, see
    /// [`Task::is_begun`].
    begun: Vec<BTreeSet<Priority>>,
    /// By stage, as are those that follow: live tasks,
    present: Vec<BlockCount>,
    /// those that count against Q_max,
    waiting: Vec<BlockCount>,
    /// those on their way to the log,
    incoming: Vec<BlockCount>,
    /// those that workers have,
    leased: Vec<BlockCount>,
    /// those that may be hedged, by the start of their oldest lease,
    hedgeable: Vec<BTreeSet<(Time, TaskNo)>>,
    /// how long the latest runs took, where hedging asks for it,
    history: Vec<History>,
    /// when hedging is looked at again,
    hedge_due: Vec<Option<Time>>,
    /// those that collectors hold,
    held: Vec<usize>,
    /// and dead letters.
    buried: Vec<usize>,
    /// Live tasks that neither wait for a lower block nor are held by a collector.
    moving: usize,
    /// By queue: the stages that write it.
    writers: Vec<Vec<StageIx>>,
    classes: Vec<Option<(usize, Class)>>,
    workers: BTreeMap<WorkerId, Worker>,
    /// By worker group: those with room for another assignment.
    free: Vec<BTreeSet<WorkerId>>,
    next_batch: u64,
    timers: BTreeSet<(Time, Timer)>,
    pending: BTreeMap<Token, Pending>,
    collectors: Vec<Option<Collector>>,
    /// Processes that keep partitions of collectors.
    hosts: BTreeMap<WorkerId, Host>,
    next_epoch: u64,
    /// Partitions that are to be begun anew.
    spoiled: BTreeSet<PartitionRef>,
    cursor: u64,
    /// The cursor, once every append on its way has been accepted.
    cursor_ahead: u64,
    emit_next: u64,
    emission: BTreeMap<(u64, Part), TaskNo>,
    emitting: VecDeque<Emission>,
    outdated: usize,
    forgetting: bool,
    sources: BTreeMap<Arc<str>, u64>,
    /// Rewinds that are under way, as the log has them, by their source.
    rewinds: BTreeMap<Arc<str>, RewindRecord>,
    /// The same as this coordinator has them: how many of a source, and from which block on.
    rewinding: BTreeMap<Arc<str>, (usize, u64)>,
    parked: BTreeMap<QueueIx, BTreeMap<(u64, u64), Submit>>,
    next_park: u64,
    /// By first block: blocks whose deadline is counted.
    slots: BTreeMap<u64, Slot>,
    /// Those that may have ended.
    ripe_slots: BTreeSet<u64>,
    blocks_met: u64,
    blocks_missed: u64,
    /// Blocks that had been emitted when their source took them back.
    blocks_stale: u64,
    /// Messages that wait for an append that decides about their tasks.
    deferred: Vec<Submit>,
    counters: Vec<Counters>,
    actions: Vec<Action>,
    /// Whether the log held anything at the start.
    reopened: bool,
    started_at: Time,
    unrecorded: Unrecorded,
    chronicle: Chronicle,
    counted: Counted,
}

struct Task {
    no: TaskNo,
    stage: StageIx,
    record: Arc<TaskRecord>,
    /// [`TaskRecord::content`].
    content: [u8; 32],
    seq: Seq,
    accepted: Time,
    phase: Phase,
    /// Who has it.
    copies: Vec<Held>,
    /// Results so far, by what their workers count as, where it takes several.
    parts: BTreeMap<Arc<str>, PartRecord>,
    /// How many workers should have it, or have completed it.
    wanted: usize,
    /// Results that complete it.
    accept: usize,
    /// Attempts that may fail before no other is made.
    attempts_max: u32,
    hedges: bool,
    attempts: Vec<Attempt>,
    /// Who runs it, where workers do.
    class: Option<(usize, Class)>,
    /// Workers that have ended an attempt by their own word, and which.
    reported: Vec<(WorkerId, u32)>,
    /// The key of the group that it is held in.
    key: Option<Arc<str>>,
    /// Whether the attempt that is being recorded as failed is followed by another without a wait.
    at_once: bool,
    /// Attempts that had begun before a restart, and whose workers have not been heard of since.
    lost: Vec<Begun>,
    /// When a retry was due before a restart, milliseconds since 1970-01-01 UTC.
    retry_at_ms: Option<u64>,
    /// Whether the log holds a record of its attempts, or is about to.
    run_recorded: bool,
    /// Whether it was in the log at the start.
    replayed: bool,
    /// What is known of its end before that is recorded.
    ending: Ending,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Phase {
    /// Just applied, or between two phases.
    New,
    /// Claimable; where several workers are to have it, some may already.
    Ready,
    /// Waits for its backoff, or for the strategy that postponed it.
    Delayed { until: Time },
    /// As many workers as are wanted have it.
    Leased,
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
struct Held {
    worker: WorkerId,
    /// What the worker counts as: no other copy's may.
    name: Arc<str>,
    attempt: u32,
    tag: LeaseTag,
    batch: u64,
    expires: Time,
    since: Time,
    /// As `since`, in milliseconds since 1970-01-01 UTC.
    since_wall_ms: u64,
}

struct Worker {
    group: usize,
    labels: BTreeSet<String>,
    memory: u64,
    slots: usize,
    retired: bool,
    /// Reason for which the worker takes no tasks for now; `None` if it takes them.
    paused: Option<Arc<str>>,
    batches: BTreeMap<u64, BTreeSet<TaskNo>>,
    heard: Time,
    last_used: u64,
}

struct Collector {
    gathering: Gathering,
    /// Keys of the groups that fired, with the last block of each.
    fired: HashMap<Part, u64>,
    fired_by_last: BTreeMap<u64, BTreeSet<Part>>,
    /// By the key of their group: the messages held.
    held: BTreeMap<Arc<str>, BTreeSet<TaskNo>>,
    deadlines: BTreeMap<Arc<str>, Time>,
    /// The groups that are gathered and whose time is limited.
    began: BTreeMap<Part, Gathered>,
}

/// Since when a group is gathered.
struct Gathered {
    /// Milliseconds since 1970-01-01 UTC.
    since_ms: u64,
    /// When its time is up, once that is known; after a restart it is not yet.
    due: Option<Time>,
    /// Whether the log holds this, or is about to.
    recorded: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    /// Of the task, in this assignment.
    Lease(TaskNo, u64),
    Wake(TaskNo),
    /// Attempts from before a restart are given up.
    Lost(TaskNo),
    /// Attempts have lasted long enough to be recorded.
    Begun,
    Hedge(StageIx),
    Slot(u64),
    Overdue(StageIx, Arc<str>),
    Silent(WorkerId),
    Host(WorkerId),
    Adopted,
    /// Counters have changed and are to be written.
    Counts,
}

struct Pending {
    changes: Vec<(RecordKey, Change)>,
    then: Then,
}

/// What an acceptance leads to besides the changes of the records themselves.
enum Then {
    Nothing,
    Reply {
        request: RequestId,
        reply: Reply,
    },
    Settle {
        task: TaskId,
        timing: Option<Timing>,
    },
    Settled(Vec<TaskId>),
    Forgotten,
    /// Look again for tasks to cancel.
    Cancel {
        request: RequestId,
        target: Target,
        found: bool,
        rounds: u32,
    },
    /// Tasks have been dropped: look again for what has followed from others.
    Rewind {
        rewind: Rewinding,
        dropped: Vec<TaskId>,
    },
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
            classes: plan
                .stages
                .iter()
                .enumerate()
                .map(|(ix, stage)| {
                    let dispatcher = stage.dispatcher()?;
                    let group = groups.iter().position(|group| *group == dispatcher.group)?;
                    Some((group, Arc::new((StageIx(ix), dispatcher.needs.clone()))))
                })
                .collect(),
            writers: (0..plan.queues.len())
                .map(|queue| {
                    let writes = |ix: &usize| plan.stages[*ix].outputs.contains(&QueueIx(queue));
                    (0..stages).filter(writes).map(StageIx).collect()
                })
                .collect(),
            ready: groups.iter().map(|_| ReadyQueue::default()).collect(),
            begun: groups.iter().map(|_| BTreeSet::new()).collect(),
            free: groups.iter().map(|_| BTreeSet::new()).collect(),
            groups,
            now: Now::default(),
            started: false,
            draining: false,
            adopting_until: None,
            next_no: 1,
            next_token: 1,
            applied: Seq(0),
            set_aside: Vec::new(),
            lease_key: None,
            tasks: HashMap::new(),
            by_id: HashMap::new(),
            finished: (0..stages).map(|_| Finished::default()).collect(),
            dead: BTreeMap::new(),
            deciding: BTreeSet::new(),
            present: block_counts(stages),
            waiting: block_counts(stages),
            incoming: block_counts(stages),
            leased: block_counts(stages),
            hedgeable: vec![BTreeSet::new(); stages],
            history: vec![History::default(); stages],
            hedge_due: vec![None; stages],
            held: vec![0; stages],
            buried: vec![0; stages],
            moving: 0,
            workers: BTreeMap::new(),
            next_batch: 0,
            timers: BTreeSet::new(),
            pending: BTreeMap::new(),
            collectors: plan
                .stages
                .iter()
                .map(|stage| {
                    stage
                        .collector()
                        .map(|plan| Collector::new(Gathering::Here(plan.strategy.build())))
                })
                .collect(),
            hosts: BTreeMap::new(),
            next_epoch: 0,
            spoiled: BTreeSet::new(),
            cursor: start,
            cursor_ahead: start,
            emit_next: start,
            emission: BTreeMap::new(),
            emitting: VecDeque::new(),
            outdated: 0,
            forgetting: false,
            sources: BTreeMap::new(),
            rewinds: BTreeMap::new(),
            rewinding: BTreeMap::new(),
            parked: BTreeMap::new(),
            next_park: 0,
            slots: BTreeMap::new(),
            ripe_slots: BTreeSet::new(),
            blocks_met: 0,
            blocks_missed: 0,
            blocks_stale: 0,
            deferred: Vec::new(),
            counters: vec![Counters::default(); stages],
            actions: Vec::new(),
            reopened: false,
            started_at: Time::default(),
            unrecorded: Unrecorded::default(),
            chronicle: Chronicle::default(),
            counted: Counted::new(stages),
            plan,
            options,
        }
    }

    /// The workflow.
    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// Begins: every record has been replayed. Call once.
    pub fn start(&mut self, now: Now) -> Vec<Action> {
        self.now = now;
        self.started = true;
        let fresh = || LeaseKey::new(&self.options.fresh_lease_key);
        self.lease_key.get_or_insert_with(fresh);
        self.started_at = now.mono;
        self.emit_next = self.cursor;
        self.cursor_ahead = self.cursor;
        self.note_all_outdated();
        self.resume_slots(now);
        self.count_accepted();
        if !self.options.adopt_grace.is_zero() {
            let until = now.mono.plus(self.options.adopt_grace);
            self.adopting_until = Some(until);
            self.timers.insert((until, Timer::Adopted));
        }
        let mut numbers: Vec<TaskNo> = self.tasks.keys().copied().collect();
        numbers.sort_unstable();
        for no in numbers {
            if let Some(task) = self.tasks.get_mut(&no) {
                task.accepted = now.mono;
            }
            self.enter(no);
            self.resume_attempts(no);
        }
        self.resume_rewinds();
        self.forget_groups();
        self.trim_past();
        self.settle_down();
        std::mem::take(&mut self.actions)
    }

    /// When the core next wants to hear [`Event::Tick`], if nothing else happens before.
    pub fn next_deadline(&self) -> Option<Time> {
        self.timers.first().map(|(time, _)| *time)
    }

    /// Takes an event into account.
    pub fn handle(&mut self, now: Now, event: Event) -> Vec<Action> {
        self.now = Now {
            mono: self.now.mono.max(now.mono),
            wall_ms: now.wall_ms,
        };
        self.run_timers();
        self.dispatch(event);
        self.settle_down();
        std::mem::take(&mut self.actions)
    }

    /// Everything that any event may have made possible.
    fn settle_down(&mut self) {
        self.mend_partitions();
        self.admit_parked();
        self.pump_emission();
        self.schedule();
        self.forget_outdated();
        self.end_slots();
        self.record_progress();
        self.arm_counts();
    }

    fn stage_of(&self, id: &TaskId) -> Option<StageIx> {
        self.stage_ix.get(&id.stage).copied()
    }

    fn accepted(&mut self, token: Token, seq: Seq) {
        let Some(pending) = self.pending.remove(&token) else {
            return;
        };
        self.applied = self.applied.max(seq);
        self.note_incoming(&pending.changes, false);
        let mut entering = Vec::new();
        for (key, change) in pending.changes {
            match change {
                Change::Put { record, .. } => entering.extend(self.put(&key, record, seq)),
                Change::Delete => self.delete(&key),
            }
        }
        let mut cancelling = None;
        let mut rewinding = None;
        match pending.then {
            Then::Nothing => {}
            Then::Forgotten => self.forgetting = false,
            Then::Cancel {
                request,
                target,
                found,
                rounds,
            } => cancelling = Some((request, target, found, rounds)),
            Then::Rewind { rewind, dropped } => {
                let dropped = dropped.into_iter();
                dropped.for_each(|task| self.settle(task, seq, None));
                rewinding = Some(rewind);
            }
            Then::Reply { request, reply } => self.reply(request, seq, reply),
            Then::Settle { task, timing } => self.settle(task, seq, timing),
            Then::Settled(tasks) => {
                tasks
                    .into_iter()
                    .for_each(|task| self.settle(task, seq, None));
            }
        }
        entering.into_iter().for_each(|no| self.enter(no));
        if let Some((request, target, found, rounds)) = cancelling {
            self.cancel_round(request, target, found, rounds);
        }
        if let Some(rewind) = rewinding {
            self.rewind_round(rewind);
        }
        self.resume_deferred();
    }

    fn reply(&mut self, request: RequestId, after: Seq, reply: Reply) {
        self.actions.push(Action::Reply {
            request,
            after,
            reply,
        });
    }

    fn settle(&mut self, task: TaskId, after: Seq, timing: Option<Timing>) {
        let settled = Settled {
            task,
            completed: timing.is_some(),
            timing,
        };
        self.actions.push(Action::Settle { after, settled });
    }

    /// A task begins its life at its stage.
    fn enter(&mut self, no: TaskNo) {
        if !self.started {
            return;
        }
        let Some(task) = self.tasks.get(&no) else {
            return;
        };
        if task.phase != Phase::New {
            return;
        }
        if self.is_given_up(no) {
            return;
        }
        let Some(task) = self.tasks.get(&no) else {
            return;
        };
        let stage = task.stage;
        match self.plan.stage(stage).kind {
            StageKind::Dispatcher(_) => {
                if !self.resume_backoff(no) {
                    self.set_phase(no, Phase::Ready);
                }
            }
            StageKind::Collector(_) => self.offer(no),
            StageKind::Sequencer { .. } => self.set_phase(no, Phase::Queued),
        }
    }

    /// The worker group and class of a task of `stage` with these needs.
    fn class_of(&self, stage: StageIx, needs: Option<&Needs>) -> Option<(usize, Class)> {
        let (group, class) = self.classes[stage.0].as_ref()?;
        let class = match needs {
            Some(needs) if *needs != class.1 => Arc::new((stage, needs.clone())),
            _ => Arc::clone(class),
        };
        Some((*group, class))
    }
}

fn block_counts(stages: usize) -> Vec<BlockCount> {
    (0..stages).map(|_| BlockCount::default()).collect()
}

// === impl Collector ===

impl Collector {
    fn new(gathering: Gathering) -> Self {
        Self {
            gathering,
            fired: HashMap::new(),
            fired_by_last: BTreeMap::new(),
            held: BTreeMap::new(),
            deadlines: BTreeMap::new(),
            began: BTreeMap::new(),
        }
    }

    /// A group has been emitted, or will have been once that is in the log.
    fn note_fired(&mut self, key: &Part, last: u64) {
        self.fired.insert(key.clone(), last);
        let keys = self.fired_by_last.entry(last).or_default();
        keys.insert(key.clone());
    }
}
