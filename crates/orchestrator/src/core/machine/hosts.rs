//! Hosts that evaluate collectors' strategies: the requests to them, and the handling of their verdicts.

use std::collections::BTreeSet;

use super::Core;
use super::collect::member_of;
use crate::collector::{PartitionRef, partition_of};
use crate::conversation::{Decision, HostCommand, HostJoin, HostRequest, Verdict, Verdicts};
use crate::core::event::Action;
use crate::core::hosts::{Assignment, HostMessage, MessageOrder, VerdictTimeout};
use crate::core::options::Routing;
use crate::core::tasks::{Phase, TaskNo};
use crate::core::timers::Timer;
use crate::id::WorkerId;
use crate::plan::StageIx;

impl Core {
    pub(super) fn host_join(&mut self, join: HostJoin) {
        if self.hosts.join(join, self.now.mono) {
            self.assign_partitions();
        }
    }

    pub(super) fn host_heartbeat(&mut self, name: &WorkerId) {
        if !self.hosts.knows(name) {
            self.host_unknown(name);
        }
    }

    pub(super) fn host_leave(&mut self, name: &WorkerId) {
        if self.hosts.leave(name) {
            self.assign_partitions();
        }
    }

    fn host_unknown(&mut self, name: &WorkerId) {
        self.tell_host((name.clone(), HostCommand::Unknown));
    }

    fn tell_host(&mut self, (host, command): HostMessage) {
        self.actions.push(Action::Host { host, command });
    }

    /// Removes a host that misbehaves, and makes it join again.
    fn host_failed(&mut self, name: &WorkerId) {
        self.host_leave(name);
        self.host_unknown(name);
    }

    pub(super) fn host_due(&mut self, name: WorkerId) {
        match self.hosts.check_timeout(&name, self.now.mono) {
            VerdictTimeout::NonePending => {}
            VerdictTimeout::Expired => self.host_failed(&name),
            VerdictTimeout::Until(due) => self.timers.set(due, Timer::Host(name)),
        }
    }

    pub(super) fn verdicts(&mut self, said: Verdicts) {
        match self.hosts.check_order(&said, self.now.mono) {
            MessageOrder::Old => {}
            MessageOrder::Unknown => self.host_unknown(&said.host),
            MessageOrder::Gap => self.host_failed(&said.host),
            MessageOrder::Next => {
                for verdict in said.verdicts {
                    self.verdict(&said.host, said.session, verdict);
                }
            }
        }
    }

    fn verdict(&mut self, name: &WorkerId, session: u64, verdict: Verdict) {
        if !self.hosts.take_verdict(name, session, &verdict) {
            return;
        }
        let stage = verdict.partition.stage;
        match verdict.decision {
            Decision::Offered(id, outcome) => {
                let no = self.held_at(stage, &id);
                self.judge(stage, no, outcome);
            }
            Decision::Overdue(overdue) => self.judge_overdue(stage, overdue),
        }
    }

    /// Partition of its collector that a message belongs to.
    fn partition_of(&self, no: TaskNo) -> Option<PartitionRef> {
        let task = self.tasks.get(no)?;
        let stage = task.stage();
        let number = match self.options.routing {
            Routing::Affine => {
                let strategy = &self.plan.stage(stage).collector()?.strategy;
                let affinity = strategy.affinity(&member_of(task.record()));
                affinity.map_or(0, |affinity| partition_of(&affinity))
            }
            Routing::RoundRobin => no.modulo(self.hosts.count(stage).max(1)),
        };
        Some(PartitionRef { stage, number })
    }

    /// Sends a request about a message to the host that keeps its partition.
    pub(super) fn ask_host(&mut self, no: TaskNo, request: HostRequest) {
        let Some(at) = self.partition_of(no) else {
            return;
        };
        let asked = self.hosts.ask(at, request, self.now.mono);
        if let Some(message) = asked.message {
            self.tell_host(message);
        }
        if let Some((due, name)) = asked.timer {
            self.timers.set(due, Timer::Host(name));
        }
    }

    /// Reassigns partitions after hosts have come or gone.
    fn assign_partitions(&mut self) {
        for stage in (0..self.layout.stages()).map(StageIx) {
            match self.hosts.reassign(stage) {
                Assignment::Here => {}
                Assignment::TakenBack => self.take_back(stage),
                Assignment::Moved(numbers) => self.begin_partitions(stage, &numbers),
            }
        }
    }

    /// Marks a message's partition because a message that a host counts on is removed from outside. At the
    /// end of the event the partition is begun anew; no verdict counts before that.
    pub(super) fn invalidate_partition(&mut self, no: TaskNo) {
        if let Some(at) = self.partition_of(no) {
            self.hosts.invalidate(at);
        }
    }

    pub(super) fn rebuild_partitions(&mut self) {
        for (stage, numbers) in self.hosts.take_partitions_to_rebuild() {
            self.begin_partitions(stage, &numbers);
        }
    }

    /// Begins these partitions anew, at their present hosts.
    fn begin_partitions(&mut self, stage: StageIx, numbers: &BTreeSet<usize>) {
        for message in self.hosts.begin(stage, numbers) {
            self.tell_host(message);
        }
        let is_in = |no: &TaskNo| {
            let at = self.partition_of(*no);
            at.is_some_and(|at| numbers.contains(&at.number))
        };
        let mut held = self.held_by(stage);
        held.retain(is_in);
        self.offer_anew(held);
    }

    /// Takes a collector's strategy back into the core, after its last host has gone.
    fn take_back(&mut self, stage: StageIx) {
        let Some(plan) = self.plan.stage(stage).collector() else {
            return;
        };
        self.hosts.take_back(stage, plan.strategy.build());
        self.offer_anew(self.held_by(stage));
    }

    /// Messages that a collector holds, in the order of acceptance.
    fn held_by(&self, stage: StageIx) -> Vec<TaskNo> {
        self.tasks
            .select(|task| task.stage() == stage && task.phase() == Phase::Held)
    }

    fn offer_anew(&mut self, held: Vec<TaskNo>) {
        for no in &held {
            if let Some(task) = self.tasks.get(*no) {
                self.collectors.unfile(task.stage(), *no);
            }
        }
        for no in held {
            let task = self.tasks.get(no);
            // A group fired in this loop may have taken the message.
            if task.is_some_and(|task| task.phase() == Phase::Held) {
                self.offer(no);
            }
        }
    }
}
