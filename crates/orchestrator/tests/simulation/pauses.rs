//! An operator who pauses stages and sources, drains workers, and has tasks run that wait for their next attempt.

use std::sync::Arc;

use proofmill_orchestrator::conversation::Request;
use proofmill_orchestrator::core::{Core, TaskPhase};
use proofmill_orchestrator::plan::StageKind;
use proofmill_orchestrator::record::PauseKind;

use crate::rng::Rng;
use crate::world::{Asker, Ev, World};

/// The operator's own chance, so that the rest of a history does not depend on it.
pub(crate) struct Pauser {
    rng: Rng,
    /// Number of requests.
    pub(crate) asked: u64,
}

// === impl Pauser ===

impl Pauser {
    /// The operator of this history; `None` in four of five.
    pub(crate) fn of(seed: u64) -> Option<Self> {
        (seed % 5 == 2).then(|| Self {
            rng: Rng::new(seed ^ 0x7061_7573),
            asked: 0,
        })
    }

    fn pick<T>(&mut self, mut of: Vec<T>) -> Option<T> {
        (!of.is_empty()).then(|| of.swap_remove(self.rng.below(of.len())))
    }
}

// === impl World ===

impl World {
    /// Asks for a pause, its end, or a run; in the calm, ends all pauses.
    pub(crate) fn pause_something(&mut self) {
        let Some(mut pauser) = self.pauser.take() else {
            return;
        };
        let requests = match &self.core {
            None => Vec::new(),
            Some(core) if self.calm => resumptions(core),
            Some(core) => self.intervention(core, &mut pauser).into_iter().collect(),
        };
        pauser.asked += requests.len() as u64;
        let delay = match self.calm {
            true => 400,
            false => pauser.rng.within(50, 1_500),
        };
        self.pauser = Some(pauser);
        self.after(delay, Ev::Pause);
        for request in requests {
            let event = self.ask(Asker::Operator, request);
            self.after(0, Ev::ToCore(None, event));
        }
    }

    fn intervention(&self, core: &Core, pauser: &mut Pauser) -> Option<Request> {
        let pause = |kind, name| Request::Pause {
            kind,
            name,
            by: "alice".into(),
        };
        match pauser.rng.within(0, 9) {
            0..4 => pauser.pick(resumptions(core)),
            4..6 => {
                let of_kind = |kind: &StageKind| !matches!(kind, StageKind::Collector(_));
                let stages = self.scene.plan.stages.iter();
                let names = stages
                    .filter(|it| of_kind(&it.kind))
                    .map(|it| it.name.clone());
                let name = pauser.pick(names.collect())?;
                Some(pause(PauseKind::Stage, name))
            }
            6 => {
                let names = self.scene.plan.sources.iter().map(|it| it.name.clone());
                let name = pauser.pick(names.collect())?;
                Some(pause(PauseKind::Source, name))
            }
            7 => {
                let names = self.workers.iter().map(|it| Arc::clone(&it.name));
                let name = pauser.pick(names.collect())?;
                Some(pause(PauseKind::Worker, name))
            }
            _ => {
                let tasks = core.tasks(|_| true).into_iter();
                let delayed = tasks.filter(|view| view.phase == TaskPhase::Delayed);
                let ids = delayed.map(|view| view.record.id.clone());
                Some(Request::RunNow(pauser.pick(ids.collect())?))
            }
        }
    }
}

/// Requests that end all pauses.
fn resumptions(core: &Core) -> Vec<Request> {
    let pauses = core.status().pauses.into_iter();
    let requests = pauses.map(|pause| Request::Resume {
        kind: pause.kind,
        name: pause.name,
    });
    requests.collect()
}
