//! An operator's pauses of stages and sources, drains of workers, and attempts that do not wait for their backoff.

use std::sync::Arc;
use std::time::Duration;

use super::{Core, OnAccepted};
use crate::conversation::{Reply, Submit};
use crate::core::change::Change;
use crate::core::event::RequestId;
use crate::core::limits::truncate;
use crate::core::tasks::Phase;
use crate::core::timers::Timer;
use crate::id::{Part, TaskId, WorkerId};
use crate::plan::{QueueIx, StageIx, StageKind};
use crate::record::{PAUSED_BY_MAX, PauseKind, PauseRecord, Record, RecordKey};

/// Maximum number of drained workers. Each is a record in the log until its worker leaves or is resumed.
const DRAINED_MAX: usize = 1_000;

impl Core {
    pub(super) fn pause(
        &mut self,
        request: RequestId,
        kind: PauseKind,
        name: &Arc<str>,
        by: &Arc<str>,
    ) {
        if let Err(refused) = self.check_pausable(kind, name) {
            self.reply_in_turn(request, refused);
            return;
        }
        let mut by = by.to_string();
        truncate(&mut by, PAUSED_BY_MAX);
        let record = PauseRecord {
            kind,
            name: name.clone(),
            by: by.into(),
            at_ms: self.now.wall_ms,
        };
        let change = Change::put(Record::Pause(record));
        let reply = Reply::Accepted;
        self.append(
            vec![(pause_key(kind, name), change)],
            OnAccepted::Reply { request, reply },
        );
    }

    pub(super) fn resume(&mut self, request: RequestId, kind: PauseKind, name: &Arc<str>) {
        if self.pause_of(kind, name).is_none() {
            self.reply_in_turn(request, Reply::NotFound);
            return;
        }
        let reply = Reply::Accepted;
        self.append(
            vec![(pause_key(kind, name), Change::Delete)],
            OnAccepted::Reply { request, reply },
        );
    }

    /// Makes a task claimable that waits for its next attempt.
    pub(super) fn run_now(&mut self, request: RequestId, id: &TaskId) {
        let Some(no) = self.tasks.no_of(id) else {
            self.reply_in_turn(request, Reply::NotFound);
            return;
        };
        if self.tasks[no].waits_for_backoff().is_none() {
            let why = format!("task {id} does not wait for its next attempt");
            self.reply_in_turn(request, Reply::Invalid { why });
            return;
        }
        // As at the end of the backoff: a late result may have replaced the missing one.
        self.set_phase(no, Phase::Ready);
        self.update_after_copy(no);
        self.reply(request, self.applied, Reply::Accepted);
    }

    fn pause_of(&self, kind: PauseKind, name: &str) -> Option<&PauseRecord> {
        match kind {
            PauseKind::Stage => self.pauses.stage(self.layout.stage_named(name)?),
            PauseKind::Source => self.pauses.source(name),
            PauseKind::Worker => self.workers.drained(name),
        }
    }

    fn check_pausable(&self, kind: PauseKind, name: &Arc<str>) -> Result<(), Reply> {
        let exists = match kind {
            PauseKind::Stage => self.layout.stage_named(name).is_some(),
            PauseKind::Source => self.plan.sources.iter().any(|source| source.name == *name),
            PauseKind::Worker => self.workers.get(name).is_some(),
        };
        if !exists {
            return Err(Reply::NotFound);
        }
        let invalid = |why: String| Err(Reply::Invalid { why });
        if let Some(pause) = self.pause_of(kind, name) {
            return invalid(format!("{kind} {name} is paused already, by {}", pause.by));
        }
        match kind {
            PauseKind::Stage => {
                let stage = self.layout.stage_named(name);
                let is_collector = |stage| {
                    let kind = &self.plan.stage(stage).kind;
                    matches!(kind, StageKind::Collector(_))
                };
                if stage.is_some_and(is_collector) {
                    return invalid(format!(
                        "stage {name} is a collector, which cannot be paused: pause the stages that read what it writes"
                    ));
                }
            }
            PauseKind::Worker if self.workers.drained_count() >= DRAINED_MAX => {
                return invalid(format!(
                    "{DRAINED_MAX} workers are drained already: resume some of them"
                ));
            }
            PauseKind::Source | PauseKind::Worker => {}
        }
        Ok(())
    }

    // Application of the records.

    pub(super) fn put_pause(&mut self, pause: PauseRecord) {
        match pause.kind {
            PauseKind::Stage => {
                // A stage that the workflow file has no more keeps nothing back.
                if let Some(stage) = self.layout.stage_named(&pause.name) {
                    self.pauses.set_stage(stage, Some(pause));
                }
            }
            PauseKind::Source => {
                self.pauses.set_source(pause);
                let held = self.held_producers();
                self.submissions.hold_parked(|submit| held.matches(submit));
            }
            PauseKind::Worker => self.workers.drain(pause),
        }
    }

    pub(super) fn delete_pause(&mut self, kind: PauseKind, name: &Part) {
        match kind {
            PauseKind::Stage => {
                let is_meant = |ix: &StageIx| is_named(self.layout.name(*ix), name);
                let named: Option<StageIx> = self.pauses.stages().find(is_meant);
                if let Some(stage) = named {
                    self.pauses.set_stage(stage, None);
                }
            }
            PauseKind::Source => {
                let mut names = self.pauses.sources().map(|pause| &pause.name);
                let named = names.find(|source| is_named(source, name)).cloned();
                drop(names);
                if let Some(source) = named {
                    self.pauses.end_source(&source);
                    self.release_held();
                }
            }
            PauseKind::Worker => self.workers.undrain(|worker| is_named(worker, name)),
        }
    }

    /// Submits the held messages that no pause holds any more, lowest block first.
    fn release_held(&mut self) {
        let held = self.held_producers();
        let released = self.submissions.take_held(|submit| !held.matches(submit));
        for submission in released {
            self.submit(submission);
        }
    }

    /// Whether an operator has paused the source that a message comes from.
    pub(super) fn is_held(&self, submit: &Submit) -> bool {
        self.pauses.sources().next().is_some() && self.held_producers().matches(submit)
    }

    fn held_producers(&self) -> HeldProducers {
        let is_paused = |name: &Arc<str>| self.pauses.source(name).is_some();
        let sources = self.plan.sources.iter();
        let open = sources.clone().filter(|source| source.takes_submissions);
        let open = open.filter(|source| is_paused(&source.name));
        HeldProducers {
            names: self.pauses.sources().map(|it| it.name.clone()).collect(),
            queues: open.map(|source| source.output).collect(),
            sources: sources.map(|source| source.name.clone()).collect(),
        }
    }

    // Workers.

    /// Ends the drain of a worker that has left.
    pub(super) fn forget_drain(&mut self, worker: &WorkerId) {
        if self.workers.drained(worker).is_some() {
            let key = pause_key(PauseKind::Worker, worker);
            self.append(vec![(key, Change::Delete)], OnAccepted::Nothing);
        }
    }

    /// After a restart, gives drained workers time to join again, before their drains are forgotten.
    pub(super) fn await_drained(&mut self) {
        let groups = 0..self.layout.groups().len();
        let longest: Duration = groups
            .map(|it| self.silence_of(it))
            .max()
            .unwrap_or_default();
        let due = self.now.mono.plus(longest);
        for pause in self.workers.drains() {
            self.timers.set(due, Timer::Silent(pause.name.clone()));
        }
    }

    /// Whether a paused stage has work: the mill is then not idle, since an operator will resume it.
    pub(super) fn has_paused_work(&self) -> bool {
        let mut stages = self.pauses.stages();
        stages.any(|stage| self.tasks.present(stage).total() > 0)
    }
}

/// Producers whose messages wait for an operator.
struct HeldProducers {
    names: Vec<Arc<str>>,
    /// Queues for which submissions from outside wait.
    queues: Vec<QueueIx>,
    /// All sources of the workflow.
    sources: Vec<Arc<str>>,
}

// === impl HeldProducers ===

impl HeldProducers {
    fn matches(&self, submit: &Submit) -> bool {
        let is_from_outside = || !self.sources.contains(&submit.producer);
        self.names.contains(&submit.producer)
            || self.queues.contains(&submit.queue) && is_from_outside()
    }
}

fn pause_key(kind: PauseKind, name: &str) -> RecordKey {
    RecordKey::Pause(kind, Part::from_text(name))
}

fn is_named(name: &str, part: &Part) -> bool {
    Part::from_text(name) == *part
}
