//! Rewinds: a source takes blocks back because the chain that it follows was reorganised.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::task::forget_parts;
use super::{Core, OnAccepted};
use crate::conversation::{Reply, Rewind};
use crate::core::change::Change;
use crate::core::event::{RequestId, Settled};
use crate::core::limits::FORGET_MAX;
use crate::core::tasks::{Phase, TaskNo};
use crate::id::TaskId;
use crate::plan::{QueueIx, StageIx};
use crate::record::{HistoryEntry, Record, RecordKey, RewindRecord, TaskRecord};

/// Tasks and records of the blocks that are taken back.
#[derive(Default)]
struct RewindScope {
    tasks: Vec<TaskNo>,
    /// Keys of marks and dead letters, and of fired groups.
    records: Vec<RecordKey>,
    /// Last block of these tasks and records; `None` if there are none.
    last: Option<u64>,
    /// Whether more may follow: a task is finishing, or an append or decision is on its way to the log.
    moves: bool,
}

/// A rewind under way.
#[derive(Clone, Debug)]
pub(super) struct Rewinding {
    /// Request to reply to; `None` for a rewind that an earlier coordinator began.
    request: Option<RequestId>,
    producer: Arc<str>,
    queues: Vec<QueueIx>,
    from: u64,
}

impl Core {
    /// Resumes the rewinds that an earlier coordinator began. Tasks that followed from the blocks between two
    /// of its appends must be removed before workers get them.
    pub(super) fn resume_rewinds(&mut self) {
        let rewinds = self.sources.recorded_rewinds();
        for (producer, RewindRecord { queues, from }) in rewinds {
            let known = self.plan.queues.iter().enumerate();
            let known = known.filter(|(_, queue)| queues.contains(&queue.name));
            let queues = known.map(|(number, _)| QueueIx(number)).collect();
            self.begin_rewind(Rewinding {
                request: None,
                producer,
                queues,
                from,
            });
        }
    }

    pub(super) fn rewind(&mut self, request: RequestId, rewind: Rewind) {
        let Rewind {
            source,
            queues,
            from,
        } = rewind;
        self.begin_rewind(Rewinding {
            request: Some(request),
            producer: source,
            queues,
            from,
        });
    }

    fn begin_rewind(&mut self, rewind: Rewinding) {
        self.sources.begin_rewind(&rewind.producer, rewind.from);
        let stages = self.reached(&rewind.queues);
        let emitted = self.emitted_of(&stages);
        let stale = emitted.saturating_sub(rewind.from);
        // An earlier coordinator has counted a resumed one.
        if stale > 0 && rewind.request.is_some() {
            self.counts.add_blocks(stale, |totals| &mut totals.stale);
            self.note_taken_back(&rewind, emitted - 1, true);
            self.append(Vec::new(), OnAccepted::Nothing);
        }
        self.rewind_round(rewind);
    }

    /// Drops the tasks and records that exist; once all pending appends have been answered, searches again
    /// for those that have followed.
    pub(super) fn rewind_round(&mut self, mut rewind: Rewinding) {
        let stages = self.reached(&rewind.queues);
        rewind.from = self.lowest_together(&stages, rewind.from);
        // Only now that the first block is known: a message of an earlier block that is dropped together with
        // a later one would otherwise be admitted, and the source's position moved beyond it.
        self.reject_parked(&rewind);
        let scope = self.scope_from(&stages, rewind.from);
        let nothing = scope.tasks.is_empty() && scope.records.is_empty() && !scope.moves;
        let position = self.sources.position(&rewind.producer);
        if nothing && position.is_none_or(|next| next <= rewind.from) {
            // An earlier rewind, whose reply the source has lost, may have taken back more.
            let next = position
                .unwrap_or(rewind.from)
                .max(self.emitted_of(&stages));
            let from = rewind.from.min(next);
            self.end_rewind(rewind, from);
            return;
        }
        if let Some(last) = scope.last {
            self.note_taken_back(&rewind, last, false);
        }
        let mut dropped = Vec::with_capacity(scope.tasks.len());
        let mut changes = vec![self.rewind_record(&rewind)];
        // First in the append, so that a source restarted in between continues from there. Also written if
        // the source has no position, so that a repeated rewind whose reply was lost is answered with the
        // blocks that the first one took back.
        if position.is_none_or(|next| next > rewind.from) {
            let key = RecordKey::Source(rewind.producer.clone());
            changes.push((key, Change::put(Record::Source(rewind.from))));
        }
        for no in scope.tasks {
            self.drop_task(no, &mut changes, &mut dropped);
        }
        for key in scope.records {
            // Other rewinds, and operators, see that a decision is on its way.
            if let RecordKey::Dead(id) = &key {
                self.dead.decide(id.clone());
            }
            changes.push((key, Change::Delete));
        }
        while changes.len() > FORGET_MAX {
            let rest = changes.split_off(FORGET_MAX);
            let part = std::mem::replace(&mut changes, rest);
            self.append(part, OnAccepted::Nothing);
        }
        self.append(changes, OnAccepted::Rewind { rewind, dropped });
    }

    /// Record of all rewinds of a source that are under way.
    fn rewind_record(&mut self, rewind: &Rewinding) -> (RecordKey, Change) {
        let from = self.sources.lower_rewind(&rewind.producer, rewind.from);
        let names = rewind.queues.iter();
        let names = names.filter_map(|queue| self.plan.queues.get(queue.0));
        let record = RewindRecord {
            queues: names.map(|queue| queue.name.clone()).collect(),
            from,
        };
        let key = RecordKey::Rewind(rewind.producer.clone());
        (key, Change::put(Record::Rewind(record)))
    }

    /// Ends a rewind: no task or record of its blocks is left.
    fn end_rewind(&mut self, rewind: Rewinding, from: u64) {
        let is_last = self.sources.end_rewind(&rewind.producer);
        let reply = Reply::Rewound { from };
        if is_last && self.sources.has_recorded_rewind(&rewind.producer) {
            let key = RecordKey::Rewind(rewind.producer);
            let then = match rewind.request {
                Some(request) => OnAccepted::Reply { request, reply },
                None => OnAccepted::Nothing,
            };
            self.append(vec![(key, Change::Delete)], then);
        } else if let Some(request) = rewind.request {
            self.reply(request, self.applied, reply);
        }
    }

    /// Notes in the history that blocks were taken back.
    fn note_taken_back(&mut self, rewind: &Rewinding, last: u64, emitted: bool) {
        self.history.note(HistoryEntry::TakenBack {
            source: rewind.producer.clone(),
            first: rewind.from,
            last,
            emitted,
            at_ms: self.now.wall_ms,
        });
    }

    /// Replies to the source's waiting messages about the blocks that are taken back.
    fn reject_parked(&mut self, rewind: &Rewinding) {
        let from = rewind.from;
        for submission in self.submissions.take_from(&rewind.producer, from) {
            self.reply(submission.request(), self.applied, Reply::Rewound { from });
        }
    }

    /// Stages that messages of these queues reach.
    fn reached(&self, queues: &[QueueIx]) -> BTreeSet<StageIx> {
        let mut stages = BTreeSet::new();
        let mut next: Vec<QueueIx> = queues.to_vec();
        while let Some(queue) = next.pop() {
            let readers = self.plan.queues.get(queue.0).map(|queue| &queue.readers);
            for reader in readers.into_iter().flatten() {
                if stages.insert(*reader) {
                    next.extend(&self.plan.stage(*reader).outputs);
                }
            }
        }
        stages
    }

    /// Block below which the sink has been given everything, if the sequencer is among these stages; 0
    /// otherwise.
    fn emitted_of(&self, stages: &BTreeSet<StageIx>) -> u64 {
        let sequencer = self.plan.sequencer();
        match sequencer.is_some_and(|(stage, _)| stages.contains(&stage)) {
            true => self.sequencer.next(),
            false => 0,
        }
    }

    /// Lowest block that shares a message with a block from `from` on, directly or through other messages;
    /// not below the blocks that the sink has been given.
    fn lowest_together(&self, stages: &BTreeSet<StageIx>, from: u64) -> u64 {
        let bound = self.emitted_of(stages);
        let mut from = from.max(bound);
        loop {
            let live = self.tasks.iter();
            let live = live.filter(|task| stages.contains(&task.stage()));
            let live = live.map(|task| (task.id().block, task.record().last));
            let dead = self.dead_of(stages).map(|task| (task.id.block, task.last));
            let marks = stages.iter().flat_map(|stage| {
                let below = self.marks.below(*stage, from);
                below.map(|(block, _, mark)| (block, mark.last()))
            });
            let across = live.chain(dead).chain(marks);
            let across = across.filter(|(first, last)| *first < from && *last >= from);
            let lowest = across.map(|(first, _)| first.max(bound)).min();
            match lowest {
                Some(lowest) if lowest < from => from = lowest,
                _ => return from,
            }
        }
    }

    fn dead_of(&self, stages: &BTreeSet<StageIx>) -> impl Iterator<Item = &TaskRecord> {
        let dead = self.dead.iter().map(|dead| &dead.task);
        dead.filter(|task| {
            let stage = self.layout.stage_of(&task.id);
            stage.is_some_and(|stage| stages.contains(&stage))
        })
    }

    fn scope_from(&self, stages: &BTreeSet<StageIx>, from: u64) -> RewindScope {
        let mut scope = RewindScope::default();
        for task in self.tasks.iter() {
            let last = task.record().last;
            if last < from || !stages.contains(&task.stage()) {
                continue;
            }
            match task.phase() {
                // The sink has been given it.
                Phase::Emitting => {}
                Phase::Finishing => scope.moves = true,
                _ => {
                    scope.tasks.push(task.no());
                    scope.last = scope.last.max(Some(last));
                }
            }
        }
        scope.tasks.sort_unstable();
        for task in self.dead_of(stages).filter(|task| task.last >= from) {
            match self.dead.is_deciding(&task.id) {
                true => scope.moves = true,
                false => {
                    scope.records.push(RecordKey::Dead(task.id.clone()));
                    scope.last = scope.last.max(Some(task.last));
                }
            }
        }
        for stage in stages {
            let name = self.layout.name(*stage);
            let marks = self.marks.iter(*stage);
            for (block, part, mark) in marks.filter(|(.., mark)| mark.last() >= from) {
                scope.last = scope.last.max(Some(mark.last()));
                scope.records.push(RecordKey::Done(TaskId {
                    stage: name.clone(),
                    block,
                    part: part.clone(),
                }));
            }
            scope.moves |= self.appends.incoming(*stage).has(&(from..=u64::MAX));
            let fired = self.collectors.fired_from(*stage, from);
            let groups = fired.map(|key| RecordKey::Group(name.clone(), key.clone()));
            scope.records.extend(groups);
        }
        scope
    }

    /// Ends a live task without a mark.
    fn drop_task(
        &mut self,
        no: TaskNo,
        changes: &mut Vec<(RecordKey, Change)>,
        dropped: &mut Vec<Settled>,
    ) {
        let Some(task) = self.tasks.get(no) else {
            return;
        };
        let id = task.record().id.clone();
        changes.push((RecordKey::Task(id.clone()), Change::Delete));
        if !task.attempts().is_empty() {
            changes.push((RecordKey::Attempts(id.clone()), Change::Delete));
        }
        changes.extend(forget_parts(task));
        dropped.push(Settled::without_result(task.record()));
        self.forget_member(no);
        self.end_copies(no, None);
        self.set_phase(no, Phase::Finishing);
    }
}
