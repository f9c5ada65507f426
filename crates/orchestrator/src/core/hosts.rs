//! Who evaluates the strategies of collectors: the core itself, or hosts, processes that do so in its place,
//! each for the partitions that it keeps.
//!
//! What is held, and which barriers have fired, is with [`super::collectors`]. A partition that passes from
//! one host to another begins anew, in another epoch, and verdicts about its earlier states count no more.
//! What hosts are to be told is returned, to be sent in that order.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::event::Time;
use super::options::Routing;
use super::view::HostStatus;
use crate::collector::{PARTITIONS, PartitionRef, Strategy, keeper};
use crate::conversation::{Do, HostCommand, HostJoin, Verdict, Verdicts};
use crate::id::WorkerId;
use crate::plan::StageIx;

/// A host that owes verdicts and gives none for so long loses its partitions; if it lives, it joins
/// again.
const PATIENCE: Duration = Duration::from_secs(3);

/// The hosts, and who evaluates the strategy of each collector.
pub(super) struct Hosts {
    routing: Routing,
    /// The stages' names: partitions are kept by them.
    names: Vec<Arc<str>>,
    hosts: BTreeMap<WorkerId, Host>,
    /// By stage; stages of other kinds have none.
    gathering: Vec<Option<Gathering>>,
    next_epoch: u64,
    /// Partitions that are to be begun anew.
    spoiled: BTreeSet<PartitionRef>,
}

/// Who evaluates a collector's strategy.
enum Gathering {
    /// The core.
    Here(Box<dyn Strategy>),
    /// Hosts, by partition.
    Hosted(Vec<Partition>),
}

/// A partition that a host keeps.
#[derive(Clone)]
struct Partition {
    host: WorkerId,
    session: u64,
    epoch: u64,
    /// Verdicts that are owed in this epoch.
    owes: usize,
}

/// A host.
struct Host {
    session: u64,
    stages: BTreeSet<StageIx>,
    /// Things it was told in this session.
    told: u64,
    /// Times that it has said something.
    heard: u64,
    /// Verdicts that it owes.
    owes: usize,
    /// When it last gave one, or began to owe some.
    since: Time,
    /// Whether its patience is being timed.
    timed: bool,
}

/// A message to a host.
pub(super) type HostMessage = (WorkerId, HostCommand);

/// What follows from asking a host for something.
#[derive(Default)]
pub(super) struct Outgoing {
    /// The message.
    pub message: Option<HostMessage>,
    /// When its patience is to be looked at, if that is not timed already.
    pub timer: Option<(Time, WorkerId)>,
}

/// What becomes of the partitions of a collector when hosts have come or gone.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Assignment {
    /// The core evaluates its strategy, as before.
    Here,
    /// The core is to, and hosts did before.
    TakenBack,
    /// These pass to other hosts, and are to be begun there.
    Moved(BTreeSet<usize>),
}

/// What there is to say of the verdicts that a host has sent.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Hearing {
    /// They count.
    Next,
    /// They were heard before, or are of an earlier session.
    Old,
    /// The host is not known.
    Unknown,
    /// Others before them are missing: it does not do what it should.
    Gap,
}

/// What there is to do when the patience with a host has been timed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Patience {
    /// It owes nothing.
    Ended,
    /// It has given verdicts since: look again at this time.
    Until(Time),
    /// It has owed some for too long.
    Exhausted,
}

// === impl Hosts ===

impl Hosts {
    /// No hosts: the core evaluates the strategies, by stage. Stages that are no collectors have none.
    pub(super) fn new(
        routing: Routing,
        stages: impl Iterator<Item = (Arc<str>, Option<Box<dyn Strategy>>)>,
    ) -> Self {
        let here = |strategy: Option<_>| strategy.map(Gathering::Here);
        let stages = stages.map(|(name, strategy)| (name, here(strategy)));
        let (names, gathering) = stages.unzip();
        Self {
            routing,
            names,
            hosts: BTreeMap::new(),
            gathering,
            next_epoch: 0,
            spoiled: BTreeSet::new(),
        }
    }

    // Hosts.

    /// A host offers itself. Returns whether that is news: then partitions are to be assigned.
    pub(super) fn join(&mut self, join: HostJoin, now: Time) -> bool {
        let known = self.hosts.get(&join.host);
        if known.is_some_and(|host| host.session == join.session) {
            return false;
        }
        let host = Host {
            session: join.session,
            stages: join.stages,
            told: 0,
            heard: 0,
            owes: 0,
            since: now,
            timed: false,
        };
        self.hosts.insert(join.host, host);
        true
    }

    /// A host is gone. Returns whether it was known: then partitions are to be assigned.
    pub(super) fn leave(&mut self, name: &WorkerId) -> bool {
        self.hosts.remove(name).is_some()
    }

    pub(super) fn knows(&self, name: &WorkerId) -> bool {
        self.hosts.contains_key(name)
    }

    /// The hosts, and the session of each.
    pub(super) fn sessions(&self) -> BTreeMap<WorkerId, u64> {
        let hosts = self.hosts.iter();
        hosts
            .map(|(name, host)| (name.clone(), host.session))
            .collect()
    }

    /// Number of hosts that keep partitions of a collector.
    pub(super) fn count(&self, stage: StageIx) -> usize {
        self.of(stage).count()
    }

    /// Whether no host owes a verdict.
    pub(super) fn owe_nothing(&self) -> bool {
        self.hosts.values().all(|host| host.owes == 0)
    }

    pub(super) fn status(&self) -> Vec<HostStatus> {
        let partitions = self.gathering.iter().flatten().flat_map(|gathering| {
            let partitions: &[Partition] = match gathering {
                Gathering::Hosted(partitions) => partitions,
                Gathering::Here(_) => &[],
            };
            partitions
        });
        let keepers: Vec<&WorkerId> = partitions.map(|partition| &partition.host).collect();
        let hosts = self.hosts.iter();
        hosts
            .map(|(name, host)| HostStatus {
                host: name.clone(),
                partitions: keepers.iter().filter(|keeper| **keeper == name).count(),
                owes: host.owes,
            })
            .collect()
    }

    fn of(&self, stage: StageIx) -> impl Iterator<Item = &WorkerId> {
        let hosts = self.hosts.iter();
        hosts.filter_map(move |(name, host)| host.stages.contains(&stage).then_some(name))
    }

    // Strategies.

    /// The strategy of a collector, where the core evaluates it.
    pub(super) fn strategy(&mut self, stage: StageIx) -> Option<&mut Box<dyn Strategy>> {
        match self.gathering[stage.0].as_mut()? {
            Gathering::Here(strategy) => Some(strategy),
            Gathering::Hosted(_) => None,
        }
    }

    /// Whether hosts evaluate the strategy of a collector.
    pub(super) fn has(&self, stage: StageIx) -> bool {
        matches!(self.gathering[stage.0], Some(Gathering::Hosted(_)))
    }

    /// Has the host that keeps a partition do something; for all but [`Do::Forget`] it owes a verdict.
    pub(super) fn ask(&mut self, at: PartitionRef, what: Do, now: Time) -> Outgoing {
        let Some(partition) = self.partition_mut(at) else {
            return Outgoing::default();
        };
        let is_answered = !matches!(what, Do::Forget(_));
        partition.owes += usize::from(is_answered);
        let (name, epoch) = (partition.host.clone(), partition.epoch);
        let message = self.tell(&name, at, epoch, what);
        let mut timer = None;
        if let Some(host) = self.hosts.get_mut(&name).filter(|_| is_answered) {
            host.owes += 1;
            if host.owes == 1 {
                host.since = now;
            }
            if !host.timed {
                host.timed = true;
                timer = Some((now.plus(PATIENCE), name));
            }
        }
        Outgoing { message, timer }
    }

    /// The patience with a host has been timed.
    pub(super) fn time_patience(&mut self, name: &WorkerId, now: Time) -> Patience {
        let Some(host) = self.hosts.get_mut(name) else {
            return Patience::Ended;
        };
        host.timed = host.owes > 0;
        let due = host.since.plus(PATIENCE);
        match (host.timed, due <= now) {
            (false, _) => Patience::Ended,
            (true, true) => Patience::Exhausted,
            (true, false) => Patience::Until(due),
        }
    }

    /// A host has sent verdicts.
    pub(super) fn hear(&mut self, said: &Verdicts, now: Time) -> Hearing {
        let Some(host) = self.hosts.get_mut(&said.host) else {
            return Hearing::Unknown;
        };
        if host.session != said.session || said.number <= host.heard {
            return Hearing::Old;
        }
        if said.number > host.heard + 1 {
            return Hearing::Gap;
        }
        host.heard = said.number;
        host.since = now;
        Hearing::Next
    }

    /// Takes a verdict of a host for one that it owes. Returns whether it counts: it is about the
    /// partition's present state.
    pub(super) fn take_verdict(
        &mut self,
        name: &WorkerId,
        session: u64,
        verdict: &Verdict,
    ) -> bool {
        let Some(partition) = self.partition_mut(verdict.at) else {
            return false;
        };
        if partition.host != *name
            || partition.session != session
            || partition.epoch != verdict.epoch
            || partition.owes == 0
        {
            return false;
        }
        partition.owes -= 1;
        if let Some(host) = self.hosts.get_mut(name) {
            host.owes -= 1;
        }
        !self.spoiled.contains(&verdict.at)
    }

    // Partitions.

    /// Hosts have come or gone: what becomes of a collector's partitions.
    pub(super) fn reassign(&mut self, stage: StageIx) -> Assignment {
        let (is_hosted, is_to_be) = (self.has(stage), self.of(stage).next().is_some());
        match (is_hosted, is_to_be) {
            (false, false) => Assignment::Here,
            (true, false) => Assignment::TakenBack,
            (false, true) if self.gathering[stage.0].is_none() => Assignment::Here,
            (false, true) => {
                let nobody = Partition {
                    host: "".into(),
                    session: 0,
                    epoch: 0,
                    owes: 0,
                };
                self.gathering[stage.0] = Some(Gathering::Hosted(vec![nobody; PARTITIONS]));
                Assignment::Moved((0..PARTITIONS).collect())
            }
            (true, true) => {
                let moves = |number: &usize| self.moves(stage, *number);
                Assignment::Moved((0..PARTITIONS).filter(moves).collect())
            }
        }
    }

    /// The core evaluates a collector's strategy from now on.
    pub(super) fn take_back(&mut self, stage: StageIx, strategy: Box<dyn Strategy>) {
        self.gathering[stage.0] = Some(Gathering::Here(strategy));
    }

    /// Begins partitions of a collector anew, with those who are to keep them. Returns what hosts are told.
    pub(super) fn begin(&mut self, stage: StageIx, numbers: &BTreeSet<usize>) -> Vec<HostMessage> {
        let mut told = Vec::new();
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
            let Some(partition) = self.partition_mut(at) else {
                continue;
            };
            let old = std::mem::replace(partition, new);
            let before = self.hosts.get_mut(&old.host);
            if let Some(before) = before.filter(|host| host.session == old.session) {
                before.owes -= old.owes;
                if old.host != host {
                    told.extend(self.tell(&old.host, at, old.epoch, Do::End));
                }
            }
            told.extend(self.tell(&host, at, self.next_epoch, Do::Begin));
        }
        told
    }

    /// What a host counts on in this partition has changed from outside: no verdict counts before it has
    /// been begun anew.
    pub(super) fn spoil(&mut self, at: PartitionRef) {
        self.spoiled.insert(at);
    }

    /// The partitions that were spoiled since this was asked last.
    pub(super) fn take_spoiled(&mut self) -> BTreeMap<StageIx, BTreeSet<usize>> {
        let mut numbers: BTreeMap<StageIx, BTreeSet<usize>> = BTreeMap::new();
        for at in std::mem::take(&mut self.spoiled) {
            numbers.entry(at.stage).or_default().insert(at.number);
        }
        numbers
    }

    fn moves(&self, stage: StageIx, number: usize) -> bool {
        let Some(Gathering::Hosted(partitions)) = &self.gathering[stage.0] else {
            return false;
        };
        let now = &partitions[number];
        self.keeper_of(PartitionRef { stage, number })
            .is_none_or(|(host, session)| host != now.host || session != now.session)
    }

    /// The host that is to keep a partition, and its session.
    fn keeper_of(&self, at: PartitionRef) -> Option<(WorkerId, u64)> {
        let mut hosts = self.of(at.stage);
        let name = match self.routing {
            Routing::Affine => keeper(&self.names[at.stage.0], at.number, hosts),
            Routing::RoundRobin => {
                let count = self.count(at.stage);
                hosts.nth(at.number.checked_rem(count)?)
            }
        }?;
        Some((Arc::clone(name), self.hosts[name].session))
    }

    fn partition_mut(&mut self, at: PartitionRef) -> Option<&mut Partition> {
        match self.gathering.get_mut(at.stage.0)?.as_mut()? {
            Gathering::Hosted(partitions) => partitions.get_mut(at.number),
            Gathering::Here(_) => None,
        }
    }

    fn tell(
        &mut self,
        name: &WorkerId,
        at: PartitionRef,
        epoch: u64,
        what: Do,
    ) -> Option<HostMessage> {
        let host = self.hosts.get_mut(name)?;
        host.told += 1;
        let message = HostCommand::Do {
            session: host.session,
            number: host.told,
            at,
            epoch,
            what,
        };
        Some((name.clone(), message))
    }

    #[cfg(debug_assertions)]
    pub(super) fn check(&self) -> Result<(), String> {
        for (name, host) in &self.hosts {
            let kept = self.gathering.iter().flatten().flat_map(|gathering| {
                let partitions: &[Partition] = match gathering {
                    Gathering::Hosted(partitions) => partitions,
                    Gathering::Here(_) => &[],
                };
                partitions
            });
            let kept = kept
                .filter(|partition| partition.host == *name && partition.session == host.session);
            let owed: usize = kept.map(|partition| partition.owes).sum();
            if owed != host.owes {
                return Err(format!("host {name}: the count of what it owes is off"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collector::{Member, Outcome, Overdue};
    use crate::conversation::Judged;
    use crate::id::TaskId;

    const STAGE: StageIx = StageIx(0);

    /// A strategy that gathers nothing.
    struct Nothing;

    impl Strategy for Nothing {
        fn offer(&mut self, _: &Member) -> Outcome {
            Outcome::Skip("nothing is gathered".to_owned())
        }

        fn overdue(&mut self, _: &str) -> Overdue {
            Overdue::Gone
        }

        fn forget(&mut self, _: &TaskId) {}
    }

    fn hosts() -> Hosts {
        let strategy: Box<dyn Strategy> = Box::new(Nothing);
        let stages = [
            (Arc::from("pairs"), Some(strategy)),
            (Arc::from("prove"), None),
        ];
        Hosts::new(Routing::Affine, stages.into_iter())
    }

    fn join(host: &str, session: u64) -> HostJoin {
        HostJoin {
            host: host.into(),
            session,
            stages: [STAGE].into(),
        }
    }

    #[test]
    fn a_verdict_counts_for_the_present_epoch_only() {
        let (mut hosts, name) = (hosts(), WorkerId::from("h"));
        assert!(hosts.join(join("h", 1), Time(0)) && !hosts.join(join("h", 1), Time(0)));
        assert_eq!(hosts.reassign(StageIx(1)), Assignment::Here);
        assert!(hosts.strategy(STAGE).is_some() && !hosts.has(STAGE));
        let moved = hosts.reassign(STAGE);
        assert_eq!(moved, Assignment::Moved((0..PARTITIONS).collect()));
        let all: BTreeSet<usize> = (0..PARTITIONS).collect();
        assert_eq!(hosts.begin(STAGE, &all).len(), PARTITIONS);
        let at = PartitionRef {
            stage: STAGE,
            number: 3,
        };
        let asked = hosts.ask(at, Do::Overdue("k".into()), Time(5));
        assert!(asked.message.is_some() && asked.timer.is_some() && !hosts.owe_nothing());
        let epoch = 4;
        let verdict = |epoch| Verdict {
            at,
            epoch,
            what: Judged::Overdue(Overdue::Gone),
        };
        assert!(!hosts.take_verdict(&name, 1, &verdict(epoch + 1)));
        assert_eq!(hosts.check(), Ok(()));
        assert!(hosts.take_verdict(&name, 1, &verdict(epoch)));
        assert!(hosts.owe_nothing() && !hosts.take_verdict(&name, 1, &verdict(epoch)));
        assert!(hosts.leave(&name));
        assert_eq!(hosts.reassign(STAGE), Assignment::TakenBack);
    }

    #[test]
    fn a_gap_in_what_a_host_says_is_noticed() {
        let mut hosts = hosts();
        assert!(hosts.join(join("h", 2), Time(0)));
        let said = |session, number| Verdicts {
            host: "h".into(),
            session,
            number,
            verdicts: Vec::new(),
        };
        assert_eq!(hosts.hear(&said(2, 1), Time(1)), Hearing::Next);
        assert_eq!(hosts.hear(&said(2, 1), Time(1)), Hearing::Old);
        assert_eq!(hosts.hear(&said(1, 2), Time(1)), Hearing::Old);
        assert_eq!(hosts.hear(&said(2, 3), Time(1)), Hearing::Gap);
        assert!(hosts.leave(&"h".into()));
        assert_eq!(hosts.hear(&said(2, 2), Time(1)), Hearing::Unknown);
    }
}
