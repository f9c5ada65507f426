//! A compact builder for plans.

use std::sync::Arc;
use std::time::Duration;

use proofmill_orchestrator::grouping::StrategyFactory;
use proofmill_orchestrator::plan::{
    Backoff, CollectorPlan, Deadline, DispatcherPlan, Late, Needs, Plan, QueueIx, QueuePlan,
    SourcePlan, StageIx, StageKind, StagePlan,
};

use crate::support::Mill;

/// A plan being built; queues are created when they are first named.
#[derive(Default)]
pub(crate) struct Draft {
    stages: Vec<StagePlan>,
    queues: Vec<QueuePlan>,
    deadline: Option<Deadline>,
    late: Late,
    cuts_blocks: bool,
}

pub(crate) fn dispatcher() -> DispatcherPlan {
    DispatcherPlan {
        group: "g".into(),
        needs: Needs::default(),
        t_ack: Duration::from_secs(30),
        r_max: 2,
        backoff: Backoff {
            initial: Duration::from_secs(1),
            max: Duration::from_secs(60),
            factor: 2.0,
            jitter: 0.0,
        },
        batch: 1,
        speculation: Default::default(),
    }
}

impl Draft {
    fn queue(&mut self, name: &str) -> QueueIx {
        if let Some(ix) = self.queues.iter().position(|queue| &*queue.name == name) {
            return QueueIx(ix);
        }
        self.queues.push(QueuePlan {
            name: name.into(),
            readers: Vec::new(),
            many_writers: false,
            q_max: 1000,
        });
        QueueIx(self.queues.len() - 1)
    }

    pub(crate) fn q_max(mut self, queue: &str, q_max: usize) -> Self {
        let ix = self.queue(queue);
        self.queues[ix.0].q_max = q_max;
        self
    }

    pub(crate) fn stage(
        mut self,
        name: &str,
        inputs: &[&str],
        outputs: &[&str],
        kind: StageKind,
    ) -> Self {
        let ix = StageIx(self.stages.len());
        let inputs: Vec<QueueIx> = inputs.iter().map(|queue| self.queue(queue)).collect();
        for queue in &inputs {
            self.queues[queue.0].readers.push(ix);
        }
        let outputs = outputs.iter().map(|queue| self.queue(queue)).collect();
        self.stages.push(StagePlan {
            name: name.into(),
            inputs,
            outputs,
            kind,
        });
        self
    }

    pub(crate) fn work(self, name: &str, input: &str, outputs: &[&str]) -> Self {
        self.work_as(name, input, outputs, dispatcher())
    }

    pub(crate) fn work_as(
        self,
        name: &str,
        input: &str,
        outputs: &[&str],
        plan: DispatcherPlan,
    ) -> Self {
        self.stage(name, &[input], outputs, StageKind::Dispatcher(plan))
    }

    pub(crate) fn collect(
        self,
        name: &str,
        inputs: &[&str],
        outputs: &[&str],
        strategy: impl StrategyFactory + 'static,
        group_by: Option<&str>,
        t_collect: Option<u64>,
    ) -> Self {
        let plan = CollectorPlan {
            settings: name.into(),
            strategy: Arc::new(strategy),
            group_by: group_by.map(Into::into),
            t_collect: t_collect.map(Duration::from_secs),
            late: self.late,
        };
        self.stage(name, inputs, outputs, StageKind::Collector(plan))
    }

    /// Sets the treatment of late messages at the collectors that follow.
    pub(crate) fn late(mut self, late: Late) -> Self {
        self.late = late;
        self
    }

    pub(crate) fn sequence(self, input: &str) -> Self {
        self.stage("emit", &[input], &[], StageKind::Sequencer { start: 0 })
    }

    /// Says that a stage cuts blocks into parts.
    pub(crate) fn cuts_blocks(mut self) -> Self {
        self.cuts_blocks = true;
        self
    }

    pub(crate) fn deadline(mut self, slot: u64, drop_missed: bool) -> Self {
        let slot = Duration::from_millis(slot);
        self.deadline = Some(Deadline { slot, drop_missed });
        self
    }

    pub(crate) fn mill(mut self) -> Mill {
        for (ix, queue) in self.queues.iter_mut().enumerate() {
            let writes = |stage: &&StagePlan| stage.outputs.contains(&QueueIx(ix));
            queue.many_writers = self.stages.iter().filter(writes).count() > 1;
        }
        Mill::new(Plan {
            workflow: "test".into(),
            stages: self.stages,
            queues: self.queues,
            sources: [("blocks", false), ("outside", true)]
                .map(|(name, takes_submissions)| SourcePlan {
                    name: name.into(),
                    output: QueueIx(0),
                    takes_submissions,
                })
                .into(),
            retain_blocks: 100,
            cuts_blocks: self.cuts_blocks,
            deadline: self.deadline,
        })
    }
}
