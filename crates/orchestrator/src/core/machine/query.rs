//! Answers to queries. Each is bounded, and copies only the data that it shows.

use std::collections::{BTreeMap, HashMap};

use super::Core;
use super::view::phase_of;
use crate::conversation::{
    DeadRow, PAGE_MAX, Page, Query, QueryAnswer, QueueRow, TaskRow, TaskSelection, WorkerRow,
};
use crate::core::tasks::Task;
use crate::core::view::TaskPhase;
use crate::id::{TaskId, WorkerId};
use crate::record::DeadRecord;

impl Core {
    /// The answer to a query, which changes nothing.
    pub fn answer(&self, query: Query) -> QueryAnswer {
        match query {
            Query::Status => QueryAnswer::Status(Box::new(self.status())),
            Query::SourceNext(source) => QueryAnswer::SourceNext(self.source_next(&source)),
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
            Query::Block(block) => {
                let mut view = self.block(block);
                view.live.truncate(PAGE_MAX);
                view.dead.truncate(PAGE_MAX);
                view.history
                    .drain(..view.history.len().saturating_sub(PAGE_MAX));
                QueryAnswer::Block(Box::new(view))
            }
            Query::Blocks { first, last } if last < first => QueryAnswer::Blocks(Vec::new()),
            Query::Blocks { first, last } => QueryAnswer::Blocks(self.summaries(first..=last)),
        }
    }

    fn queue_rows(&self) -> Vec<QueueRow> {
        let row = |name: &std::sync::Arc<str>| QueueRow {
            queue: name.clone(),
            waiting: 0,
            leased: 0,
            held: 0,
            dead: 0,
            lowest: None,
        };
        let mut rows: Vec<QueueRow> = self.plan.queues.iter().map(|of| row(&of.name)).collect();
        let names = self.plan.queues.iter().enumerate();
        let places: HashMap<&str, usize> = names.map(|(at, of)| (&*of.name, at)).collect();
        for task in self.tasks.iter() {
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
            let block = record.id.block;
            row.lowest = Some(row.lowest.map_or(block, |lowest| lowest.min(block)));
        }
        for dead in self.dead_letters() {
            if let Some(at) = places.get(&*dead.task.queue) {
                rows[*at].dead += 1;
            }
        }
        rows
    }

    fn worker_rows(&self, after: Option<&WorkerId>, limit: usize) -> Page<WorkerRow, WorkerId> {
        let page = page(self.workers.iter(), after, limit);
        page.map(|(name, worker)| WorkerRow {
            worker: name.clone(),
            group: self.layout.groups()[worker.group()].clone(),
            leases: self.leases_of(name, worker).count(),
        })
    }

    fn task_rows(
        &self,
        of: &TaskSelection,
        after: Option<&TaskId>,
        limit: usize,
    ) -> Page<TaskRow, TaskId> {
        let selected = self.tasks.iter().filter(|task| is_selected(task, of));
        let page = page(selected.map(|task| (task.id(), task)), after, limit);
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

    fn dead_rows(&self, after: Option<&TaskId>, limit: usize) -> Page<DeadRow, TaskId> {
        let letters = self.dead_letters().map(|dead| (&dead.task.id, dead));
        let page = page(letters, after, limit);
        page.map(|(id, dead): (&TaskId, &DeadRecord)| DeadRow {
            task: id.clone(),
            reason: dead.reason.clone(),
            attempts: dead.attempts.len(),
            at_ms: dead.at_ms,
        })
    }
}

fn is_selected(task: &Task, of: &TaskSelection) -> bool {
    let record = task.record();
    let in_stage = of.stage.as_ref().is_none_or(|it| *it == record.id.stage);
    let is_about = |block: u64| (record.id.block..=record.last).contains(&block);
    let in_phase = of.phase.as_ref().is_none_or(|it| *it == phase_of(task));
    in_stage && of.block.is_none_or(is_about) && in_phase
}

/// The first items with keys after `after`, at most `limit`. The items may come in any order.
fn page<'a, K: Ord + Clone + 'a, T>(
    items: impl Iterator<Item = (&'a K, T)>,
    after: Option<&K>,
    limit: usize,
) -> Page<(&'a K, T), K> {
    let limit = limit.min(PAGE_MAX);
    let mut first: BTreeMap<&K, T> = BTreeMap::new();
    // One item more than is shown tells whether there are more.
    for (key, item) in items.filter(|(key, _)| after.is_none_or(|after| *key > after)) {
        if first.len() > limit && first.last_key_value().is_some_and(|(last, _)| key > *last) {
            continue;
        }
        first.insert(key, item);
        if first.len() > limit + 1 {
            first.pop_last();
        }
    }
    let has_more = first.len() > limit;
    let rows: Vec<(&K, T)> = first.into_iter().take(limit).collect();
    let next = rows.last().filter(|_| has_more);
    let next = next.map(|(key, _)| (*key).clone());
    Page { rows, next }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_follow_each_other_in_order_and_lack_nothing() {
        let keys = [7u64, 3, 9, 1, 5];
        let (mut seen, mut after) = (Vec::new(), None);
        loop {
            let items = keys.iter().map(|key| (key, ()));
            let page = page(items, after.as_ref(), 2);
            assert!(page.rows.len() <= 2);
            seen.extend(page.rows.iter().map(|(key, ())| **key));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(seen, [1, 3, 5, 7, 9]);
        let all = page(keys.iter().map(|key| (key, ())), None, usize::MAX);
        assert_eq!((all.rows.len(), all.next), (5, None));
    }
}
