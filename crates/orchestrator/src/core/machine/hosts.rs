//! Hosts: processes that evaluate collectors' strategies in the core's place, each for the
//! partitions that it keeps.
//!
//! What is held, and which barriers have fired, stays with the core. A partition that passes from
//! one host to another begins anew with every message that is held, in the order in which they
//! came, and verdicts about its earlier states count no more.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::collect::member_of;
use super::{Core, Phase, Routing, Timer};
use crate::collector::{
    Do, HostJoin, Judged, PARTITIONS, PartitionRef, Strategy, ToHost, Verdict, Verdicts, keeper,
    partition_of,
};
use crate::core::event::{Action, Time};
use crate::core::ready::TaskNo;
use crate::core::view::HostStatus;
use crate::id::WorkerId;
use crate::plan::StageIx;

/// A host that owes verdicts and gives none for so long loses its partitions; if it lives, it joins
/// again.
const PATIENCE: Duration = Duration::from_secs(3);

/// Who evaluates a collector's strategy.
pub(super) enum Gathering {
    /// The core.
    Here(Box<dyn Strategy>),
    /// Hosts, by partition.
    Hosted(Vec<Partition>),
}

/// A partition that a host keeps.
#[derive(Clone)]
pub(super) struct Partition {
    host: WorkerId,
    session: u64,
    epoch: u64,
    /// Verdicts that are owed in this epoch.
    owes: usize,
}

/// A host.
pub(super) struct Host {
    pub(super) session: u64,
    stages: BTreeSet<StageIx>,
    /// Things it was told in this session.
    told: u64,
    /// Times that it has said something.
    heard: u64,
    /// Verdicts that it owes.
    pub(super) owes: usize,
    /// When it last gave one, or began to owe some.
    since: Time,
    /// Whether its patience is being timed.
    timed: bool,
}

impl Core {
    pub(super) fn host_join(&mut self, join: HostJoin) {
        let known = self.hosts.get(&join.host);
        if known.is_some_and(|host| host.session == join.session) {
            return;
        }
        let host = Host {
            session: join.session,
            stages: join.stages,
            told: 0,
            heard: 0,
            owes: 0,
            since: self.now.mono,
            timed: false,
        };
        self.hosts.insert(join.host, host);
        self.assign_partitions();
    }

    pub(super) fn host_beat(&mut self, name: &WorkerId) {
        if !self.hosts.contains_key(name) {
            self.host_unknown(name);
        }
    }

    pub(super) fn host_leave(&mut self, name: &WorkerId) {
        if self.hosts.remove(name).is_some() {
            self.assign_partitions();
        }
    }

    fn host_unknown(&mut self, name: &WorkerId) {
        self.actions.push(Action::Host {
            host: name.clone(),
            message: ToHost::Unknown,
        });
    }

    /// It does not do what it should.
    fn host_failed(&mut self, name: &WorkerId) {
        self.host_leave(name);
        self.host_unknown(name);
    }

    pub(super) fn host_due(&mut self, name: WorkerId) {
        let Some(host) = self.hosts.get_mut(&name) else {
            return;
        };
        host.timed = host.owes > 0;
        if !host.timed {
            return;
        }
        let due = host.since.plus(PATIENCE);
        if due <= self.now.mono {
            self.host_failed(&name);
        } else {
            self.timers.insert((due, Timer::Host(name)));
        }
    }

    pub(super) fn verdicts(&mut self, said: Verdicts) {
        let now = self.now.mono;
        let Some(host) = self.hosts.get_mut(&said.host) else {
            self.host_unknown(&said.host);
            return;
        };
        if host.session != said.session || said.number <= host.heard {
            return;
        }
        if said.number > host.heard + 1 {
            self.host_failed(&said.host);
            return;
        }
        host.heard = said.number;
        host.since = now;
        for verdict in said.verdicts {
            self.verdict(&said.host, said.session, verdict);
        }
    }

    fn verdict(&mut self, name: &WorkerId, session: u64, verdict: Verdict) {
        let PartitionRef { stage, number } = verdict.at;
        let Some(partition) = self.partition_mut(stage, number) else {
            return;
        };
        if partition.host != *name
            || partition.session != session
            || partition.epoch != verdict.epoch
            || partition.owes == 0
        {
            return;
        }
        partition.owes -= 1;
        if let Some(host) = self.hosts.get_mut(name) {
            host.owes -= 1;
        }
        if self.spoiled.contains(&verdict.at) {
            return;
        }
        match verdict.what {
            Judged::Offered(id, outcome) => {
                let no = self.held_at(stage, &id);
                self.judge(stage, no, outcome);
            }
            Judged::Overdue(overdue) => self.judge_overdue(stage, overdue),
        }
    }

    fn partition_mut(&mut self, stage: StageIx, number: usize) -> Option<&mut Partition> {
        match &mut self.collectors.get_mut(stage.0)?.as_mut()?.gathering {
            Gathering::Hosted(partitions) => partitions.get_mut(number),
            Gathering::Here(_) => None,
        }
    }

    /// Which partition of its collector a message belongs to.
    fn partition_of(&self, no: TaskNo) -> Option<PartitionRef> {
        let task = self.tasks.get(&no)?;
        let stage = task.stage;
        let number = match self.options.routing {
            Routing::Affine => {
                let strategy = &self.plan.stage(stage).collector()?.strategy;
                let affinity = strategy.affinity(&member_of(&task.record));
                affinity.map_or(0, |affinity| partition_of(&affinity))
            }
            Routing::RoundRobin => no.0 as usize % self.hosts_of(stage).count().max(1),
        };
        Some(PartitionRef { stage, number })
    }

    /// Has the host that keeps a message's partition do something with it.
    pub(super) fn ask_host(&mut self, no: TaskNo, what: Do) {
        let Some(at) = self.partition_of(no) else {
            return;
        };
        let now = self.now.mono;
        let Some(partition) = self.partition_mut(at.stage, at.number) else {
            return;
        };
        let is_answered = !matches!(what, Do::Forget(_));
        partition.owes += usize::from(is_answered);
        let (name, epoch) = (partition.host.clone(), partition.epoch);
        self.tell_host(&name, at, epoch, what);
        if let Some(host) = self.hosts.get_mut(&name).filter(|_| is_answered) {
            host.owes += 1;
            if host.owes == 1 {
                host.since = now;
            }
            if !host.timed {
                host.timed = true;
                self.timers.insert((now.plus(PATIENCE), Timer::Host(name)));
            }
        }
    }

    fn tell_host(&mut self, name: &WorkerId, at: PartitionRef, epoch: u64, what: Do) {
        let Some(host) = self.hosts.get_mut(name) else {
            return;
        };
        host.told += 1;
        let message = ToHost::Do {
            session: host.session,
            number: host.told,
            at,
            epoch,
            what,
        };
        let host = name.clone();
        self.actions.push(Action::Host { host, message });
    }

    fn hosts_of(&self, stage: StageIx) -> impl Iterator<Item = &WorkerId> {
        let hosts = self.hosts.iter();
        hosts.filter_map(move |(name, host)| host.stages.contains(&stage).then_some(name))
    }

    fn keeper_of(&self, at: PartitionRef) -> Option<(WorkerId, u64)> {
        let mut hosts = self.hosts_of(at.stage);
        let name = match self.options.routing {
            Routing::Affine => keeper(&self.plan.stage(at.stage).name, at.number, hosts),
            Routing::RoundRobin => {
                let count = self.hosts_of(at.stage).count();
                hosts.nth(at.number.checked_rem(count)?)
            }
        }?;
        Some((Arc::clone(name), self.hosts[name].session))
    }

    /// Hosts have come or gone: partitions pass to those who are to keep them now.
    fn assign_partitions(&mut self) {
        for stage in (0..self.collectors.len()).map(StageIx) {
            let Some(collector) = &self.collectors[stage.0] else {
                continue;
            };
            let (is_hosted, is_to_be) = (
                matches!(collector.gathering, Gathering::Hosted(_)),
                self.hosts_of(stage).next().is_some(),
            );
            match (is_hosted, is_to_be) {
                (false, false) => {}
                (true, false) => self.take_back(stage),
                (false, true) => {
                    let nobody = Partition {
                        host: "".into(),
                        session: 0,
                        epoch: 0,
                        owes: 0,
                    };
                    if let Some(collector) = &mut self.collectors[stage.0] {
                        collector.gathering = Gathering::Hosted(vec![nobody; PARTITIONS]);
                    }
                    self.begin_partitions(stage, &(0..PARTITIONS).collect());
                }
                (true, true) => {
                    let moves = |number: &usize| self.moves(stage, *number);
                    let moving: BTreeSet<usize> = (0..PARTITIONS).filter(moves).collect();
                    self.begin_partitions(stage, &moving);
                }
            }
        }
    }

    fn moves(&self, stage: StageIx, number: usize) -> bool {
        let Some(Gathering::Hosted(partitions)) =
            self.collectors[stage.0].as_ref().map(|c| &c.gathering)
        else {
            return false;
        };
        let now = &partitions[number];
        self.keeper_of(PartitionRef { stage, number })
            .is_none_or(|(host, session)| host != now.host || session != now.session)
    }

    /// A message that a host counts on is removed from outside: once this event has been dealt with
    /// the partition is begun anew, and no verdict counts before.
    pub(super) fn spoil_partition(&mut self, no: TaskNo) {
        self.spoiled.extend(self.partition_of(no));
    }

    pub(super) fn mend_partitions(&mut self) {
        let mut numbers: BTreeMap<StageIx, BTreeSet<usize>> = BTreeMap::new();
        for at in std::mem::take(&mut self.spoiled) {
            numbers.entry(at.stage).or_default().insert(at.number);
        }
        for (stage, numbers) in numbers {
            self.begin_partitions(stage, &numbers);
        }
    }

    /// Begins these partitions anew, with those who are to keep them.
    fn begin_partitions(&mut self, stage: StageIx, numbers: &BTreeSet<usize>) {
        for number in numbers {
            let at = PartitionRef {
                stage,
                number: *number,
            };
            let Some((host, session)) = self.keeper_of(at) else {
                continue;
            };
            self.next_epoch += 1;
            let new = Partition {
                host: host.clone(),
                session,
                epoch: self.next_epoch,
                owes: 0,
            };
            let Some(partition) = self.partition_mut(stage, *number) else {
                continue;
            };
            let old = std::mem::replace(partition, new);
            let before = self.hosts.get_mut(&old.host);
            if let Some(before) = before.filter(|host| host.session == old.session) {
                before.owes -= old.owes;
                if old.host != host {
                    self.tell_host(&old.host, at, old.epoch, Do::End);
                }
            }
            self.tell_host(&host, at, self.next_epoch, Do::Begin);
        }
        let is_in = |no: &TaskNo| {
            let at = self.partition_of(*no);
            at.is_some_and(|at| numbers.contains(&at.number))
        };
        let mut held = self.held_by(stage);
        held.retain(is_in);
        self.offer_anew(held);
    }

    /// No host keeps partitions of the collector any more: the core does.
    fn take_back(&mut self, stage: StageIx) {
        let Some(plan) = self.plan.stage(stage).collector() else {
            return;
        };
        let strategy = plan.strategy.build();
        if let Some(collector) = &mut self.collectors[stage.0] {
            collector.gathering = Gathering::Here(strategy);
        }
        self.offer_anew(self.held_by(stage));
    }

    /// Messages that a collector holds, in the order in which they came.
    fn held_by(&self, stage: StageIx) -> Vec<TaskNo> {
        let held = |task: &&super::Task| task.stage == stage && task.phase == Phase::Held;
        let mut held: Vec<TaskNo> = self.tasks.values().filter(held).map(|t| t.no).collect();
        held.sort_unstable();
        held
    }

    fn offer_anew(&mut self, held: Vec<TaskNo>) {
        for no in &held {
            self.unfile(*no);
        }
        for no in held {
            // A group of the others may have taken it meanwhile.
            if self.tasks.get(&no).is_some_and(|t| t.phase == Phase::Held) {
                self.offer(no);
            }
        }
    }

    pub(super) fn hosts_status(&self) -> Vec<HostStatus> {
        let kept = self.collectors.iter().flatten();
        let kept = kept.flat_map(|collector| match &collector.gathering {
            Gathering::Hosted(partitions) => partitions.as_slice(),
            Gathering::Here(_) => &[],
        });
        let keepers: Vec<&WorkerId> = kept.map(|partition| &partition.host).collect();
        let hosts = self.hosts.iter();
        hosts
            .map(|(name, host)| HostStatus {
                host: name.clone(),
                partitions: keepers.iter().filter(|keeper| **keeper == name).count(),
                owes: host.owes,
            })
            .collect()
    }
}
