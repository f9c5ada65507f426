//! The protocol's guarantees, checked by an observer of both sides.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proofmill_orchestrator::conversation::{RoleEvent, WorkerCommand};
use proofmill_orchestrator::core::Action;
use proofmill_orchestrator::remote::session::ClientRef;

use super::roles::result_number;
use super::world::Protocol;
use crate::checks::{Monitor, ensure};
use crate::world::Checked;

/// Events and requests that coordinators have received.
#[derive(Default)]
pub(crate) struct Witness {
    /// Results, each as a leadership and the number of the result.
    results: BTreeSet<(u64, u64)>,
    /// Process that made each result, and its life.
    made: BTreeMap<u64, (usize, u64)>,
    requests: BTreeSet<(u64, ClientRef, u64)>,
}

// === impl Witness ===

impl Witness {
    pub(crate) fn note_assignment(&mut self, monitor: &mut Monitor, action: &Action) {
        if let Action::Worker {
            worker,
            command: WorkerCommand::Assign(leases),
            ..
        } = action
        {
            for lease in leases {
                monitor.given.note(worker, lease);
            }
        }
    }

    pub(crate) fn makes(&mut self, process: usize, life: u64, mark: u64) {
        self.made.insert(mark, (process, life));
    }

    /// (2) A coordinator receives a result once. It may receive a late copy from a process that has ended, if
    /// that process's successor has ended too.
    pub(crate) fn event(
        &mut self,
        leadership: u64,
        event: &RoleEvent,
        lives: impl Fn(usize) -> u64,
    ) -> Checked {
        if let Some(mark) = result_number(event) {
            let is_first = self.results.insert((leadership, mark));
            let made = self.made.get(&mark);
            let has_ended = made.is_some_and(|(process, life)| lives(*process) != *life);
            ensure!(
                is_first || has_ended,
                "(2) a coordinator has heard result {mark} twice"
            );
        }
        Ok(())
    }

    /// (2) A coordinator receives a request once.
    pub(crate) fn request(&mut self, leadership: u64, client: &ClientRef, number: u64) -> Checked {
        let is_first = self.requests.insert((leadership, client.clone(), number));
        ensure!(
            is_first,
            "(2) a coordinator has heard request {number} of {client:?} twice"
        );
        Ok(())
    }

    /// (2) Results that a coordinator has acknowledged are results that it has received.
    pub(crate) fn answered(&self, leadership: u64, brought: &[u64]) -> Checked {
        for mark in brought {
            ensure!(
                self.results.contains(&(leadership, *mark)),
                "(2) result {mark} was answered, and the coordinator has not heard it"
            );
        }
        Ok(())
    }
}

impl Protocol {
    /// Checks that all accepted work has ended.
    pub(crate) fn check_end(&self) -> Checked {
        self.check_sources()?;
        let leaders = self.nodes.iter().filter_map(|node| node.leader.as_ref());
        let Some(leader) = leaders.max_by_key(|leader| leader.term) else {
            return Err("no coordinator leads at the end".to_owned());
        };
        let core = &leader.core;
        let rest = || -> Vec<Arc<str>> {
            let tasks = core.tasks(|_| true);
            let lines = tasks
                .iter()
                .map(|view| format!("{} {:?}", view.record.id, view.phase).into());
            lines.collect()
        };
        ensure!(
            core.is_idle(),
            "(liveness) not idle at the end: {:?}",
            rest()
        );
        // Late dead letters stay until an operator drops them.
        let dead = core.dead_letters().filter(|dead| !dead.late).count();
        let unsequenced = self.scene.plan.sequencer().is_none();
        let emitted = unsequenced || self.files.next == self.scene.end;
        ensure!(
            core.status().live == 0 && dead == 0 && emitted,
            "(a) {} of {} blocks came out, {dead} are dead, left are {:?}",
            self.files.next,
            self.scene.end,
            rest()
        );
        Ok(())
    }
}
