//! Hosts: they keep partitions of collectors, over channels that keep the order, repeat messages, and break.

use std::collections::VecDeque;
use std::sync::Arc;

use proofmill_orchestrator::collector::Host;
use proofmill_orchestrator::conversation::{Decision, HostCommand, HostEvent};
use proofmill_orchestrator::core::Event;
use proofmill_orchestrator::grouping::OfferDecision;
use proofmill_orchestrator::plan::StageIx;

use crate::actors::State;
use crate::plans::Scene;
use crate::rng::Rng;
use crate::world::{Ev, World};

pub(crate) struct SimHost {
    pub(crate) name: Arc<str>,
    host: Host,
    pub(crate) state: State,
    inc: u64,
    asleep: VecDeque<Ev>,
    /// Arrival time of the last message in each direction.
    to_host_until: u64,
    to_core_until: u64,
}

const BEAT_MS: u64 = 1_000;

impl SimHost {
    /// Hosts for all collectors, in every other history that has collectors.
    pub(crate) fn crew(scene: &Scene, rng: &mut Rng) -> Vec<Self> {
        let is_collector = |ix: &StageIx| scene.plan.stage(*ix).collector().is_some();
        let all = (0..scene.plan.stages.len()).map(StageIx);
        let collectors: Vec<StageIx> = all.filter(is_collector).collect();
        if collectors.is_empty() || rng.flip() {
            return Vec::new();
        }
        let make = |number| {
            let name: Arc<str> = format!("host-{number}").into();
            Self {
                host: Host::new(scene.plan.clone(), name.clone(), collectors.clone()),
                name,
                state: State::Down,
                inc: 0,
                asleep: VecDeque::new(),
                to_host_until: 0,
                to_core_until: 0,
            }
        };
        (0..rng.within(1, 4)).map(make).collect()
    }
}

impl World {
    pub(crate) fn host_event(&mut self, ev: Ev) {
        let (Ev::ToHost(ix, ..) | Ev::HostBeat(ix, _) | Ev::HostUp(ix) | Ev::HostResumes(ix)) = ev
        else {
            return;
        };
        match (self.hosts[ix].state, ev) {
            (State::Down, Ev::HostUp(_)) => {
                self.note(|| format!("host {ix} starts"));
                let host = &mut self.hosts[ix];
                host.state = State::Up;
                host.inc += 1;
                host.asleep.clear();
                let inc = host.inc;
                self.host_joins(ix);
                self.after(BEAT_MS, Ev::HostBeat(ix, inc));
            }
            (State::Paused, Ev::HostResumes(_)) => {
                self.note(|| format!("host {ix} resumes"));
                self.hosts[ix].state = State::Up;
                for ev in std::mem::take(&mut self.hosts[ix].asleep) {
                    self.after(0, ev);
                }
                // Messages sent from now on arrive after the deferred ones.
                self.hosts[ix].to_host_until = self.now_ms + 1;
            }
            (State::Paused, ev @ (Ev::ToHost(..) | Ev::HostBeat(..))) => {
                self.hosts[ix].asleep.push_back(ev);
            }
            (State::Up, Ev::ToHost(_, inc, message)) if inc == self.hosts[ix].inc => {
                match self.hosts[ix].host.handle([message]) {
                    Some(verdicts) if verdicts.is_empty() => {}
                    Some(verdicts) => {
                        let said = self.hosts[ix].host.report(verdicts);
                        self.host_says(ix, HostEvent::Verdicts(said));
                    }
                    None => self.host_joins(ix),
                }
            }
            (State::Up, Ev::HostBeat(_, inc)) if inc == self.hosts[ix].inc => {
                let host = self.hosts[ix].name.clone();
                self.host_says(ix, HostEvent::Heartbeat { host });
                self.after(BEAT_MS, Ev::HostBeat(ix, inc));
            }
            _ => {}
        }
    }

    fn host_joins(&mut self, ix: usize) {
        self.next_session += 1;
        let join = self.hosts[ix].host.join(self.next_session);
        self.host_says(ix, HostEvent::Join(join));
    }

    fn host_says(&mut self, ix: usize, event: HostEvent) {
        let until = self.host_delay(self.hosts[ix].to_core_until);
        self.hosts[ix].to_core_until = until;
        let (wait, epoch) = (until - self.now_ms, self.epoch);
        for _ in 0..self.host_copies() {
            self.after(wait, Ev::ToCore(Some(epoch), event.clone().into()));
        }
    }

    /// Sends a command of the core to a host.
    pub(crate) fn tell_host(&mut self, name: &str, message: &HostCommand) {
        let Some(ix) = self.hosts.iter().position(|host| &*host.name == name) else {
            return;
        };
        let until = self.host_delay(self.hosts[ix].to_host_until);
        self.hosts[ix].to_host_until = until;
        let (wait, inc) = (until - self.now_ms, self.hosts[ix].inc);
        for _ in 0..self.host_copies() {
            self.after(wait, Ev::ToHost(ix, inc, message.clone()));
        }
    }

    fn host_delay(&mut self, until: u64) -> u64 {
        let slow = if self.rng.per_mille(20) { 400 } else { 10 };
        until.max(self.now_ms + self.rng.within(0, slow))
    }

    fn host_copies(&mut self) -> usize {
        if !self.calm && self.rng.per_mille(40) {
            2
        } else {
            1
        }
    }

    /// Makes the hosts join again, since a new coordinator knows none.
    pub(crate) fn hosts_hear_of_a_coordinator(&mut self) {
        for ix in 0..self.hosts.len() {
            let name = self.hosts[ix].name.clone();
            self.tell_host(&name, &HostCommand::Unknown);
        }
    }

    /// Causes a fault of one host.
    pub(crate) fn host_fault(&mut self) {
        if self.hosts.is_empty() {
            return;
        }
        let ix = self.rng.below(self.hosts.len());
        if self.hosts[ix].state != State::Up {
            return;
        }
        if self.rng.flip() {
            self.note(|| format!("host {ix} is paused"));
            self.hosts[ix].state = State::Paused;
            let delay = self.rng.within(100, 9_000);
            self.after(delay, Ev::HostResumes(ix));
            return;
        }
        self.note(|| format!("host {ix} dies"));
        self.hosts[ix].state = State::Down;
        let delay = self.rng.within(1, 5_000);
        self.after(delay, Ev::HostUp(ix));
        // The core learns of the host's death, perhaps when the host is back already, or not at all.
        if self.rng.per_mille(700) {
            let host = self.hosts[ix].name.clone();
            let (delay, epoch) = (self.rng.within(1, 600), self.epoch);
            self.after(
                delay,
                Ev::ToCore(Some(epoch), HostEvent::Leave { host }.into()),
            );
        }
    }

    pub(crate) fn hosts_calm_down(&mut self) {
        for ix in 0..self.hosts.len() {
            match self.hosts[ix].state {
                State::Paused => self.after(0, Ev::HostResumes(ix)),
                State::Down => self.after(0, Ev::HostUp(ix)),
                State::Up => {}
            }
        }
    }
}

/// Number of groups that the verdicts of an event complete.
pub(crate) fn finished_groups(event: &Event) -> u64 {
    let Event::Host(HostEvent::Verdicts(said)) = event else {
        return 0;
    };
    let finished = said.verdicts.iter().map(|verdict| match &verdict.decision {
        Decision::Offered(_, OfferDecision::Finished(groups)) => groups.len() as u64,
        _ => 0,
    });
    finished.sum()
}
