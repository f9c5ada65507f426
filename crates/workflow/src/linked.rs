//! The workflow with its stages and queues by index, and links in both directions.

use std::collections::{BTreeSet, HashMap};

use crate::model::{Collector, Dispatcher, Sequencer, Source, Strategy, Workflow};
use crate::value::JsonPointer;

/// Index of a stage in [`LinkedWorkflow::stages`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StageId(pub usize);

/// Index of a queue in [`LinkedWorkflow::queues`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueueId(pub usize);

/// Stages and queues by index, with links in both directions.
#[derive(Clone, Debug)]
pub struct LinkedWorkflow {
    /// The workflow's name.
    pub name: String,
    /// Sources, then dispatchers, then collectors, then the sequencer, each in the file's order.
    pub stages: Vec<LinkedStage>,
    /// Every queue, in the order of first mention.
    pub queues: Vec<LinkedQueue>,
}

/// A stage, and the queues it reads and writes.
#[derive(Clone, Debug)]
pub struct LinkedStage {
    /// Its index.
    pub id: StageId,
    /// Its name, unique among the stages.
    pub name: String,
    /// Queues read, in the file's order.
    pub inputs: Vec<QueueId>,
    /// Queues written, in the file's order.
    pub outputs: Vec<QueueId>,
    /// The stage's kind and settings.
    pub kind: StageKind,
}

/// Kind and settings of a stage.
#[expect(
    clippy::large_enum_variant,
    reason = "a workflow has a few stages, and they are not moved about"
)]
#[derive(Clone, Debug)]
pub enum StageKind {
    /// Makes messages.
    Source(Source),
    /// Runs a prover on each message.
    Dispatcher(Dispatcher),
    /// Gathers messages into groups.
    Collector(Collector),
    /// Emits in chain order.
    Sequencer(Sequencer),
}

/// A queue, and the stages that write and read it.
#[derive(Clone, Debug)]
pub struct LinkedQueue {
    /// Its index.
    pub id: QueueId,
    /// Its name.
    pub name: String,
    /// Limit of waiting tasks, above which producers wait.
    pub q_max: u32,
    /// Stages that write it.
    pub writers: Vec<StageId>,
    /// Stages that read it; each gets every message.
    pub readers: Vec<StageId>,
    /// For each reader that groups by value, the pointer to that value in a message's payload.
    pub grouping: Vec<(StageId, JsonPointer)>,
}

// === impl LinkedWorkflow ===

impl LinkedWorkflow {
    pub(crate) fn new(workflow: &Workflow) -> Self {
        let mut queues: Vec<LinkedQueue> = workflow
            .queues
            .iter()
            .enumerate()
            .map(|(index, queue)| LinkedQueue {
                id: QueueId(index),
                name: queue.name.clone(),
                q_max: queue.q_max,
                writers: Vec::new(),
                readers: Vec::new(),
                grouping: Vec::new(),
            })
            .collect();
        let ids: HashMap<&str, QueueId> = workflow
            .queues
            .iter()
            .enumerate()
            .map(|(index, queue)| (queue.name.as_str(), QueueId(index)))
            .collect();
        let find = |names: &[String]| -> Vec<QueueId> {
            names
                .iter()
                .filter_map(|name| ids.get(name.as_str()).copied())
                .collect()
        };

        let sources = workflow.sources.iter().map(|stage| {
            (
                stage.name.clone(),
                vec![],
                find(&stage.outputs),
                StageKind::Source(stage.clone()),
            )
        });
        let dispatchers = workflow.dispatchers.iter().map(|stage| {
            let inputs = find(std::slice::from_ref(&stage.input));
            let kind = StageKind::Dispatcher(stage.clone());
            (stage.name.clone(), inputs, find(&stage.outputs), kind)
        });
        let collectors = workflow.collectors.iter().map(|stage| {
            let kind = StageKind::Collector(stage.clone());
            (
                stage.name.clone(),
                find(&stage.inputs),
                find(&stage.outputs),
                kind,
            )
        });
        let sequencer = workflow.sequencer.iter().map(|stage| {
            let inputs = find(std::slice::from_ref(&stage.input));
            (
                Sequencer::NAME.to_owned(),
                inputs,
                vec![],
                StageKind::Sequencer(stage.clone()),
            )
        });

        let mut stages: Vec<LinkedStage> = Vec::new();
        for (name, inputs, outputs, kind) in sources
            .chain(dispatchers)
            .chain(collectors)
            .chain(sequencer)
        {
            let id = StageId(stages.len());
            for queue in &inputs {
                queues[queue.0].readers.push(id);
                if let StageKind::Collector(collector) = &kind
                    && let Strategy::Match { group_by, .. } = &collector.strategy
                {
                    queues[queue.0].grouping.push((id, group_by.clone()));
                }
            }
            for queue in &outputs {
                queues[queue.0].writers.push(id);
            }
            stages.push(LinkedStage {
                id,
                name,
                inputs,
                outputs,
                kind,
            });
        }
        Self {
            name: workflow.name.clone(),
            stages,
            queues,
        }
    }

    /// The stage with this index.
    ///
    /// # Panics
    /// If the index is out of range: it belongs to another workflow.
    pub fn stage(&self, id: StageId) -> &LinkedStage {
        &self.stages[id.0]
    }

    /// The indices of all stages.
    pub fn stage_ids(&self) -> impl Iterator<Item = StageId> + use<> {
        (0..self.stages.len()).map(StageId)
    }

    /// The queue with this index.
    ///
    /// # Panics
    /// If the index is out of range: it belongs to another workflow.
    pub fn queue(&self, id: QueueId) -> &LinkedQueue {
        &self.queues[id.0]
    }

    /// The stages whose messages the sequencer emits, as they are or in groups: the sources and
    /// dispatchers that write its queue, directly or through collectors.
    pub fn emitters(&self) -> BTreeSet<StageId> {
        let sequencer = self.stages.iter();
        let sequencer = sequencer.filter(|stage| matches!(stage.kind, StageKind::Sequencer(_)));
        let mut queues: Vec<QueueId> = sequencer.flat_map(|stage| stage.inputs.clone()).collect();
        let mut seen: BTreeSet<QueueId> = queues.iter().copied().collect();
        let mut emitters = BTreeSet::new();
        while let Some(queue) = queues.pop() {
            for writer in &self.queue(queue).writers {
                let stage = self.stage(*writer);
                if matches!(stage.kind, StageKind::Collector(_)) {
                    let unseen = stage.inputs.iter().filter(|input| seen.insert(**input));
                    queues.extend(unseen);
                } else {
                    emitters.insert(*writer);
                }
            }
        }
        emitters
    }

    /// The stage called `name`.
    pub fn stage_by_name(&self, name: &str) -> Option<&LinkedStage> {
        self.stages.iter().find(|stage| stage.name == name)
    }

    /// The queue called `name`.
    pub fn queue_by_name(&self, name: &str) -> Option<&LinkedQueue> {
        self.queues.iter().find(|queue| queue.name == name)
    }
}

impl Workflow {
    /// Stages and queues by index, with links in both directions.
    pub fn link(&self) -> LinkedWorkflow {
        LinkedWorkflow::new(self)
    }
}
