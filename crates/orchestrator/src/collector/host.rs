//! The state machine of a process that keeps partitions.

use std::collections::HashMap;
use std::sync::Arc;

use super::PartitionRef;
use crate::conversation::{Decision, HostCommand, HostJoin, HostRequest, Verdict, Verdicts};
use crate::grouping::Strategy;
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
    commands_received: u64,
    messages_sent: u64,
    partitions: HashMap<PartitionRef, KeptPartition>,
}

struct KeptPartition {
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
            commands_received: 0,
            messages_sent: 0,
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
        self.commands_received = 0;
        self.messages_sent = 0;
        self.partitions.clear();
        HostJoin {
            host: self.name.clone(),
            session,
            stages: self.stages.iter().copied().collect(),
        }
    }

    /// Carries out commands. Returns the verdicts, or `None` if the host must join again with a new session.
    pub fn handle(
        &mut self,
        commands: impl IntoIterator<Item = HostCommand>,
    ) -> Option<Vec<Verdict>> {
        let mut verdicts = Vec::new();
        for command in commands {
            let HostCommand::Request {
                session,
                number,
                partition,
                epoch,
                request,
            } = command
            else {
                return None;
            };
            if session != self.session || number <= self.commands_received {
                continue;
            }
            if number > self.commands_received + 1 {
                return None;
            }
            self.commands_received = number;
            let decision = self.act(partition, epoch, request);
            verdicts.extend(decision.map(|decision| Verdict {
                partition,
                epoch,
                decision,
            }));
        }
        Some(verdicts)
    }

    /// The message that carries the verdicts of [`Host::handle`]; call in the order of the verdicts.
    pub fn report(&mut self, verdicts: Vec<Verdict>) -> Verdicts {
        self.messages_sent += 1;
        Verdicts {
            host: self.name.clone(),
            session: self.session,
            number: self.messages_sent,
            verdicts,
        }
    }

    fn act(
        &mut self,
        partition: PartitionRef,
        epoch: u64,
        request: HostRequest,
    ) -> Option<Decision> {
        match request {
            HostRequest::Begin => {
                let collector = self.plan.stages.get(partition.stage.0)?.collector()?;
                let strategy = collector.strategy.build();
                self.partitions
                    .insert(partition, KeptPartition { epoch, strategy });
                return None;
            }
            HostRequest::End => {
                self.partitions.remove(&partition);
                return None;
            }
            _ => {}
        }
        let kept = self.partitions.get_mut(&partition);
        let strategy = &mut kept.filter(|kept| kept.epoch == epoch)?.strategy;
        Some(match request {
            HostRequest::Offer(message) => {
                let outcome = strategy.offer(&message);
                Decision::Offered(message.id, outcome)
            }
            HostRequest::Forget(id) => {
                strategy.forget(&id);
                return None;
            }
            HostRequest::Overdue(key) => Decision::Overdue(strategy.overdue(&key)),
            HostRequest::Begin | HostRequest::End => return None,
        })
    }
}
