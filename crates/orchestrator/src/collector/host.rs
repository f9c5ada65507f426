//! The state machine of a process that keeps partitions.

use std::collections::HashMap;
use std::sync::Arc;

use super::{PartitionRef, Strategy};
use crate::conversation::{Do, HostCommand, HostJoin, Judged, Verdict, Verdicts};
use crate::id::WorkerId;
use crate::plan::{Plan, StageIx};

/// Keeps partitions of collectors; a state machine without input or output.
///
/// Its state may be lost at any time, because the core offers the messages again.
pub struct Host {
    plan: Arc<Plan>,
    name: WorkerId,
    stages: Vec<StageIx>,
    session: u64,
    heard: u64,
    said: u64,
    partitions: HashMap<PartitionRef, Kept>,
}

struct Kept {
    epoch: u64,
    strategy: Box<dyn Strategy>,
}

// === impl Host ===

impl Host {
    /// A host of the collectors `stages` of `plan`. [`Host::join`] begins its first session.
    pub fn new(plan: Arc<Plan>, name: WorkerId, stages: Vec<StageIx>) -> Self {
        Self {
            plan,
            name,
            stages,
            session: 0,
            heard: 0,
            said: 0,
            partitions: HashMap::new(),
        }
    }

    /// Name of the host.
    pub fn name(&self) -> &WorkerId {
        &self.name
    }

    /// Discards all state and begins a session; `session` differs from those of all earlier sessions under
    /// this name.
    pub fn join(&mut self, session: u64) -> HostJoin {
        self.session = session;
        self.heard = 0;
        self.said = 0;
        self.partitions.clear();
        HostJoin {
            host: self.name.clone(),
            session,
            stages: self.stages.iter().copied().collect(),
        }
    }

    /// Carries out commands. Returns the verdicts, or `None` if the host must join again with a new session.
    pub fn take(
        &mut self,
        commands: impl IntoIterator<Item = HostCommand>,
    ) -> Option<Vec<Verdict>> {
        let mut verdicts = Vec::new();
        for command in commands {
            let HostCommand::Do {
                session,
                number,
                at,
                epoch,
                what,
            } = command
            else {
                return None;
            };
            if session != self.session || number <= self.heard {
                continue;
            }
            if number > self.heard + 1 {
                return None;
            }
            self.heard = number;
            let judged = self.act(at, epoch, what);
            verdicts.extend(judged.map(|what| Verdict { at, epoch, what }));
        }
        Some(verdicts)
    }

    /// The message that carries the verdicts of [`Host::take`]; call in the order of the verdicts.
    pub fn say(&mut self, verdicts: Vec<Verdict>) -> Verdicts {
        self.said += 1;
        Verdicts {
            host: self.name.clone(),
            session: self.session,
            number: self.said,
            verdicts,
        }
    }

    fn act(&mut self, at: PartitionRef, epoch: u64, what: Do) -> Option<Judged> {
        match what {
            Do::Begin => {
                let collector = self.plan.stages.get(at.stage.0)?.collector()?;
                let strategy = collector.strategy.build();
                self.partitions.insert(at, Kept { epoch, strategy });
                return None;
            }
            Do::End => {
                self.partitions.remove(&at);
                return None;
            }
            _ => {}
        }
        let kept = self.partitions.get_mut(&at);
        let strategy = &mut kept.filter(|kept| kept.epoch == epoch)?.strategy;
        Some(match what {
            Do::Offer(message) => {
                let outcome = strategy.offer(&message);
                Judged::Offered(message.id, outcome)
            }
            Do::Forget(id) => {
                strategy.forget(&id);
                return None;
            }
            Do::Overdue(key) => Judged::Overdue(strategy.overdue(&key)),
            Do::Begin | Do::End => return None,
        })
    }
}
