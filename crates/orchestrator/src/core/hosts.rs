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
use crate::collector::{PARTITIONS, PartitionRef, host_of};
use crate::conversation::{HostCommand, HostJoin, HostRequest, Verdict, Verdicts};
use crate::grouping::Strategy;
use crate::id::WorkerId;
use crate::plan::StageIx;

/// Time without a verdict after which a host that owes one loses its partitions. A host that is still alive
/// joins again.
const VERDICT_TIMEOUT: Duration = Duration::from_secs(3);

/// The hosts, and the evaluator of each collector's strategy.
pub(super) struct Hosts {
    routing: Routing,
    /// Names of the stages; they are part of the rendezvous hash that assigns partitions.
    names: Vec<Arc<str>>,
    hosts: BTreeMap<WorkerId, Host>,
    /// Evaluator of each stage's strategy; `None` for stages that are not collectors.
    evaluators: Vec<Option<Evaluator>>,
    next_epoch: u64,
    /// Partitions that must be begun anew, see [`Hosts::invalidate`].
    partitions_to_rebuild: BTreeSet<PartitionRef>,
}

/// Evaluator of a collector's strategy.
enum Evaluator {
    /// The core.
    Core(Box<dyn Strategy>),
    /// Hosts, one entry for each partition.
    Hosts(Vec<Partition>),
}

/// A partition that a host keeps.
#[derive(Clone)]
struct Partition {
    host: WorkerId,
    session: u64,
    epoch: u64,
    /// Verdicts owed in this epoch.
    pending_verdicts: usize,
}

/// A host.
struct Host {
    session: u64,
    stages: BTreeSet<StageIx>,
    /// Number of the last command sent in this session.
    commands_sent: u64,
    /// Number of the last message received in this session.
    messages_received: u64,
    /// Verdicts that the host owes, over all its partitions.
    pending_verdicts: usize,
    /// Time of the last verdict, or of the request since which verdicts are owed.
    since: Time,
    /// Whether a timer for the host's verdict timeout is set.
    timed: bool,
}

/// A message to a host.
pub(super) type HostMessage = (WorkerId, HostCommand);

/// Result of a request to a host.
#[derive(Default)]
pub(super) struct Outgoing {
    /// Message to send; `None` if no known host keeps the partition.
    pub message: Option<HostMessage>,
    /// Timer to set for the host's verdict timeout; `None` if it is set already.
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
pub(super) enum MessageOrder {
    /// The next message of the session: its verdicts count.
    Next,
    /// A message that was received before, or one of an earlier session.
    Old,
    /// The host is not known.
    Unknown,
    /// Earlier messages are missing: the host is treated as failed.
    Gap,
}

/// Result of a check of a host's verdict timer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum VerdictTimeout {
    /// The host owes no verdict.
    NonePending,
    /// The host has sent verdicts since: check again at this time.
    Until(Time),
    /// The host has owed a verdict for longer than [`VERDICT_TIMEOUT`].
    Expired,
}

// === impl Hosts ===

impl Hosts {
    /// A state without hosts: the core evaluates all strategies. `stages` has each stage's name and its
    /// strategy, `None` if the stage is not a collector.
    pub(super) fn new(
        routing: Routing,
        stages: impl Iterator<Item = (Arc<str>, Option<Box<dyn Strategy>>)>,
    ) -> Self {
        let here = |strategy: Option<_>| strategy.map(Evaluator::Core);
        let stages = stages.map(|(name, strategy)| (name, here(strategy)));
        let (names, evaluators) = stages.unzip();
        Self {
            routing,
            names,
            hosts: BTreeMap::new(),
            evaluators,
            next_epoch: 0,
            partitions_to_rebuild: BTreeSet::new(),
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
            commands_sent: 0,
            messages_received: 0,
            pending_verdicts: 0,
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
    pub(super) fn none_pending(&self) -> bool {
        self.hosts.values().all(|host| host.pending_verdicts == 0)
    }

    pub(super) fn status(&self) -> Vec<HostStatus> {
        let partitions = self.evaluators.iter().flatten().flat_map(|evaluator| {
            let partitions: &[Partition] = match evaluator {
                Evaluator::Hosts(partitions) => partitions,
                Evaluator::Core(_) => &[],
            };
            partitions
        });
        let assigned: Vec<&WorkerId> = partitions.map(|partition| &partition.host).collect();
        let hosts = self.hosts.iter();
        hosts
            .map(|(name, host)| HostStatus {
                host: name.clone(),
                partitions: assigned.iter().filter(|host| **host == name).count(),
                pending_verdicts: host.pending_verdicts,
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
        match self.evaluators[stage.0].as_mut()? {
            Evaluator::Core(strategy) => Some(strategy),
            Evaluator::Hosts(_) => None,
        }
    }

    /// Whether hosts evaluate the strategy of a collector.
    pub(super) fn has(&self, stage: StageIx) -> bool {
        matches!(self.evaluators[stage.0], Some(Evaluator::Hosts(_)))
    }

    /// Sends a request to the host that keeps a partition. The host owes a verdict for every request except
    /// [`HostRequest::Forget`].
    pub(super) fn ask(&mut self, at: PartitionRef, request: HostRequest, now: Time) -> Outgoing {
        let Some(partition) = self.partition_mut(at) else {
            return Outgoing::default();
        };
        let is_answered = !matches!(request, HostRequest::Forget(_));
        partition.pending_verdicts += usize::from(is_answered);
        let (name, epoch) = (partition.host.clone(), partition.epoch);
        let message = self.next_command(&name, at, epoch, request);
        let mut timer = None;
        if let Some(host) = self.hosts.get_mut(&name).filter(|_| is_answered) {
            host.pending_verdicts += 1;
            if host.pending_verdicts == 1 {
                host.since = now;
            }
            if !host.timed {
                host.timed = true;
                timer = Some((now.plus(VERDICT_TIMEOUT), name));
            }
        }
        Outgoing { message, timer }
    }

    /// Checks the verdict timeout of a host, when its timer has fired.
    pub(super) fn check_timeout(&mut self, name: &WorkerId, now: Time) -> VerdictTimeout {
        let Some(host) = self.hosts.get_mut(name) else {
            return VerdictTimeout::NonePending;
        };
        host.timed = host.pending_verdicts > 0;
        let due = host.since.plus(VERDICT_TIMEOUT);
        match (host.timed, due <= now) {
            (false, _) => VerdictTimeout::NonePending,
            (true, true) => VerdictTimeout::Expired,
            (true, false) => VerdictTimeout::Until(due),
        }
    }

    /// Checks the session and number of a message with verdicts.
    pub(super) fn check_order(&mut self, said: &Verdicts, now: Time) -> MessageOrder {
        let Some(host) = self.hosts.get_mut(&said.host) else {
            return MessageOrder::Unknown;
        };
        if host.session != said.session || said.number <= host.messages_received {
            return MessageOrder::Old;
        }
        if said.number > host.messages_received + 1 {
            return MessageOrder::Gap;
        }
        host.messages_received = said.number;
        host.since = now;
        MessageOrder::Next
    }

    /// Accounts for a verdict that the host owed. Returns whether it counts: it is about the partition's
    /// present state.
    pub(super) fn take_verdict(
        &mut self,
        name: &WorkerId,
        session: u64,
        verdict: &Verdict,
    ) -> bool {
        let Some(partition) = self.partition_mut(verdict.partition) else {
            return false;
        };
        if partition.host != *name
            || partition.session != session
            || partition.epoch != verdict.epoch
            || partition.pending_verdicts == 0
        {
            return false;
        }
        partition.pending_verdicts -= 1;
        if let Some(host) = self.hosts.get_mut(name) {
            host.pending_verdicts -= 1;
        }
        !self.partitions_to_rebuild.contains(&verdict.partition)
    }

    // Partitions.

    /// Compares a collector's partitions with the hosts that exist now, after hosts have come or gone.
    pub(super) fn reassign(&mut self, stage: StageIx) -> Assignment {
        let (is_hosted, is_to_be) = (self.has(stage), self.of(stage).next().is_some());
        match (is_hosted, is_to_be) {
            (false, false) => Assignment::Here,
            (true, false) => Assignment::TakenBack,
            (false, true) if self.evaluators[stage.0].is_none() => Assignment::Here,
            (false, true) => {
                let nobody = Partition {
                    host: "".into(),
                    session: 0,
                    epoch: 0,
                    pending_verdicts: 0,
                };
                self.evaluators[stage.0] = Some(Evaluator::Hosts(vec![nobody; PARTITIONS]));
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
        self.evaluators[stage.0] = Some(Evaluator::Core(strategy));
    }

    /// Begins partitions of a collector anew at their present hosts. Returns the messages to send to hosts.
    pub(super) fn begin(&mut self, stage: StageIx, numbers: &BTreeSet<usize>) -> Vec<HostMessage> {
        let mut messages = Vec::new();
        for number in numbers {
            let at = PartitionRef {
                stage,
                number: *number,
            };
            let Some((host, session)) = self.assigned_host(at) else {
                continue;
            };
            self.next_epoch += 1;
            let new = Partition {
                host: host.clone(),
                session,
                epoch: self.next_epoch,
                pending_verdicts: 0,
            };
            let Some(partition) = self.partition_mut(at) else {
                continue;
            };
            let old = std::mem::replace(partition, new);
            let before = self.hosts.get_mut(&old.host);
            if let Some(before) = before.filter(|host| host.session == old.session) {
                before.pending_verdicts -= old.pending_verdicts;
                if old.host != host {
                    messages.extend(self.next_command(&old.host, at, old.epoch, HostRequest::End));
                }
            }
            messages.extend(self.next_command(&host, at, self.next_epoch, HostRequest::Begin));
        }
        messages
    }

    /// Marks a partition whose messages have changed from outside: no verdict counts before the partition has
    /// been begun anew.
    pub(super) fn invalidate(&mut self, at: PartitionRef) {
        self.partitions_to_rebuild.insert(at);
    }

    /// Takes the partitions that were invalidated since the last call.
    pub(super) fn take_partitions_to_rebuild(&mut self) -> BTreeMap<StageIx, BTreeSet<usize>> {
        let mut numbers: BTreeMap<StageIx, BTreeSet<usize>> = BTreeMap::new();
        for at in std::mem::take(&mut self.partitions_to_rebuild) {
            numbers.entry(at.stage).or_default().insert(at.number);
        }
        numbers
    }

    fn moves(&self, stage: StageIx, number: usize) -> bool {
        let Some(Evaluator::Hosts(partitions)) = &self.evaluators[stage.0] else {
            return false;
        };
        let now = &partitions[number];
        self.assigned_host(PartitionRef { stage, number })
            .is_none_or(|(host, session)| host != now.host || session != now.session)
    }

    /// The host that should keep a partition, and its session.
    fn assigned_host(&self, at: PartitionRef) -> Option<(WorkerId, u64)> {
        let mut hosts = self.of(at.stage);
        let name = match self.routing {
            Routing::Affine => host_of(&self.names[at.stage.0], at.number, hosts),
            Routing::RoundRobin => {
                let count = self.count(at.stage);
                hosts.nth(at.number.checked_rem(count)?)
            }
        }?;
        Some((Arc::clone(name), self.hosts[name].session))
    }

    fn partition_mut(&mut self, at: PartitionRef) -> Option<&mut Partition> {
        match self.evaluators.get_mut(at.stage.0)?.as_mut()? {
            Evaluator::Hosts(partitions) => partitions.get_mut(at.number),
            Evaluator::Core(_) => None,
        }
    }

    fn next_command(
        &mut self,
        name: &WorkerId,
        at: PartitionRef,
        epoch: u64,
        request: HostRequest,
    ) -> Option<HostMessage> {
        let host = self.hosts.get_mut(name)?;
        host.commands_sent += 1;
        let message = HostCommand::Request {
            session: host.session,
            number: host.commands_sent,
            partition: at,
            epoch,
            request,
        };
        Some((name.clone(), message))
    }

    #[cfg(debug_assertions)]
    pub(super) fn check(&self) -> Result<(), String> {
        for (name, host) in &self.hosts {
            let kept = self.evaluators.iter().flatten().flat_map(|evaluator| {
                let partitions: &[Partition] = match evaluator {
                    Evaluator::Hosts(partitions) => partitions,
                    Evaluator::Core(_) => &[],
                };
                partitions
            });
            let kept = kept
                .filter(|partition| partition.host == *name && partition.session == host.session);
            let owed: usize = kept.map(|partition| partition.pending_verdicts).sum();
            if owed != host.pending_verdicts {
                return Err(format!("host {name}: the count of what it owes is off"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::Decision;
    use crate::grouping::{Member, OfferDecision, OverdueDecision};
    use crate::id::TaskId;

    const STAGE: StageIx = StageIx(0);

    /// A strategy that gathers nothing.
    struct Nothing;

    impl Strategy for Nothing {
        fn offer(&mut self, _: &Member) -> OfferDecision {
            OfferDecision::Skip("nothing is gathered".to_owned())
        }

        fn overdue(&mut self, _: &str) -> OverdueDecision {
            OverdueDecision::Gone
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
        let asked = hosts.ask(at, HostRequest::Overdue("k".into()), Time(5));
        assert!(asked.message.is_some() && asked.timer.is_some() && !hosts.none_pending());
        let epoch = 4;
        let verdict = |epoch| Verdict {
            partition: at,
            epoch,
            decision: Decision::Overdue(OverdueDecision::Gone),
        };
        assert!(!hosts.take_verdict(&name, 1, &verdict(epoch + 1)));
        assert_eq!(hosts.check(), Ok(()));
        assert!(hosts.take_verdict(&name, 1, &verdict(epoch)));
        assert!(hosts.none_pending() && !hosts.take_verdict(&name, 1, &verdict(epoch)));
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
        assert_eq!(hosts.check_order(&said(2, 1), Time(1)), MessageOrder::Next);
        assert_eq!(hosts.check_order(&said(2, 1), Time(1)), MessageOrder::Old);
        assert_eq!(hosts.check_order(&said(1, 2), Time(1)), MessageOrder::Old);
        assert_eq!(hosts.check_order(&said(2, 3), Time(1)), MessageOrder::Gap);
        assert!(hosts.leave(&"h".into()));
        assert_eq!(
            hosts.check_order(&said(2, 2), Time(1)),
            MessageOrder::Unknown
        );
    }
}
