//! A source takes blocks back: the chain that it follows was reorganised.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::accept::forget_parts;
use super::forget::FORGET_MAX;
use super::{Change, Core, Phase, Task, Then};
use crate::core::event::{Edition, Reply, RequestId, Rewind, Submit};
use crate::core::ready::TaskNo;
use crate::id::TaskId;
use crate::plan::{QueueIx, StageIx};
use crate::record::{Past, Record, RecordKey, RewindRecord, TaskRecord};

/// What is found of the blocks that are taken back.
#[derive(Default)]
struct Found {
    tasks: Vec<TaskNo>,
    /// Marks and dead letters.
    records: Vec<RecordKey>,
    /// The last block of all that.
    last: Option<u64>,
    /// Whether something is on its way to the log, of which more may follow.
    moves: bool,
}

/// A rewind under way.
#[derive(Clone, Debug)]
pub(super) struct Rewinding {
    /// None of one that an earlier coordinator began.
    request: Option<RequestId>,
    producer: Arc<str>,
    queues: Vec<QueueIx>,
    from: u64,
}

impl Core {
    /// Goes on with the rewinds that an earlier coordinator began. What followed from blocks that were
    /// taken back, and came to be between two of its appends, has to go before it is worked on.
    pub(super) fn resume_rewinds(&mut self) {
        let rewinds: Vec<_> = self.rewinds.clone().into_iter().collect();
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

    pub(super) fn rewind(&mut self, rewind: Rewind) {
        let Rewind {
            request,
            producer,
            queues,
            from,
        } = rewind;
        self.begin_rewind(Rewinding {
            request: Some(request),
            producer,
            queues,
            from,
        });
    }

    /// Whether a message of a source is of blocks that are being taken back.
    pub(super) fn is_rewound(&self, producer: &str, last: u64) -> bool {
        self.rewinding
            .get(producer)
            .is_some_and(|(_, from)| last >= *from)
    }

    fn begin_rewind(&mut self, rewind: Rewinding) {
        let under_way = self.rewinding.entry(rewind.producer.clone());
        let (count, from) = under_way.or_insert((0, rewind.from));
        *count += 1;
        *from = rewind.from.min(*from);
        let stages = self.reached(&rewind.queues);
        let emitted = self.emitted_of(&stages);
        let stale = emitted.saturating_sub(rewind.from);
        // An earlier coordinator has counted it.
        if stale > 0 && rewind.request.is_some() {
            self.blocks_stale += stale;
            self.note_taken_back(&rewind, emitted - 1, true);
            self.append(Vec::new(), Then::Nothing);
        }
        self.rewind_round(rewind);
    }

    /// Drops what is there, then, when that and all that was on its way to the log has come to be,
    /// what has followed from it.
    pub(super) fn rewind_round(&mut self, mut rewind: Rewinding) {
        let stages = self.reached(&rewind.queues);
        rewind.from = self.lowest_together(&stages, rewind.from);
        // Not before it is known how far back it goes: a message of an earlier block that is dropped with
        // a later one would be let in, and the source's position moved beyond it.
        self.turn_away(&rewind);
        let found = self.of_blocks_from(&stages, rewind.from);
        let nothing = found.tasks.is_empty() && found.records.is_empty() && !found.moves;
        let position = self.sources.get(&rewind.producer).copied();
        if nothing && position.is_none_or(|next| next <= rewind.from) {
            // What the source has lost the answer to may have taken back more.
            let next = position
                .unwrap_or(rewind.from)
                .max(self.emitted_of(&stages));
            let from = rewind.from.min(next);
            self.end_rewind(rewind, from);
            return;
        }
        if let Some(last) = found.last {
            self.note_taken_back(&rewind, last, false);
        }
        let mut dropped = Vec::with_capacity(found.tasks.len());
        let mut changes = vec![self.rewind_record(&rewind)];
        // First, so that a source that is started anew in between goes on from there.
        if position.is_some_and(|next| next > rewind.from) {
            let key = RecordKey::Source(rewind.producer.clone());
            changes.push((key, Change::put(Record::Source(rewind.from))));
        }
        for no in found.tasks {
            self.drop_task(no, &mut changes, &mut dropped);
        }
        for key in found.records {
            // Another rewind, or an operator, finds that it is on its way.
            if let RecordKey::Dead(id) = &key {
                self.deciding.insert(id.clone());
            }
            changes.push((key, Change::Delete));
        }
        while changes.len() > FORGET_MAX {
            let rest = changes.split_off(FORGET_MAX);
            let part = std::mem::replace(&mut changes, rest);
            self.append(part, Then::Nothing);
        }
        self.append(changes, Then::Rewind { rewind, dropped });
    }

    /// The record of all rewinds of a source that are under way.
    fn rewind_record(&mut self, rewind: &Rewinding) -> (RecordKey, Change) {
        let under_way = self.rewinding.entry(rewind.producer.clone());
        let (_, from) = under_way.or_insert((1, rewind.from));
        *from = rewind.from.min(*from);
        let names = rewind.queues.iter();
        let names = names.filter_map(|queue| self.plan.queues.get(queue.0));
        let record = RewindRecord {
            queues: names.map(|queue| queue.name.clone()).collect(),
            from: *from,
        };
        let key = RecordKey::Rewind(rewind.producer.clone());
        (key, Change::put(Record::Rewind(record)))
    }

    /// All that was of these blocks is gone.
    fn end_rewind(&mut self, rewind: Rewinding, from: u64) {
        if let Some((count, _)) = self.rewinding.get_mut(&rewind.producer) {
            *count -= 1;
            if *count == 0 {
                self.rewinding.remove(&rewind.producer);
            }
        }
        let is_last = !self.rewinding.contains_key(&rewind.producer);
        let reply = Reply::Rewound { from };
        if is_last && self.rewinds.contains_key(&rewind.producer) {
            let key = RecordKey::Rewind(rewind.producer);
            let then = match rewind.request {
                Some(request) => Then::Reply { request, reply },
                None => Then::Nothing,
            };
            self.append(vec![(key, Change::Delete)], then);
        } else if let Some(request) = rewind.request {
            self.reply(request, self.applied, reply);
        }
    }

    /// Remembers that the blocks from where a rewind begins were taken back.
    fn note_taken_back(&mut self, rewind: &Rewinding, last: u64, emitted: bool) {
        self.note_past(Past::TakenBack {
            source: rewind.producer.clone(),
            first: rewind.from,
            last,
            emitted,
            at_ms: self.now.wall_ms,
        });
    }

    /// Answers the source's messages that wait at a door.
    fn turn_away(&mut self, rewind: &Rewinding) {
        let from = rewind.from;
        let is_taken_back =
            |submit: &Submit| submit.producer == rewind.producer && submit.message.last >= from;
        let mut away = Vec::new();
        for submits in self.parked.values_mut() {
            let keys: Vec<_> = submits
                .iter()
                .filter(|(_, submit)| is_taken_back(submit))
                .map(|(key, _)| *key)
                .collect();
            away.extend(keys.iter().filter_map(|key| submits.remove(key)));
        }
        self.parked.retain(|_, submits| !submits.is_empty());
        let deferred = std::mem::take(&mut self.deferred);
        let (gone, stay): (Vec<_>, Vec<_>) = deferred.into_iter().partition(is_taken_back);
        self.deferred = stay;
        for submit in away.into_iter().chain(gone) {
            self.reply(submit.request, self.applied, Reply::Rewound { from });
        }
    }

    /// The stages that messages of these queues reach.
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

    /// The block below which the sink has been given all, if it is among what these stages make.
    fn emitted_of(&self, stages: &BTreeSet<StageIx>) -> u64 {
        let sequencer = self.plan.sequencer();
        match sequencer.is_some_and(|(stage, _)| stages.contains(&stage)) {
            true => self.emit_next,
            false => 0,
        }
    }

    /// The lowest block that is in a message with one from `from` on, or is in a message with such a
    /// one, and so on; not below what the sink has been given.
    fn lowest_together(&self, stages: &BTreeSet<StageIx>, from: u64) -> u64 {
        let bound = self.emitted_of(stages);
        let mut from = from.max(bound);
        loop {
            let live = self
                .tasks
                .values()
                .filter(|task| stages.contains(&task.stage));
            let live = live.map(|task| (task.record.id.block, task.record.last));
            let dead = self.dead_of(stages).map(|task| (task.id.block, task.last));
            let marks = stages.iter().flat_map(|stage| {
                let below = self.finished[stage.0].by_block.range(..from);
                below.flat_map(|(block, parts)| parts.values().map(|mark| (*block, mark.last)))
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
        let dead = self.dead.values().map(|(dead, _)| &dead.task);
        dead.filter(|task| {
            let stage = self.stage_of(&task.id);
            stage.is_some_and(|stage| stages.contains(&stage))
        })
    }

    fn of_blocks_from(&self, stages: &BTreeSet<StageIx>, from: u64) -> Found {
        let mut found = Found::default();
        for task in self.tasks.values() {
            if task.record.last < from || !stages.contains(&task.stage) {
                continue;
            }
            match task.phase {
                // The sink has it.
                Phase::Emitting => {}
                Phase::Finishing => found.moves = true,
                _ => {
                    found.tasks.push(task.no);
                    found.last = found.last.max(Some(task.record.last));
                }
            }
        }
        found.tasks.sort_unstable();
        for task in self.dead_of(stages).filter(|task| task.last >= from) {
            match self.deciding.contains(&task.id) {
                true => found.moves = true,
                false => {
                    found.records.push(RecordKey::Dead(task.id.clone()));
                    found.last = found.last.max(Some(task.last));
                }
            }
        }
        for stage in stages {
            let name = &self.plan.stage(*stage).name;
            let marks = self.finished[stage.0].by_block.iter();
            let lasts = self.finished[stage.0].by_block.values();
            let lasts = lasts.flat_map(|parts| parts.values().map(|mark| mark.last));
            found.last = found.last.max(lasts.filter(|last| *last >= from).max());
            found.records.extend(marks.flat_map(|(block, parts)| {
                let touched = parts.iter().filter(|(_, mark)| mark.last >= from);
                touched.map(|(part, _)| {
                    RecordKey::Done(TaskId {
                        stage: name.clone(),
                        block: *block,
                        part: part.clone(),
                    })
                })
            }));
            found.moves |= self.incoming[stage.0].has(&(from..=u64::MAX));
            let collector = self.collectors[stage.0].iter();
            let fired = collector.flat_map(|collector| collector.fired_by_last.range(from..));
            let keys = fired.flat_map(|(_, keys)| keys);
            let groups = keys.map(|key| RecordKey::Group(name.clone(), key.clone()));
            found.records.extend(groups);
        }
        found
    }

    /// Ends a live task without a trace.
    fn drop_task(
        &mut self,
        no: TaskNo,
        changes: &mut Vec<(RecordKey, Change)>,
        dropped: &mut Vec<TaskId>,
    ) {
        let Some(task) = self.tasks.get(&no) else {
            return;
        };
        let id = task.record.id.clone();
        changes.push((RecordKey::Task(id.clone()), Change::Delete));
        if !task.attempts.is_empty() {
            changes.push((RecordKey::Tries(id.clone()), Change::Delete));
        }
        changes.extend(forget_parts(task));
        self.forget_member(no);
        self.end_copies(no, None);
        self.set_phase(no, Phase::Finishing);
        dropped.push(id);
    }

    /// What is known of the block of a message that is to be its only one: [`Reply::Differs`] if that
    /// is another message, [`Reply::Duplicate`] if nothing is to be recorded.
    pub(super) fn another_edition(
        &self,
        edition: Edition,
        stage: StageIx,
        record: &TaskRecord,
    ) -> Option<Reply> {
        if matches!(edition, Edition::Any | Edition::Anew) {
            return None;
        }
        let id = &record.id;
        // Messages of other queues and writers have parts that begin otherwise.
        let origin = |part: &str| part.rsplit_once(':').map(|(origin, _)| origin.to_owned());
        let own = origin(id.part.as_str());
        let is_other = |other: &TaskId| {
            other.stage == id.stage
                && other.block == id.block
                && other.part != id.part
                && origin(other.part.as_str()) == own
        };
        let is_live = self.present[stage.0].has(&(id.block..=id.block));
        let live = self.tasks.values().filter(|_| is_live);
        let live = live
            .map(|task: &Task| &task.record.id)
            .find(|other| is_other(other));
        let mut dead = self.dead.keys();
        let other = live.or_else(|| dead.find(|other| is_other(other))).cloned();
        let parts = self.finished[stage.0].by_block.get(&id.block);
        let mut finished = parts
            .into_iter()
            .flat_map(|parts| parts.keys())
            .map(|part| TaskId {
                part: part.clone(),
                ..id.clone()
            });
        if let Some(task) = other.or_else(|| finished.find(is_other)) {
            return Some(Reply::Differs { task });
        }
        let is_known = self.by_id.contains_key(id)
            || self.dead.contains_key(id)
            || self.is_finished(stage, id, record.last);
        let is_nothing = edition == Edition::Recalled && !is_known;
        is_nothing.then_some(Reply::Duplicate { same: None })
    }
}
