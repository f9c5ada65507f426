//! Collector stages: messages go to the strategy, finished groups go on.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::hosts::Gathering;
use super::lease::REASON_MAX;
use super::{Change, Core, Phase, Task, Then, Timer};
use crate::collector::{Do, Group, Member, Outcome, Overdue};
use crate::core::limits::{excess, truncate};
use crate::core::ready::TaskNo;
use crate::id::{Part, TaskId};
use crate::message::Message;
use crate::origin;
use crate::payload::Payload;
use crate::plan::StageIx;
use crate::record::{Finish, GroupRecord, Record, RecordKey, TaskRecord};

/// Members of one group, at most: firing it is one batch of the log, two operations for each.
pub const GROUP_MAX: usize = 480;

/// Bytes of a group's key, at most: the mark of each member holds it.
pub const KEY_MAX: usize = 1024;

/// A strategy that postpones for less than this would spin.
const SHORTEST_POSTPONEMENT: Duration = Duration::from_millis(1);

impl Core {
    /// Offers a message to its collector's strategy.
    pub(super) fn offer(&mut self, no: TaskNo) {
        let Some(task) = self.tasks.get(&no) else {
            return;
        };
        let stage = task.stage;
        let mut member = member_of(&task.record);
        let plan = self.plan.stage(stage).collector();
        let reads_payloads = plan.is_some_and(|plan| plan.strategy.reads_payloads());
        if let (None, Some(pointer)) = (&member.group, plan.and_then(|plan| plan.group_by.as_ref()))
        {
            let why = format!("it has no value of grouping field {pointer:?}; submit it anew");
            self.bury(no, why, Vec::new());
            return;
        }
        self.set_phase(no, Phase::Held);
        let Some(collector) = self.collectors[stage.0].as_mut() else {
            return;
        };
        match &mut collector.gathering {
            Gathering::Here(strategy) => {
                let outcome = strategy.offer(&member);
                self.judge(stage, Some(no), outcome);
            }
            Gathering::Hosted(_) => {
                self.unfile(no);
                if !reads_payloads {
                    member.payload = Payload::json("");
                }
                self.ask_host(no, Do::Offer(member));
            }
        }
    }

    /// What a strategy says of a message; `None`, if the collector does not hold that any more.
    pub(super) fn judge(&mut self, stage: StageIx, no: Option<TaskNo>, outcome: Outcome) {
        match (outcome, no) {
            (Outcome::Finished(groups), _) => {
                let fire = |group| self.fire(stage, group);
                let consumed: usize = groups.into_iter().map(fire).sum();
                // Where none of the groups took it, it waits in one that the strategy names now.
                let task = no.and_then(|no| self.tasks.get(&no));
                let is_left = |task: &&Task| task.phase == Phase::Held && task.key.is_none();
                if let Some(left) = task.filter(is_left).map(|task| task.no)
                    && consumed > 0
                {
                    self.offer(left);
                }
            }
            (_, None) => {}
            (Outcome::InProgress { key }, Some(no)) => match self.emitted_group(no, &key) {
                Some(emitted) => {
                    self.forget_late(no);
                    self.late(no, &emitted);
                }
                None => self.hold(no, stage, key.into()),
            },
            (Outcome::Postpone(delay), Some(no)) => {
                let until = self.now.mono.plus(delay.max(SHORTEST_POSTPONEMENT));
                self.set_phase(no, Phase::Delayed { until });
                self.timers.insert((until, Timer::Wake(no)));
            }
            (Outcome::Skip(why), Some(no)) => self.skip(no, why),
        }
    }

    /// The strategy is not to count on a message any more, which is removed from outside.
    pub(super) fn forget_member(&mut self, no: TaskNo) {
        let Some(task) = self.tasks.get(&no) else {
            return;
        };
        let is_held = task.phase == Phase::Held;
        let Some(collector) = self.collectors[task.stage.0].as_mut() else {
            return;
        };
        match &mut collector.gathering {
            Gathering::Here(strategy) => strategy.forget(&task.record.id),
            // What it decides meanwhile counts on it, or on another that comes under its id.
            Gathering::Hosted(_) if is_held => self.spoil_partition(no),
            Gathering::Hosted(_) => {}
        }
    }

    /// As [`Core::forget_member`], for one whose group has fired: nothing can count on it.
    fn forget_late(&mut self, no: TaskNo) {
        let Some(task) = self.tasks.get(&no) else {
            return;
        };
        let id = task.record.id.clone();
        let Some(collector) = self.collectors[task.stage.0].as_mut() else {
            return;
        };
        match &mut collector.gathering {
            Gathering::Here(strategy) => strategy.forget(&id),
            Gathering::Hosted(_) => self.ask_host(no, Do::Forget(id)),
        }
    }

    /// Files a held message under its group's key, whose time begins with its first message.
    fn hold(&mut self, no: TaskNo, stage: StageIx, key: Arc<str>) {
        let t_collect = self
            .plan
            .stage(stage)
            .collector()
            .and_then(|plan| plan.t_collect);
        self.unfile(no);
        let Some(collector) = self.collectors[stage.0].as_mut() else {
            return;
        };
        collector.held.entry(key.clone()).or_default().insert(no);
        let is_timed = collector.deadlines.contains_key(&key);
        if let Some(t_collect) = t_collect.filter(|_| !is_timed) {
            let due = self.group_due(stage, &key, t_collect);
            if let Some(collector) = self.collectors[stage.0].as_mut() {
                collector.deadlines.insert(key.clone(), due);
            }
            self.timers
                .insert((due, Timer::Overdue(stage, key.clone())));
        }
        if let Some(task) = self.tasks.get_mut(&no) {
            task.key = Some(key);
        }
    }

    /// Undoes [`Core::hold`]. A key that nobody waits under has no deadline.
    pub(super) fn unfile(&mut self, no: TaskNo) {
        let Some(task) = self.tasks.get_mut(&no) else {
            return;
        };
        let Some(key) = task.key.take() else { return };
        let Some(collector) = self.collectors[task.stage.0].as_mut() else {
            return;
        };
        let Some(held) = collector.held.get_mut(&key) else {
            return;
        };
        held.remove(&no);
        if held.is_empty() {
            collector.held.remove(&key);
            collector.deadlines.remove(&key);
            if collector.began.contains_key(&Part::from_text(&key)) {
                self.unrecorded.note_group(task.stage, key);
            }
        }
    }

    /// T_collect of a group has passed.
    pub(super) fn group_overdue(&mut self, stage: StageIx, key: &Arc<str>, due: crate::core::Time) {
        let Some(collector) = self.collectors[stage.0].as_mut() else {
            return;
        };
        if collector.deadlines.get(key) != Some(&due) {
            return;
        }
        collector.deadlines.remove(key);
        self.group_ends(stage, key);
        let Some(collector) = self.collectors[stage.0].as_mut() else {
            return;
        };
        match &mut collector.gathering {
            Gathering::Here(strategy) => {
                let overdue = strategy.overdue(key);
                self.judge_overdue(stage, overdue);
            }
            Gathering::Hosted(_) => {
                let any = collector.held.get(key).and_then(BTreeSet::first).copied();
                if let Some(no) = any {
                    self.ask_host(no, Do::Overdue(key.to_string()));
                }
            }
        }
    }

    /// What a strategy says of a group whose time is up.
    pub(super) fn judge_overdue(&mut self, stage: StageIx, overdue: Overdue) {
        match overdue {
            Overdue::Emit(group) => {
                self.fire(stage, group);
            }
            Overdue::Reject { members, why } => {
                for id in members {
                    if let Some(no) = self.held_at(stage, &id) {
                        self.bury(no, why.clone(), Vec::new());
                    }
                }
            }
            Overdue::Gone => {}
        }
    }

    /// The task, if the collector `stage` holds it.
    pub(super) fn held_at(&self, stage: StageIx, id: &TaskId) -> Option<TaskNo> {
        let task = self.tasks.get(self.by_id.get(id)?)?;
        (task.stage == stage && task.phase == Phase::Held).then_some(task.no)
    }

    /// A barrier: its members are consumed and one message goes on, in one append that only the
    /// first of its key can make. Returns how many messages have left the collector.
    fn fire(&mut self, stage: StageIx, group: Group) -> usize {
        let key = Part::from_text(&group.key);
        let named: BTreeSet<&TaskId> = group.members.iter().collect();
        let held: Vec<TaskNo> = named
            .iter()
            .filter_map(|id| self.held_at(stage, id))
            .collect();
        let Some(collector) = self.collectors[stage.0].as_mut() else {
            return 0;
        };
        if held.is_empty() {
            return 0;
        }
        if collector.fired.contains_key(&key) {
            for no in &held {
                self.late(*no, &group.key);
            }
            return held.len();
        }
        let wrong = if group.key.len() > KEY_MAX {
            let bytes = group.key.len();
            Some(format!(
                "has a key of {bytes} bytes; the limit is {KEY_MAX}"
            ))
        } else if held.len() < named.len() {
            Some(format!(
                "names {} messages that it does not hold",
                named.len() - held.len()
            ))
        } else if group.last < group.first {
            Some(format!(
                "ends with block {}, before its first, {}",
                group.last, group.first
            ))
        } else if held.len() > GROUP_MAX {
            let count = held.len();
            Some(format!(
                "has {count} members; the limit is {GROUP_MAX}: collect in two stages"
            ))
        } else {
            None
        };
        let fired = match wrong {
            None => self.fire_with(stage, &group, key.clone(), &held),
            Some(why) => Err(why),
        };
        if let Err(why) = fired {
            let mut shown = group.key;
            truncate(&mut shown, KEY_MAX);
            for no in &held {
                self.bury(*no, format!("group {shown:?} {why}"), Vec::new());
            }
            return held.len();
        }
        // What else waits under this key has come too late.
        let waiting = self.collectors[stage.0]
            .as_ref()
            .and_then(|c| c.held.get(&*group.key));
        let late: Vec<TaskNo> = waiting.into_iter().flatten().copied().collect();
        for no in &late {
            self.offer(*no);
        }
        held.len()
    }

    fn fire_with(
        &mut self,
        stage: StageIx,
        group: &Group,
        key: Part,
        held: &[TaskNo],
    ) -> Result<(), String> {
        let of = |no: &TaskNo| Some((*no, Arc::clone(&self.tasks.get(no)?.record)));
        let mut members: Vec<(TaskNo, Arc<TaskRecord>)> = held.iter().filter_map(of).collect();
        members.sort_by(|(_, a), (_, b)| {
            (a.id.block, &a.queue, &a.id.part).cmp(&(b.id.block, &b.queue, &b.id.part))
        });
        let stage_plan = self.plan.stage(stage);
        // The mark is remembered until no member of the group can come again.
        let last = members
            .iter()
            .map(|(_, task)| task.last)
            .max()
            .unwrap_or(0)
            .max(group.last);
        let record = GroupRecord {
            last,
            members: u32::try_from(members.len()).unwrap_or(u32::MAX),
        };
        let mut changes = vec![(
            RecordKey::Group(stage_plan.name.clone(), key.clone()),
            Change::put_new(Record::Group(record)),
        )];
        let message = Message {
            first: group.first,
            last: group.last,
            part: key.clone(),
            payload: Payload::Group {
                by_queue: stage_plan.inputs.len() > 1,
                members: members
                    .iter()
                    .map(|(_, task)| (task.queue.clone(), task.payload.clone()))
                    .collect(),
            },
            needs: None,
            grouping: Vec::new(),
        };
        for task in members.iter().filter_map(|(no, _)| self.tasks.get(no)) {
            let finish = Finish::Grouped {
                key: group.key.clone(),
            };
            let id = &task.record.id;
            changes.push((RecordKey::Task(id.clone()), Change::Delete));
            changes.push((RecordKey::Done(id.clone()), self.done(finish, task)));
        }
        let origins = origin::together(members.iter().map(|(_, task)| &task.origins));
        self.pass_on(stage, &message, &origins, &mut changes);
        if let Some(why) = excess(&changes) {
            return Err(format!("cannot go on: {why}"));
        }
        for (no, _) in &members {
            self.set_phase(*no, Phase::Finishing);
        }
        // Known from now on, so that a late member cannot fire it again while this is on its way.
        if let Some(collector) = self.collectors[stage.0].as_mut() {
            collector.note_fired(&key, last);
        }
        let ids = members.iter().map(|(_, task)| task.id.clone()).collect();
        self.append(changes, Then::Settled(ids));
        Ok(())
    }

    /// Consumes a task without effect.
    pub(super) fn skip(&mut self, no: TaskNo, mut why: String) {
        truncate(&mut why, REASON_MAX);
        let Some(task) = self.tasks.get(&no) else {
            return;
        };
        let id = task.record.id.clone();
        let done = self.done(Finish::Skipped { why }, task);
        self.set_phase(no, Phase::Finishing);
        let changes = vec![
            (RecordKey::Task(id.clone()), Change::Delete),
            (RecordKey::Done(id.clone()), done),
        ];
        self.append(changes, Then::Settled(vec![id]));
    }
}

pub(super) fn member_of(task: &TaskRecord) -> Member {
    Member {
        id: task.id.clone(),
        queue: task.queue.clone(),
        first: task.id.block,
        last: task.last,
        group: task.group.clone(),
        payload: task.payload.clone(),
    }
}
