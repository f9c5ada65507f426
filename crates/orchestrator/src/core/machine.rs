//! The state machine: takes an event, calls the parts, appends, and emits actions.
//!
//! [`Core`] holds the parts and the rest of the state: the time, and whether the core has started, drains or
//! adopts leases. Each file here implements the reaction to some of the events. Code outside this folder
//! reaches no part, and code in this folder reaches no private field of a part.

mod accept;
mod append;
mod apply;
mod blocks;
mod cancel;
#[cfg(debug_assertions)]
mod check;
mod collect;
mod dead;
mod deadline;
mod distrust;
mod emit;
mod fail;
mod fire;
mod forget;
mod handle;
mod hedge;
mod hosts;
mod known;
mod late;
mod lease;
mod measures;
mod past;
mod pause;
mod progress;
mod query;
mod rewind;
mod scaling;
mod schedule;
mod steps;
mod submit;
mod task;
mod trace;
mod view;
mod waiting;
mod work;
mod worker;

use std::sync::Arc;

use proofmill_bus::Seq;

pub use self::apply::ReplayError;
pub use self::fire::{GROUP_MAX, KEY_MAX};
use self::rewind::Rewinding;
use super::appends::Appends;
use super::collectors::Collectors;
use super::counts::Counts;
use super::dead_letters::DeadLetters;
use super::event::{Action, Event, Now, RequestId, Settled, Time};
use super::history::History;
use super::hosts::Hosts;
use super::layout::Layout;
use super::marks::Marks;
use super::options::CoreOptions;
use super::pauses::Pauses;
use super::progress::Progress;
use super::scaling::Scaling;
use super::sequencer::Sequencer;
use super::slots::Slots;
use super::sources::Sources;
use super::speculation::Speculation;
use super::steps::Steps;
use super::submissions::Submissions;
use super::tag::LeaseKey;
use super::tasks::TaskTable;
use super::timers::{Timer, Timers};
use super::workers::Workers;
use crate::conversation::{Reply, Target};
use crate::plan::{Plan, StageIx};

/// The state machine. See the [module](super).
pub struct Core {
    plan: Arc<Plan>,
    layout: Layout,
    options: CoreOptions,

    now: Now,
    started: bool,
    started_at: Time,
    draining: bool,
    /// End of the grace period in which leases from before the restart are adopted and nothing is leased;
    /// `None` outside that period.
    adopting_until: Option<Time>,
    /// Whether the log held any record at the start.
    reopened: bool,
    /// Sequence number up to which the log has been applied.
    applied: Seq,
    /// Records that could not be applied: the key of each, and the reason.
    set_aside: Vec<(String, String)>,
    /// Key that leases are tagged with; set once [`Core::start`] has run.
    lease_key: Option<LeaseKey>,

    tasks: TaskTable,
    dead: DeadLetters,
    marks: Marks,
    steps: Steps,
    workers: Workers,
    speculation: Speculation,
    scaling: Scaling,
    progress: Progress,
    collectors: Collectors,
    hosts: Hosts,
    sequencer: Sequencer,
    sources: Sources,
    submissions: Submissions,
    pauses: Pauses,
    slots: Slots,
    history: History,
    counts: Counts,
    appends: Appends<OnAccepted>,
    timers: Timers,

    /// Whether [`Action::Work`] is wanted.
    is_work_observed: bool,
    /// Actions collected while the current event is handled.
    actions: Vec<Action>,
}

/// Work to do when the log accepts an append, besides applying its records.
enum OnAccepted {
    Nothing,
    Reply {
        request: RequestId,
        reply: Reply,
    },
    /// Report that tasks have ended.
    Settled(Vec<Settled>),
    Forgotten,
    /// Search once more for tasks to cancel.
    Cancel {
        request: RequestId,
        target: Target,
        found: bool,
        rounds: u32,
    },
    /// Tasks have been dropped: search once more for tasks that others have led to in the meantime.
    Rewind {
        rewind: Rewinding,
        dropped: Vec<Settled>,
    },
}

// === impl Core ===

impl Core {
    /// A core with no tasks. Give it the log's records by [`Core::replay`], then [`Core::start`].
    pub fn new(plan: Arc<Plan>, options: CoreOptions) -> Self {
        let layout = Layout::new(&plan);
        let (stages, groups) = (layout.stages(), layout.groups().len());
        let collectors = || plan.stages.iter().map(|stage| stage.collector());
        let strategies = plan.stages.iter().map(|stage| {
            let strategy = stage.collector().map(|plan| plan.strategy.build());
            (stage.name.clone(), strategy)
        });
        Self {
            now: Now::default(),
            started: false,
            started_at: Time::default(),
            draining: false,
            adopting_until: None,
            reopened: false,
            applied: Seq(0),
            set_aside: Vec::new(),
            is_work_observed: false,
            lease_key: None,
            tasks: TaskTable::new(stages, groups),
            dead: DeadLetters::new(stages),
            marks: Marks::new(stages),
            steps: Steps::new(stages, plan.cuts_blocks),
            workers: Workers::new(groups),
            speculation: Speculation::new(stages),
            scaling: Scaling::new(&options.pools, &plan, &layout),
            progress: Progress::default(),
            collectors: Collectors::new(collectors().map(|collector| collector.is_some())),
            hosts: Hosts::new(options.routing, strategies),
            sequencer: Sequencer::new(plan.sequencer().map_or(0, |(_, start)| start)),
            sources: Sources::default(),
            submissions: Submissions::default(),
            pauses: Pauses::new(stages),
            slots: Slots::new(plan.deadline.map(|deadline| deadline.slot)),
            history: History::new(options.history),
            counts: Counts::new(stages),
            appends: Appends::new(stages),
            timers: Timers::default(),
            actions: Vec::new(),
            layout,
            plan,
            options,
        }
    }

    /// The workflow.
    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// Starts the core after every record has been replayed. Call once.
    pub fn start(&mut self, now: Now) -> Vec<Action> {
        self.now = now;
        self.started = true;
        let fresh = || LeaseKey::new(&self.options.fresh_lease_key);
        self.lease_key.get_or_insert_with(fresh);
        self.started_at = now.mono;
        self.sequencer.resume();
        self.marks.note_all_outdated();
        self.resume_slots();
        for stage in (0..self.layout.stages()).map(StageIx) {
            let open = self.tasks.present(stage).total() + self.dead.count(stage).total();
            self.counts.count_accepted(stage, open);
        }
        if !self.options.adopt_grace.is_zero() {
            let until = now.mono.plus(self.options.adopt_grace);
            self.adopting_until = Some(until);
            self.timers.set(until, Timer::Adopted);
            self.scaling.begin_grace(now.mono);
        }
        for no in self.tasks.select(|_| true) {
            self.tasks.accept_anew(no, now.mono);
            self.enter(no);
            self.resume_attempts(no);
        }
        self.resume_rewinds();
        self.await_drained();
        self.forget_groups();
        self.trim_history();
        self.recall_runs();
        self.repeat_traces();
        self.scale();
        self.run_after_event();
        std::mem::take(&mut self.actions)
    }

    /// Time by which the core needs [`Event::Tick`] if no other event comes first; `None` if no timer is set.
    pub fn next_deadline(&self) -> Option<Time> {
        self.timers.next()
    }

    /// Sets the present time, for answers to queries. Timers wait for the next event.
    pub fn set_time(&mut self, now: Now) {
        self.now = Now {
            mono: self.now.mono.max(now.mono),
            wall_ms: now.wall_ms,
        };
    }

    /// Handles an event and returns the actions to carry out.
    pub fn handle(&mut self, now: Now, event: Event) -> Vec<Action> {
        self.set_time(now);
        self.run_timers();
        self.dispatch(event);
        self.run_after_event();
        std::mem::take(&mut self.actions)
    }

    /// Does all that any event may have made possible; runs after every event.
    fn run_after_event(&mut self) {
        self.rebuild_partitions();
        self.admit_parked();
        self.pump_emission();
        self.schedule();
        self.forget_outdated();
        self.end_slots();
        self.record_progress();
        self.schedule_counts_write();
    }
}
