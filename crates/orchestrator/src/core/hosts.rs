//! Evaluators of collectors' strategies: the core itself, or hosts, which are processes that evaluate
//! strategies in its place, each for the partitions that it keeps.
//!
//! The messages held and the barriers fired are in [`super::collectors`]. A partition that passes from one
//! host to another begins anew under a new epoch, and verdicts of earlier epochs do not count. Commands to
//! hosts are returned to the caller, to be sent in that order.

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

/// Time without a verdict after which a host that owes one loses its partitions. A host that is still alive
/// joins again.
const PATIENCE: Duration = Duration::from_secs(3);

/// The hosts, and the evaluator of each collector's strategy.
pub(super) struct Hosts {
    routing: Routing,
    /// Names of the stages; they are part of the rendezvous hash that assigns partitions.
    names: Vec<Arc<str>>,
    hosts: BTreeMap<WorkerId, Host>,
    /// Evaluator of each stage's strategy; `None` for stages that are not collectors.
    gathering: Vec<Option<Gathering>>,
    next_epoch: u64,
    /// Partitions that must be begun anew, see [`Hosts::spoil`].
    spoiled: BTreeSet<PartitionRef>,
}

/// Evaluator of a collector's strategy.
enum Gathering {
    /// The core.
    Here(Box<dyn Strategy>),
    /// Hosts, one entry for each partition.
    Hosted(Vec<Partition>),
}

/// A partition that a host keeps.
#[derive(Clone)]
struct Partition {
    host: WorkerId,
    session: u64,
    epoch: u64,
    /// Verdicts owed in this epoch.
    owes: usize,
}

/// A host.
struct Host {
    session: u64,
    stages: BTreeSet<StageIx>,
    /// Number of the last command sent in this session.
    told: u64,
    /// Number of the last message received in this session.
    heard: u64,
    /// Verdicts that the host owes, over all its partitions.
    owes: usize,
    /// Time of the last verdict, or of the request since which verdicts are owed.
    since: Time,
    /// Whether a timer for the host's patience is set.
    timed: bool,
}

/// A message to a host.
pub(super) type HostMessage = (WorkerId, HostCommand);

/// Result of a request to a host.
#[derive(Default)]
pub(super) struct Outgoing {
    /// Message to send; `None` if no known host keeps the partition.
    pub message: Option<HostMessage>,
    /// Timer to set for the host's patience; `None` if it is set already.
    pub timer: Option<(Time, WorkerId)>,
}

/// Change of a collector's partitions after hosts have come or gone.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Assignment {
    /// The core goes on evaluating the strategy.
    Here,
    /// The core takes the strategy over from hosts.
    TakenBack,
    /// These partitions pass to other hosts, where they must be begun.
    Moved(BTreeSet<usize>),
}

/// Classification of a message with verdicts from a host.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Hearing {
    /// The next message of the session: its verdicts count.
    Next,
    /// A message that was received before, or one of an earlier session.
    Old,
    /// The host is not known.
    Unknown,
    /// Earlier messages are missing: the host is treated as failed.
    Gap,
}

/// Result of a check of a host's patience timer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Patience {
    /// The host owes no verdict.
    Ended,
    /// The host has sent verdicts since: check again at this time.
    Until(Time),
    /// The host has owed a verdict for longer than [`PATIENCE`].
    Exhausted,
}

// === impl Hosts ===

impl Hosts {
    /// A state without hosts: the core evaluates all strategies. `stages` has each stage's name and its
    /// strategy, `None` if the stage is not a collector.
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

    /// Adds a host. Returns whether the offer is new; partitions must then be reassigned.
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

    /// Removes a host. Returns whether it was known; partitions must then be reassigned.
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

    /// Sends a request to the host that keeps a partition. The host owes a verdict for every request except
    /// [`Do::Forget`].
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

    /// Checks the patience with a host, when its timer has fired.
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

    /// Checks the session and number of a message with verdicts.
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

    /// Accounts for a verdict that the host owed. Returns whether it counts: it is about the partition's
    /// present state.
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

    /// Compares a collector's partitions with the hosts that exist now, after hosts have come or gone.
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

    /// Begins partitions of a collector anew at their present hosts. Returns the messages to send to hosts.
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

    /// Marks a partition whose messages have changed from outside: no verdict counts before the partition has
    /// been begun anew.
    pub(super) fn spoil(&mut self, at: PartitionRef) {
        self.spoiled.insert(at);
    }

    /// Takes the partitions that were spoiled since the last call.
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

    /// The host that should keep a partition, and its session.
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
