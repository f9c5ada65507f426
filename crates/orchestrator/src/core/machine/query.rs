//! Answers to queries. Each is bounded, and copies only the data that it shows.

use std::collections::HashMap;
use std::sync::Arc;

use super::Core;
use super::view::phase_of;
use crate::conversation::{
    DeadRow, PAGE_MAX, Page, Query, QueryAnswer, QueueRow, TaskRow, TaskSelection, WorkerRow,
};
use crate::core::ending::millis;
use crate::core::tasks::Task;
use crate::core::view::TaskPhase;
use crate::id::{TaskId, WorkerId};
use crate::plan::StageIx;
use crate::record::DeadRecord;

/// Maximum number of tasks that are looked at for one page.
const EXAMINED_MAX: usize = 4 * PAGE_MAX;

/// Maximum number of a worker's labels in its row.
const LABELS_MAX: usize = 16;

impl Core {
    /// The answer to a query, which changes nothing.
    pub fn answer(&self, query: Query) -> QueryAnswer {
        match query {
            Query::Status => QueryAnswer::Status(Box::new(self.status())),
            Query::SourceNext(source) => QueryAnswer::SourceNext(self.source_next(&source)),
            Query::Measures => QueryAnswer::Measures(Box::new(self.measures())),
            Query::Queues => QueryAnswer::Queues(self.queue_rows()),
            Query::Workers { after, limit } => {
                QueryAnswer::Workers(self.worker_rows(after.as_ref(), limit))
            }
            Query::Tasks { of, after, limit } => {
                QueryAnswer::Tasks(self.task_rows(&of, after.as_ref(), limit))
            }
            Query::DeadLetters { after, limit } => {
                QueryAnswer::DeadLetters(self.dead_rows(after.as_ref(), limit))
            }
            Query::DeadLetter(task) => {
                let letter = self.dead_letter(&task).cloned();
                QueryAnswer::DeadLetter(letter.map(Box::new))
            }
            Query::Block(block) => QueryAnswer::Block(Box::new(self.block(block))),
            Query::Blocks { first, last } if last < first => QueryAnswer::Blocks(Vec::new()),
            Query::Blocks { first, last } => QueryAnswer::Blocks(self.summaries(first..=last)),
            Query::Steps => QueryAnswer::Steps(Box::new(self.steps())),
        }
    }

    fn queue_rows(&self) -> Vec<QueueRow> {
        let row = |name: &Arc<str>| QueueRow {
            queue: name.clone(),
            waiting: 0,
            leased: 0,
            held: 0,
            dead: 0,
            lowest: None,
        };
        let mut rows: Vec<QueueRow> = self.plan.queues.iter().map(|of| row(&of.name)).collect();
        for (ix, stage) in self.plan.stages.iter().enumerate() {
            match stage.inputs[..] {
                [queue] => self.count_stage(StageIx(ix), &mut rows[queue.0]),
                _ => self.count_inputs(StageIx(ix), &mut rows),
            }
        }
        rows
    }

    /// Adds the tasks of a stage to the row of its only queue.
    fn count_stage(&self, stage: StageIx, row: &mut QueueRow) {
        let present = self.tasks.present(stage);
        let (leased, held) = (
            self.tasks.leased(stage).total(),
            self.tasks.held(stage).total(),
        );
        row.leased += leased;
        row.held += held;
        row.waiting += present.total() - leased - held;
        row.dead += self.dead.count(stage).total();
        row.lowest = lower(row.lowest, present.lowest());
    }

    /// Adds the tasks of a stage that reads several queues to their rows.
    fn count_inputs(&self, stage: StageIx, rows: &mut [QueueRow]) {
        let names = self.plan.queues.iter().enumerate();
        let places: HashMap<&str, usize> = names.map(|(at, of)| (&*of.name, at)).collect();
        for task in self.tasks.in_order(stage, None) {
            let record = task.record();
            let Some(at) = places.get(&*record.queue) else {
                continue;
            };
            let row = &mut rows[*at];
            match phase_of(task) {
                TaskPhase::Leased => row.leased += 1,
                TaskPhase::Held => row.held += 1,
                TaskPhase::Waiting
                | TaskPhase::Delayed
                | TaskPhase::Queued
                | TaskPhase::Recording => row.waiting += 1,
            }
            row.lowest = lower(row.lowest, Some(record.id.block));
        }
        let name = self.layout.name(stage);
        let dead = self.dead.iter().filter(|dead| dead.task.id.stage == *name);
        for dead in dead {
            if let Some(at) = places.get(&*dead.task.queue) {
                rows[*at].dead += 1;
            }
        }
    }

    fn worker_rows(&self, after: Option<&WorkerId>, limit: usize) -> Page<WorkerRow, WorkerId> {
        let workers = self.workers.after(after);
        let page = page(workers, limit, PAGE_MAX, |_, _| true);
        page.map(|(name, worker)| WorkerRow {
            worker: name.clone(),
            group: self.layout.groups()[worker.group()].clone(),
            leases: self.leases_of(name, worker).count(),
            labels: worker.labels().iter().take(LABELS_MAX).cloned().collect(),
            slots: worker.slots(),
            slots_busy: worker.busy(),
            state: self.worker_state(name, worker).name().into(),
            silent_ms: millis(worker.heard().until(self.now.mono)),
            busy_percent: worker.usage().busy_percent(self.now.mono),
            completed: worker.usage().completed(),
            failed: worker.usage().failed(),
        })
    }

    fn task_rows(
        &self,
        of: &TaskSelection,
        after: Option<&TaskId>,
        limit: usize,
    ) -> Page<TaskRow, TaskId> {
        let tasks = self.tasks_after(of, after);
        let tasks = tasks.map(|task| (task.id(), task));
        let page = page(tasks, limit, EXAMINED_MAX, |_, task| is_selected(task, of));
        page.map(|(id, task)| TaskRow {
            task: id.clone(),
            last: task.record().last,
            queue: task.record().queue.clone(),
            phase: phase_of(task),
            worker: task.copies().first().map(|held| held.worker().clone()),
            failed_attempts: task.attempts().len(),
            payload_bytes: task.record().payload.len(),
            at_ms: task.record().at_ms,
        })
    }

    /// Live tasks after a task, by stage, block and part; all that the selection selects are among them.
    fn tasks_after<'a>(
        &'a self,
        of: &'a TaskSelection,
        after: Option<&'a TaskId>,
    ) -> Box<dyn Iterator<Item = &'a Task> + 'a> {
        let is_in_stage = move |stage: StageIx| {
            let name = self.layout.name(stage);
            of.stage.as_ref().is_none_or(|it| it == name)
                && after.is_none_or(|after| after.stage <= *name)
        };
        let of_stage =
            move |stage: StageIx| after.filter(|it| it.stage == *self.layout.name(stage));
        if let Some(block) = of.block {
            let places = self.task_places(block);
            let places = places.filter(move |(stage, first)| {
                is_in_stage(*stage) && of_stage(*stage).is_none_or(|after| after.block <= *first)
            });
            return Box::new(places.flat_map(move |(stage, first)| {
                let after = of_stage(stage).filter(|after| after.block == first);
                let after = after.map(|after| &after.part);
                self.tasks.beginning_at(stage, first, after)
            }));
        }
        let stages = self.layout.stages_by_name().iter().copied();
        let stages = stages.filter(move |stage| is_in_stage(*stage));
        Box::new(stages.flat_map(move |stage| {
            let after = of_stage(stage).map(|after| (after.block, &after.part));
            self.tasks.in_order(stage, after)
        }))
    }

    fn dead_rows(&self, after: Option<&TaskId>, limit: usize) -> Page<DeadRow, TaskId> {
        let letters = self.dead.after(after).map(|dead| (&dead.task.id, dead));
        let page = page(letters, limit, PAGE_MAX, |_, _| true);
        page.map(|(id, dead): (&TaskId, &DeadRecord)| DeadRow {
            task: id.clone(),
            reason: dead.reason.clone(),
            attempts: dead.attempts.len(),
            at_ms: dead.at_ms,
        })
    }
}

fn lower(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    [one, other].into_iter().flatten().min()
}

fn is_selected(task: &Task, of: &TaskSelection) -> bool {
    let record = task.record();
    let in_stage = of.stage.as_ref().is_none_or(|it| *it == record.id.stage);
    let is_about = |block: u64| (record.id.block..=record.last).contains(&block);
    let in_phase = of.phase.as_ref().is_none_or(|it| *it == phase_of(task));
    in_stage && of.block.is_none_or(is_about) && in_phase
}

/// The first items that `keep` keeps, at most `limit`, of items in the order of their keys. The page ends after
/// `examined_max` items, and says that there may be more.
fn page<'a, K: Clone + 'a, T>(
    items: impl Iterator<Item = (&'a K, T)>,
    limit: usize,
    examined_max: usize,
    keep: impl Fn(&K, &T) -> bool,
) -> Page<(&'a K, T), K> {
    let limit = limit.min(PAGE_MAX);
    let mut rows = Vec::new();
    let mut last: Option<&K> = None;
    for (examined, (key, item)) in items.enumerate() {
        if rows.len() == limit || examined == examined_max {
            let next = last.cloned();
            return Page { rows, next };
        }
        last = Some(key);
        if keep(key, &item) {
            rows.push((key, item));
        }
    }
    Page { rows, next: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_follow_each_other_in_order_and_lack_nothing() {
        let keys: Vec<u64> = (1..=9).collect();
        for examined_max in [2, 3, 100] {
            let (mut seen, mut after) = (Vec::new(), 0);
            loop {
                let items = keys.iter().filter(|key| **key > after);
                let items = items.map(|key| (key, ()));
                let page = page(items, 2, examined_max, |key, ()| key % 2 == 1);
                assert!(page.rows.len() <= 2);
                seen.extend(page.rows.iter().map(|(key, ())| **key));
                match page.next {
                    Some(next) => after = next,
                    None => break,
                }
            }
            assert_eq!(seen, [1, 3, 5, 7, 9], "{examined_max}");
        }
        let items = || keys.iter().map(|key| (key, ()));
        let all = page(items(), usize::MAX, 100, |_, ()| true);
        assert_eq!((all.rows.len(), all.next), (9, None));
        let none = page(items(), 0, 100, |_, ()| true);
        assert_eq!((none.rows.len(), none.next), (0, None));
    }
}
