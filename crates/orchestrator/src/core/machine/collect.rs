//! Collector stages: the strategy assigns each message to a group.

use std::sync::Arc;
use std::time::Duration;

use super::{Core, OnAccepted};
use crate::conversation::HostRequest;
use crate::core::change::Change;
use crate::core::event::{Settled, Time};
use crate::core::limits::{REASON_MAX, truncate};
use crate::core::tasks::{Phase, TaskNo};
use crate::core::timers::Timer;
use crate::grouping::{Member, OfferDecision, OverdueDecision};
use crate::id::{Part, TaskId};
use crate::payload::Payload;
use crate::plan::StageIx;
use crate::record::{EndKind, RecordKey, TaskRecord};

/// Minimum delay of a postponement; a shorter one would busy-loop.
const SHORTEST_POSTPONEMENT: Duration = Duration::from_millis(1);

impl Core {
    /// Offers a message to its collector's strategy.
    pub(super) fn offer(&mut self, no: TaskNo) {
        let Some(task) = self.tasks.get(no) else {
            return;
        };
        let stage = task.stage();
        let mut member = member_of(task.record());
        let plan = self.plan.stage(stage).collector();
        let reads_payloads = plan.is_some_and(|plan| plan.strategy.reads_payloads());
        if let (None, Some(pointer)) = (&member.group, plan.and_then(|plan| plan.group_by.as_ref()))
        {
            let why = format!("it has no value of grouping field {pointer:?}; submit it anew");
            self.dead_letter_task(no, why, Vec::new());
            return;
        }
        self.set_phase(no, Phase::Held);
        if let Some(strategy) = self.hosts.strategy(stage) {
            let outcome = strategy.offer(&member);
            self.judge(stage, Some(no), outcome);
        } else if self.hosts.has(stage) {
            self.collectors.unfile(stage, no);
            if !reads_payloads {
                member.payload = Payload::json("");
            }
            self.ask_host(no, HostRequest::Offer(member));
        }
    }

    /// Carries out a strategy's decision about a message; `no` is `None` if the collector no longer holds it.
    pub(super) fn judge(&mut self, stage: StageIx, no: Option<TaskNo>, outcome: OfferDecision) {
        match (outcome, no) {
            (OfferDecision::Finished(groups), _) => {
                let fire = |group| self.fire(stage, group);
                let consumed: usize = groups.into_iter().map(fire).sum();
                // A message that none of the groups contains is offered again, to learn its group's key.
                let left = no.filter(|no| self.is_left(stage, *no));
                if let Some(left) = left
                    && consumed > 0
                {
                    self.offer(left);
                }
            }
            (_, None) => {}
            (OfferDecision::InProgress { key }, Some(no)) => match self.emitted_group(no, &key) {
                Some(emitted) => {
                    self.forget_late(no);
                    self.late(no, &emitted);
                }
                None => self.hold(no, stage, &key.into()),
            },
            (OfferDecision::Postpone(delay), Some(no)) => {
                let until = self.now.mono.plus(delay.max(SHORTEST_POSTPONEMENT));
                self.set_phase(no, Phase::Delayed { until });
                self.timers.set(until, Timer::Wake(no));
            }
            (OfferDecision::Skip(why), Some(no)) => self.skip(no, why),
        }
    }

    /// Whether a collector holds a message that is filed under no key.
    fn is_left(&self, stage: StageIx, no: TaskNo) -> bool {
        let task = self.tasks.get(no);
        task.is_some_and(|task| task.phase() == Phase::Held)
            && self.collectors.key_of(stage, no).is_none()
    }

    /// Makes the strategy forget a message that is removed from outside.
    pub(super) fn forget_member(&mut self, no: TaskNo) {
        let Some(task) = self.tasks.get(no) else {
            return;
        };
        let (stage, is_held) = (task.stage(), task.phase() == Phase::Held);
        if let Some(strategy) = self.hosts.strategy(stage) {
            strategy.forget(task.id());
        } else if is_held && self.hosts.has(stage) {
            // A verdict under way may count on this message, or mistake a later one with the same id for it.
            self.invalidate_partition(no);
        }
    }

    /// Makes the strategy forget a message whose group has fired, so that no verdict can count on it.
    fn forget_late(&mut self, no: TaskNo) {
        let Some(task) = self.tasks.get(no) else {
            return;
        };
        let (stage, id) = (task.stage(), task.id().clone());
        if let Some(strategy) = self.hosts.strategy(stage) {
            strategy.forget(&id);
        } else if self.hosts.has(stage) {
            self.ask_host(no, HostRequest::Forget(id));
        }
    }

    /// Files a held message under its group's key. The group's time begins with its first message.
    fn hold(&mut self, no: TaskNo, stage: StageIx, key: &Arc<str>) {
        let plan = self.plan.stage(stage).collector();
        let t_collect = plan.and_then(|plan| plan.t_collect);
        self.collectors.unfile(stage, no);
        self.collectors.file(stage, no, key);
        let Some(t_collect) = t_collect else {
            return;
        };
        let due = self.collectors.begin_time(stage, key, t_collect, self.now);
        if let Some(due) = due {
            self.timers.set(due, Timer::Overdue(stage, key.clone()));
        }
    }

    /// Handles the end of T_collect of a group.
    pub(super) fn group_overdue(&mut self, stage: StageIx, key: &Arc<str>, due: Time) {
        if !self.collectors.is_up(stage, key, due) {
            return;
        }
        self.group_ends(stage, key);
        if let Some(strategy) = self.hosts.strategy(stage) {
            let overdue = strategy.overdue(key);
            self.judge_overdue(stage, overdue);
            return;
        }
        let first = self.collectors.filed(stage, key).next();
        if let Some(no) = first {
            self.ask_host(no, HostRequest::Overdue(key.to_string()));
        }
    }

    /// Ends a group's time. The time of later messages under its key begins anew.
    fn group_ends(&mut self, stage: StageIx, key: &Arc<str>) {
        let part = Part::from_text(key);
        if self.collectors.end_group(stage, &part) {
            let key = RecordKey::GroupStart(self.layout.name(stage).clone(), part);
            self.append(vec![(key, Change::Delete)], OnAccepted::Nothing);
        }
    }

    /// Carries out a strategy's decision about an overdue group.
    pub(super) fn judge_overdue(&mut self, stage: StageIx, overdue: OverdueDecision) {
        match overdue {
            OverdueDecision::Emit(group) => {
                self.fire(stage, group);
            }
            OverdueDecision::Reject { members, why } => {
                for id in members {
                    if let Some(no) = self.held_at(stage, &id) {
                        self.dead_letter_task(no, why.clone(), Vec::new());
                    }
                }
            }
            OverdueDecision::Gone => {}
        }
    }

    /// The task, if the collector of `stage` holds it.
    pub(super) fn held_at(&self, stage: StageIx, id: &TaskId) -> Option<TaskNo> {
        let task = self.tasks.with_id(id)?;
        (task.stage() == stage && task.phase() == Phase::Held).then_some(task.no())
    }

    /// Consumes a task without effect.
    pub(super) fn skip(&mut self, no: TaskNo, mut why: String) {
        truncate(&mut why, REASON_MAX);
        let Some(task) = self.tasks.get(no) else {
            return;
        };
        let id = task.id().clone();
        let settled = Settled::without_result(task.record());
        let done = self.done(EndKind::Skipped { why }, task);
        self.set_phase(no, Phase::Finishing);
        let changes = vec![
            (RecordKey::Task(id.clone()), Change::Delete),
            (RecordKey::Done(id), done),
        ];
        self.append(changes, OnAccepted::Settled(vec![settled]));
    }
}

pub(super) fn member_of(task: &TaskRecord) -> Member {
    Member {
        payload: task.payload.clone(),
        ..member_without_payload(task)
    }
}

pub(super) fn member_without_payload(task: &TaskRecord) -> Member {
    Member {
        id: task.id.clone(),
        queue: task.queue.clone(),
        first: task.id.block,
        last: task.last,
        group: task.group.clone(),
        payload: Payload::json(""),
    }
}
