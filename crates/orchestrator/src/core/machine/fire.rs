//! Barriers: a finished group leaves its collector as one message.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{Core, OnAccepted};
use crate::core::change::Change;
use crate::core::event::Settled;
use crate::core::limits::{excess, truncate};
use crate::core::tasks::{Phase, TaskNo};
use crate::grouping::Group;
use crate::id::{Part, TaskId};
use crate::message::Message;
use crate::origin;
use crate::payload::Payload;
use crate::plan::StageIx;
use crate::record::{EndKind, GroupRecord, Record, RecordKey, TaskRecord};

/// Maximum number of members of a group. Firing it is one batch of the log, with two operations for each
/// member.
pub const GROUP_MAX: usize = 480;

/// Maximum length of a group's key, bytes; the mark of each member holds the key.
pub const KEY_MAX: usize = 1024;

impl Core {
    /// Fires a barrier: consumes the members and passes one message on, in one append that succeeds only for
    /// the first of its key. Returns the number of messages that have left the collector.
    pub(super) fn fire(&mut self, stage: StageIx, group: Group) -> usize {
        let key = Part::from_text(&group.key);
        let named: BTreeSet<&TaskId> = group.members.iter().collect();
        let held = named.iter().filter_map(|id| self.held_at(stage, id));
        let held: Vec<TaskNo> = held.collect();
        if !self.collectors.has(stage) || held.is_empty() {
            return 0;
        }
        if self.collectors.is_fired(stage, &key) {
            for no in &held {
                self.late(*no, &group.key);
            }
            return held.len();
        }
        let fired = match fault_of(&group, named.len(), held.len()) {
            None => self.fire_with(stage, &group, &key, &held),
            Some(why) => Err(why),
        };
        if let Err(why) = fired {
            let mut shown = group.key;
            truncate(&mut shown, KEY_MAX);
            for no in &held {
                self.dead_letter_task(*no, format!("group {shown:?} {why}"), Vec::new());
            }
            return held.len();
        }
        // Other messages under this key have come too late.
        let late: Vec<TaskNo> = self.collectors.filed(stage, &group.key).collect();
        for no in &late {
            self.offer(*no);
        }
        held.len()
    }

    fn fire_with(
        &mut self,
        stage: StageIx,
        group: &Group,
        key: &Part,
        held: &[TaskNo],
    ) -> Result<(), String> {
        let of = |no: &TaskNo| Some((*no, Arc::clone(self.tasks.get(*no)?.record())));
        let mut members: Vec<(TaskNo, Arc<TaskRecord>)> = held.iter().filter_map(of).collect();
        members.sort_by(|(_, a), (_, b)| {
            (a.id.block, &a.queue, &a.id.part).cmp(&(b.id.block, &b.queue, &b.id.part))
        });
        let stage_plan = self.plan.stage(stage);
        // The mark is kept until no member of the group can come again.
        let lasts = members.iter().map(|(_, task)| task.last);
        let last = lasts.max().unwrap_or(0).max(group.last);
        let record = GroupRecord {
            last,
            members: u32::try_from(members.len()).unwrap_or(u32::MAX),
        };
        let mut changes = vec![(
            RecordKey::Group(stage_plan.name.clone(), key.clone()),
            Change::put_new(Record::Group(record)),
        )];
        let payloads = members
            .iter()
            .map(|(_, task)| (task.queue.clone(), task.payload.clone()));
        let message = Message {
            first: group.first,
            last: group.last,
            part: key.clone(),
            payload: Payload::Group {
                by_queue: stage_plan.inputs.len() > 1,
                members: payloads.collect(),
            },
            needs: None,
            grouping: Vec::new(),
        };
        for task in members.iter().filter_map(|(no, _)| self.tasks.get(*no)) {
            let end = EndKind::Grouped {
                key: group.key.clone(),
            };
            let id = task.id();
            changes.push((RecordKey::Task(id.clone()), Change::Delete));
            changes.push((RecordKey::Done(id.clone()), self.done(end, task)));
        }
        let origins = origin::together(members.iter().map(|(_, task)| &task.origins));
        let Some((_, first)) = members.first() else {
            return Ok(());
        };
        let trace = first.trace.after(&first.id);
        self.pass_on(stage, &message, (&origins, &trace), &mut changes);
        if let Some(why) = excess(&changes) {
            return Err(format!("cannot go on: {why}"));
        }
        self.trace_barrier(stage, &group.key, &members);
        for (no, _) in &members {
            self.set_phase(*no, Phase::Finishing);
        }
        // Noted at once, so that a late member cannot fire the group again while the append is pending.
        self.collectors.note_fired(stage, key, last);
        let settled = members.iter();
        let settled = settled.map(|(_, task)| Settled::without_result(task));
        let settled = OnAccepted::Settled(settled.collect());
        self.append(changes, settled);
        Ok(())
    }
}

/// Reason for which a group with `named` different members, of which its collector holds `held`, cannot be
/// fired; `None` if it can.
fn fault_of(group: &Group, named: usize, held: usize) -> Option<String> {
    if group.key.len() > KEY_MAX {
        let bytes = group.key.len();
        Some(format!(
            "has a key of {bytes} bytes; the limit is {KEY_MAX}"
        ))
    } else if held < named {
        Some(format!(
            "names {} messages that it does not hold",
            named - held
        ))
    } else if group.last < group.first {
        Some(format!(
            "ends with block {}, before its first, {}",
            group.last, group.first
        ))
    } else if held > GROUP_MAX {
        Some(format!(
            "has {held} members; the limit is {GROUP_MAX}: collect in two stages"
        ))
    } else {
        None
    }
}
