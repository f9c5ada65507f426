//! Consistency check of the table's indices, for tests and builds with debug assertions.

use std::collections::{BTreeMap, BTreeSet};

use super::super::{ActiveLease, Phase, Task};
use super::TaskTable;
use crate::core::block_count::BlockCount;

impl TaskTable {
    /// Recomputes every index from the tasks and reports the first difference.
    pub(in crate::core) fn check(&self) -> Result<(), String> {
        self.check_counts()?;
        self.check_ready()?;
        if self.by_id.len() != self.tasks.len() {
            let (ids, tasks) = (self.by_id.len(), self.tasks.len());
            return Err(format!("{ids} ids for {tasks} tasks"));
        }
        self.check_about()?;
        for task in self.iter() {
            self.check_task(task)
                .map_err(|what| format!("task {}: {what}", task.record.id))?;
        }
        Ok(())
    }

    fn count(&self, keep: impl Fn(&Task) -> bool) -> BTreeMap<(usize, u64), usize> {
        let mut counts = BTreeMap::new();
        for task in self.iter().filter(|task| keep(task)) {
            *counts
                .entry((task.stage.0, task.record.id.block))
                .or_default() += 1;
        }
        counts
    }

    fn check_counts(&self) -> Result<(), String> {
        let compare = |name: &str, index: &[BlockCount], counts: BTreeMap<(usize, u64), usize>| {
            for (ix, count) in index.iter().enumerate() {
                let of_stage = || counts.iter().filter(|((stage, _), _)| *stage == ix);
                let total: usize = of_stage().map(|(_, count)| count).sum();
                let lowest = of_stage().next().map(|((_, block), _)| *block);
                if count.total() != total || count.lowest() != lowest {
                    return Err(format!("stage {ix}: the index of tasks {name} is off"));
                }
            }
            Ok(())
        };
        compare("present", &self.present, self.count(|_| true))?;
        for (ix, by_age) in self.by_age.iter().enumerate() {
            let of_stage = self.iter().filter(|task| task.stage.0 == ix);
            if !of_stage
                .map(|task| task.no)
                .collect::<BTreeSet<_>>()
                .eq(by_age)
            {
                return Err(format!("stage {ix}: the index of tasks by age is off"));
            }
        }
        compare("waiting", &self.waiting, self.count(Task::waits))?;
        let is_leased = |task: &Task| !task.copies.is_empty();
        compare("leased", &self.leased, self.count(is_leased))?;
        let moving = self.iter().filter(|task| !task.phase.is_blocked()).count();
        if self.moving != moving {
            return Err("the count of moving tasks is off".to_owned());
        }
        let is_held = |task: &Task| task.phase == Phase::Held;
        compare("held", &self.held, self.count(is_held))?;
        let queued = self.iter().filter(|task| task.phase == Phase::Queued);
        match self.queued.len() == queued.count() {
            true => Ok(()),
            false => Err("the index of tasks that wait for the sequencer is off".to_owned()),
        }
    }

    fn check_about(&self) -> Result<(), String> {
        let mut counts: BTreeMap<(u64, u64), (usize, usize)> = BTreeMap::new();
        for task in self.iter() {
            let record = &task.record;
            let count = counts.entry((record.id.block, record.last)).or_default();
            count.0 += 1;
            count.1 += usize::from(!task.copies.is_empty());
        }
        let listed = self.about.all();
        let listed = listed.map(|(first, last, it)| ((first, last), (it.count, it.leased)));
        let listed: BTreeMap<(u64, u64), (usize, usize)> = listed.collect();
        if counts != listed {
            return Err("the index of tasks by block is off".to_owned());
        }
        match self.in_order.iter().map(BTreeMap::len).sum::<usize>() == self.tasks.len() {
            true => Ok(()),
            false => Err("the order of the tasks is off".to_owned()),
        }
    }

    fn check_ready(&self) -> Result<(), String> {
        let ready = self.iter().filter(|task| task.phase == Phase::Ready);
        let partially_assigned: usize = self
            .partially_assigned
            .iter()
            .map(|tasks| tasks.len())
            .sum();
        if ready.count()
            != partially_assigned + self.ready.iter().map(|queue| queue.len()).sum::<usize>()
        {
            return Err("the count of claimable tasks is off".to_owned());
        }
        match self.ready.iter().all(|queue| queue.is_consistent()) {
            true => Ok(()),
            false => Err("the heads of the classes are off".to_owned()),
        }
    }

    fn check_task(&self, task: &Task) -> Result<(), String> {
        if self.no_of(&task.record.id) != Some(task.no) {
            return Err("its id leads elsewhere".to_owned());
        }
        let place = (task.record.id.block, task.record.id.part.clone());
        if self.in_order[task.stage.0].get(&place) != Some(&task.no) {
            return Err("it is not in its place in the order".to_owned());
        }
        check_copies(task)?;
        let since = task.copies.iter().map(|held| held.since).min();
        let listed = |since| self.hedgeable[task.stage.0].contains(&(since, task.no));
        if since.is_some_and(listed) != task.is_hedgeable() {
            return Err("the index of tasks to hedge is off".to_owned());
        }
        match task.phase {
            Phase::New => Err("it has entered no phase".to_owned()),
            Phase::Ready if !self.is_listed(task) => {
                Err("it is claimable and not listed".to_owned())
            }
            Phase::Leased if task.copies.is_empty() || !task.can_complete() => {
                Err("it is leased to too few".to_owned())
            }
            Phase::Queued if self.queued.values().all(|no| *no != task.no) => {
                Err("it waits for the sequencer and is not listed".to_owned())
            }
            Phase::Ready | Phase::Leased | Phase::Delayed { .. } | Phase::Recording => Ok(()),
            _ if task.copies.is_empty() => Ok(()),
            _ => Err("it has ended, and some work on it".to_owned()),
        }
    }

    fn is_listed(&self, task: &Task) -> bool {
        let class = task.class.as_ref();
        class.is_some_and(|(group, class)| match task.is_partially_assigned() {
            true => self.partially_assigned[*group].contains(&task.priority()),
            false => self.ready[*group].contains(class, &task.priority()),
        })
    }
}

fn check_copies(task: &Task) -> Result<(), String> {
    for (at, held) in task.copies.iter().enumerate() {
        let same = |other: &ActiveLease| {
            other.worker == held.worker || other.distinct_name == held.distinct_name
        };
        if task.copies[..at].iter().any(same) || task.results.contains_key(&held.distinct_name) {
            return Err(format!("{} has it twice", held.distinct_name));
        }
    }
    let most = task.policy.copies_wanted + usize::from(task.policy.hedges);
    // A result may come after other workers have been given the task in the worker's place.
    match task.copies.len() > most || task.results.len() >= task.policy.results_required {
        true => Err("too many have it".to_owned()),
        false => Ok(()),
    }
}
