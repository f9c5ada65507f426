//! Collector stages: messages go to the strategy, finished groups go on.

use std::time::Duration;

use proofmill_bus::Expect;

use super::ready::TaskNo;
use super::state::{Change, Core, Phase, Then, Timer};
use crate::collector::{Group, Member, Outcome, Overdue};
use crate::id::{Part, TaskId};
use crate::message::Message;
use crate::payload::Payload;
use crate::plan::StageIx;
use crate::record::{Finish, GroupRecord, Record, RecordKey, TaskRecord};

/// Members of one group, at most: firing it is one batch of the log, two operations for each.
pub const GROUP_MAX: usize = 480;

/// A strategy that postpones for less than this would spin.
const SHORTEST_POSTPONEMENT: Duration = Duration::from_millis(1);

impl Core {
    /// Offers a message to its collector's strategy.
    pub(super) fn offer(&mut self, no: TaskNo) {
        let Some(task) = self.tasks.get(&no) else { return };
        let stage = task.stage;
        let member = member_of(&task.record);
        let Some(collector) = self.collectors[stage.0].as_mut() else { return };
        match collector.strategy.offer(&member) {
            Outcome::InProgress { key } => {
                if collector.fired.contains_key(&Part::from_text(&key)) {
                    collector.strategy.forget(&member.id);
                    self.skip(no, format!("group {key:?} was already emitted"));
                    return;
                }
                self.set_phase(no, Phase::Held);
                self.set_deadline(stage, key);
            }
            Outcome::Finished(groups) => {
                self.set_phase(no, Phase::Held);
                for group in groups {
                    self.fire(stage, group);
                }
            }
            Outcome::Postpone(delay) => {
                let until = self.now.mono.plus(delay.max(SHORTEST_POSTPONEMENT));
                self.set_phase(no, Phase::Delayed { until });
                self.timers.insert((until, Timer::Wake(no)));
            }
            Outcome::Skip(why) => self.skip(no, why),
        }
    }

    fn set_deadline(&mut self, stage: StageIx, key: String) {
        let Some(t_collect) = self.plan.stage(stage).collector().and_then(|plan| plan.t_collect)
        else {
            return;
        };
        let due = self.now.mono.plus(t_collect);
        let Some(collector) = self.collectors[stage.0].as_mut() else { return };
        if collector.deadlines.contains_key(&key) {
            return;
        }
        collector.deadlines.insert(key.clone(), due);
        self.timers.insert((due, Timer::Overdue(stage, key)));
    }

    /// T_collect of a group has passed.
    pub(super) fn group_overdue(&mut self, stage: StageIx, key: &str, due: super::Time) {
        let Some(collector) = self.collectors[stage.0].as_mut() else { return };
        if collector.deadlines.get(key) != Some(&due) {
            return;
        }
        collector.deadlines.remove(key);
        match collector.strategy.overdue(key) {
            Overdue::Emit(group) => self.fire(stage, group),
            Overdue::Reject { members, why } => {
                for id in members {
                    if let Some(&no) = self.by_id.get(&id) {
                        self.bury(no, why.clone(), Vec::new());
                    }
                }
            }
            Overdue::Gone => {}
        }
    }

    /// A barrier: its members are consumed and one message goes on, in one append that only the
    /// first of its key can make.
    fn fire(&mut self, stage: StageIx, group: Group) {
        let key = Part::from_text(&group.key);
        let Some(collector) = self.collectors[stage.0].as_mut() else { return };
        collector.deadlines.remove(&group.key);
        let mut members: Vec<(TaskNo, std::sync::Arc<TaskRecord>)> = Vec::new();
        for id in &group.members {
            let task = self.by_id.get(id).and_then(|no| self.tasks.get(no));
            if let Some(task) = task.filter(|task| task.phase == Phase::Held) {
                members.push((task.no, task.record.clone()));
            }
        }
        if collector.fired.contains_key(&key) {
            for (no, _) in members {
                self.skip(no, format!("group {:?} was already emitted", group.key));
            }
            return;
        }
        if members.len() > GROUP_MAX {
            for (no, _) in &members {
                let reason = format!(
                    "group {:?} has {} members; a group can have {GROUP_MAX}: collect in two stages",
                    group.key,
                    members.len()
                );
                self.bury(*no, reason, Vec::new());
            }
            return;
        }
        // Known from now on, so that a late member cannot fire it again while this is on its way.
        collector.fired.insert(key.clone(), group.last);
        members.sort_by(|(_, a), (_, b)| {
            (a.id.block, &a.queue, &a.id.part).cmp(&(b.id.block, &b.queue, &b.id.part))
        });
        let stage_plan = self.plan.stage(stage);
        let record = GroupRecord {
            last: group.last,
            members: u32::try_from(members.len()).unwrap_or(u32::MAX),
        };
        let mut changes = vec![(
            RecordKey::Group(stage_plan.name.clone(), key.clone()),
            Change::Put { record: Record::Group(record), expect: Expect::Absent },
        )];
        let message = Message {
            first: group.first,
            last: group.last,
            part: key,
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
        let mut ids: Vec<TaskId> = Vec::with_capacity(members.len());
        for (no, task) in &members {
            self.set_phase(*no, Phase::Finishing);
            let id = task.id.clone();
            changes.push((RecordKey::Task(id.clone()), Change::Delete));
            let finish = Finish::Grouped { key: group.key.clone() };
            changes.push((RecordKey::Done(id.clone()), self.done(finish)));
            ids.push(id);
        }
        self.pass_on(stage, &message, &mut changes);
        changes.extend(self.outdated(stage));
        self.append(changes, Then::Settled(ids));
    }

    /// Consumes a task without effect.
    pub(super) fn skip(&mut self, no: TaskNo, why: String) {
        let Some(task) = self.tasks.get(&no) else { return };
        let id = task.record.id.clone();
        self.set_phase(no, Phase::Finishing);
        let changes = vec![
            (RecordKey::Task(id.clone()), Change::Delete),
            (RecordKey::Done(id.clone()), self.done(Finish::Skipped { why })),
        ];
        self.append(changes, Then::Settled(vec![id]));
    }
}

fn member_of(task: &TaskRecord) -> Member {
    Member {
        id: task.id.clone(),
        queue: task.queue.clone(),
        first: task.id.block,
        last: task.last,
        group: task.group.clone(),
        payload: task.payload.clone(),
    }
}
