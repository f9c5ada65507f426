//! Whether the indices agree with the tasks: for tests, in builds with debug assertions.

use std::collections::BTreeMap;

use super::{Core, Phase, Task, Timer};
use crate::core::ready::{BlockCount, TaskNo};
use crate::plan::StageKind;

impl Core {
    /// Recomputes every index from the tasks and says which one differs.
    #[doc(hidden)]
    pub fn check(&self) -> Result<(), String> {
        self.check_counts()?;
        self.check_ready()?;
        self.check_workers()?;
        self.check_collectors()?;
        if self.by_id.len() != self.tasks.len() {
            return Err(format!(
                "{} ids for {} tasks",
                self.by_id.len(),
                self.tasks.len()
            ));
        }
        for task in self.tasks.values() {
            self.check_task(task)
                .map_err(|what| format!("task {}: {what}", task.record.id))?;
        }
        let emitting = self.emitting.iter().map(|emission| emission.no);
        for no in emitting {
            if self
                .tasks
                .get(&no)
                .is_none_or(|task| task.phase != Phase::Emitting)
            {
                return Err(format!("{no:?} is listed as emitting"));
            }
        }
        if self.cursor > self.cursor_ahead || self.cursor > self.emit_next {
            return Err("the cursor is ahead of itself".to_owned());
        }
        Ok(())
    }

    fn count(&self, keep: impl Fn(&Task) -> bool) -> BTreeMap<(usize, u64), usize> {
        let mut counts = BTreeMap::new();
        for task in self.tasks.values().filter(|task| keep(task)) {
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
        compare("waiting", &self.waiting, self.count(Task::waits))?;
        let is_leased = |task: &Task| !task.copies.is_empty();
        compare("leased", &self.leased, self.count(is_leased))?;
        if self.pending.is_empty() && self.incoming.iter().any(|count| count.total() > 0) {
            return Err("tasks are coming, but nothing is on its way".to_owned());
        }
        if self.pending.is_empty() && !(self.deciding.is_empty() && self.deferred.is_empty()) {
            return Err("something waits for an append, but none is on its way".to_owned());
        }
        if self.moving
            != self
                .tasks
                .values()
                .filter(|task| !task.phase.rests())
                .count()
        {
            return Err("the count of moving tasks is off".to_owned());
        }
        for (ix, stage) in self.plan.stages.iter().enumerate() {
            let of_stage = self.tasks.values().filter(|task| task.stage.0 == ix);
            if self.held[ix] != of_stage.filter(|task| task.phase == Phase::Held).count()
                || self.buried[ix] != self.dead.keys().filter(|id| id.stage == stage.name).count()
            {
                return Err(format!(
                    "stage {ix}: the count of held or dead tasks is off"
                ));
            }
        }
        Ok(())
    }

    fn check_ready(&self) -> Result<(), String> {
        let ready = self
            .tasks
            .values()
            .filter(|task| task.phase == Phase::Ready)
            .count();
        let begun: usize = self.begun.iter().map(|begun| begun.len()).sum();
        if ready != begun + self.ready.iter().map(|queue| queue.len()).sum::<usize>() {
            return Err("the count of claimable tasks is off".to_owned());
        }
        match self.ready.iter().all(|queue| queue.is_consistent()) {
            true => Ok(()),
            false => Err("the heads of the classes are off".to_owned()),
        }
    }

    fn check_workers(&self) -> Result<(), String> {
        for (name, worker) in &self.workers {
            if self.free[worker.group].contains(name) != worker.is_free() {
                return Err(format!("worker {name}: the index of free workers is off"));
            }
            for (batch, tasks) in &worker.batches {
                let holds = |no: &TaskNo| {
                    self.tasks.get(no).is_some_and(|task| {
                        let mut copies = task.copies.iter();
                        copies.any(|held| held.worker == *name && held.batch == *batch)
                    })
                };
                if tasks.is_empty() || !tasks.iter().all(holds) {
                    return Err(format!(
                        "worker {name}: batch {batch} lists what it has not"
                    ));
                }
            }
        }
        let free = self.free.iter().map(|free| free.len()).sum::<usize>();
        match free <= self.workers.len() {
            true => Ok(()),
            false => Err("an unknown worker is free".to_owned()),
        }
    }

    fn check_collectors(&self) -> Result<(), String> {
        for (ix, collector) in self.collectors.iter().enumerate() {
            let Some(collector) = collector else { continue };
            if let Some(key) = collector
                .deadlines
                .keys()
                .find(|key| !collector.held.contains_key(*key))
            {
                return Err(format!(
                    "stage {ix}: group {key:?} has a deadline and no message"
                ));
            }
            for (key, numbers) in &collector.held {
                let holds = |no: &TaskNo| {
                    self.tasks.get(no).is_some_and(|task| {
                        task.phase == Phase::Held && task.key.as_ref() == Some(key)
                    })
                };
                if numbers.is_empty() || !numbers.iter().all(holds) {
                    return Err(format!("stage {ix}: group {key:?} lists what it has not"));
                }
                if collector
                    .fired
                    .contains_key(&crate::id::Part::from_text(key))
                {
                    return Err(format!(
                        "stage {ix}: group {key:?} has fired and holds messages"
                    ));
                }
            }
        }
        Ok(())
    }

    fn check_task(&self, task: &Task) -> Result<(), String> {
        if self.by_id.get(&task.record.id) != Some(&task.no) {
            return Err("its id leads elsewhere".to_owned());
        }
        if self.dead.contains_key(&task.record.id) {
            return Err("it is live and dead".to_owned());
        }
        self.check_copies(task)?;
        match &task.phase {
            Phase::New => return Err("it has entered no phase".to_owned()),
            Phase::Ready => {
                let listed =
                    task.class
                        .as_ref()
                        .is_some_and(|(group, class)| match task.is_begun() {
                            true => self.begun[*group].contains(&task.priority()),
                            false => self.ready[*group].contains(class, &task.priority()),
                        });
                if !listed {
                    return Err("it is claimable and not listed".to_owned());
                }
            }
            Phase::Leased if task.copies.is_empty() || !task.is_possible() => {
                return Err("it is leased to too few".to_owned());
            }
            Phase::Delayed { until } if !self.timers.contains(&(*until, Timer::Wake(task.no))) => {
                return Err("it is delayed and nothing wakes it".to_owned());
            }
            Phase::Queued | Phase::Emitting
                if !matches!(
                    self.plan.stage(task.stage).kind,
                    StageKind::Sequencer { .. }
                ) =>
            {
                return Err("it waits for its turn where there is none".to_owned());
            }
            Phase::Recording | Phase::Finishing if self.pending.is_empty() => {
                return Err("it waits for an append that is not on its way".to_owned());
            }
            _ => {}
        }
        Ok(())
    }

    fn check_copies(&self, task: &Task) -> Result<(), String> {
        for (at, held) in task.copies.iter().enumerate() {
            let timer = |timer: &(crate::core::Time, Timer)| matches!(timer.1, Timer::Lease(no, batch) if no == task.no && batch == held.batch);
            if !self.timers.iter().any(timer) {
                return Err("a lease has no end".to_owned());
            }
            let same =
                |other: &&super::Held| other.worker == held.worker || other.name == held.name;
            if task.copies[..at].iter().any(|other| same(&other))
                || task.parts.contains_key(&held.name)
            {
                return Err(format!("{} has it twice", held.name));
            }
        }
        let most = task.wanted + usize::from(task.hedges);
        // A result may come when others have been given the task in the worker's place.
        if task.copies.len() > most || task.parts.len() >= task.accept {
            return Err("too many have it".to_owned());
        }
        let since = task.copies.iter().map(|held| held.since).min();
        let listed = |since| self.hedgeable[task.stage.0].contains(&(since, task.no));
        if since.is_some_and(listed) != task.is_hedgeable() {
            return Err("the index of tasks to hedge is off".to_owned());
        }
        match task.phase {
            Phase::Ready | Phase::Leased | Phase::Delayed { .. } | Phase::Recording => Ok(()),
            _ if task.copies.is_empty() => Ok(()),
            _ => Err("it has ended, and some work on it".to_owned()),
        }
    }
}
