//! The workflow's plan in the form that the core uses, computed once.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::tasks::Class;
use crate::id::TaskId;
use crate::plan::{Needs, Plan, QueueIx, StageIx};
use crate::record::RecordKey;

/// The stages by name, the worker groups, and the connections between stages and queues.
pub(super) struct Layout {
    stage_ix: HashMap<Arc<str>, StageIx>,
    names: Vec<Arc<str>>,
    /// The stages in the order of their names, which is that of their tasks' ids.
    by_name: Vec<StageIx>,
    /// Whether all outputs of a stage end up at the sequencer; by stage.
    leads: Vec<bool>,
    /// Whether a stage reads a queue that no stage writes; by stage.
    entrances: Vec<bool>,
    groups: Vec<Arc<str>>,
    /// Worker group and class of a stage's tasks, `None` if no worker runs them; by stage.
    classes: Vec<Option<(usize, Class)>>,
    /// Stages that write a queue; by queue.
    writers: Vec<Vec<StageIx>>,
}

// === impl Layout ===

impl Layout {
    pub(super) fn new(plan: &Plan) -> Self {
        let dispatchers = plan.stages.iter().filter_map(|stage| stage.dispatcher());
        let groups: BTreeSet<Arc<str>> = dispatchers.map(|of| of.group.clone()).collect();
        let groups: Vec<Arc<str>> = groups.into_iter().collect();
        let stages = || plan.stages.iter().enumerate();
        let names = stages().map(|(ix, stage)| (stage.name.clone(), StageIx(ix)));
        let classes = stages().map(|(ix, stage)| {
            let dispatcher = stage.dispatcher()?;
            let group = groups.iter().position(|group| *group == dispatcher.group)?;
            Some((group, Arc::new((StageIx(ix), dispatcher.needs.clone()))))
        });
        let classes = classes.collect();
        let writers = (0..plan.queues.len()).map(|queue| {
            let writes = |ix: &usize| plan.stages[*ix].outputs.contains(&QueueIx(queue));
            let writers = (0..plan.stages.len()).filter(writes);
            writers.map(StageIx).collect()
        });
        let writers: Vec<Vec<StageIx>> = writers.collect();
        let entrances = plan.stages.iter().map(|stage| {
            let mut inputs = stage.inputs.iter();
            inputs.any(|queue| writers[queue.0].is_empty())
        });
        let mut by_name: Vec<StageIx> = (0..plan.stages.len()).map(StageIx).collect();
        by_name.sort_by_key(|stage| &plan.stages[stage.0].name);
        Self {
            stage_ix: names.collect(),
            names: plan.stages.iter().map(|stage| stage.name.clone()).collect(),
            by_name,
            leads: plan.leads_to_sequencer(),
            entrances: entrances.collect(),
            groups,
            classes,
            writers,
        }
    }

    /// Stage of a task; `None` if the workflow does not have it.
    pub(super) fn stage_of(&self, id: &TaskId) -> Option<StageIx> {
        self.stage_named(&id.stage)
    }

    pub(super) fn stage_named(&self, name: &str) -> Option<StageIx> {
        self.stage_ix.get(name).copied()
    }

    pub(super) fn name(&self, stage: StageIx) -> &Arc<str> {
        &self.names[stage.0]
    }

    /// The stages in the order of their names.
    pub(super) fn stages_by_name(&self) -> &[StageIx] {
        &self.by_name
    }

    /// Number of stages.
    pub(super) fn stages(&self) -> usize {
        self.names.len()
    }

    /// Stage of the task that a record is about; `None` for records that do not describe a task's state.
    pub(super) fn stage_of_key(&self, key: &RecordKey) -> Option<StageIx> {
        match key {
            RecordKey::Task(id)
            | RecordKey::Done(id)
            | RecordKey::Dead(id)
            | RecordKey::Attempts(id) => self.stage_of(id),
            _ => None,
        }
    }

    /// Whether all outputs of a stage end up at the sequencer.
    pub(super) fn leads_to_sequencer(&self, stage: StageIx) -> bool {
        self.leads[stage.0]
    }

    /// Whether a stage reads a queue that no stage writes.
    pub(super) fn is_entrance(&self, stage: StageIx) -> bool {
        self.entrances[stage.0]
    }

    /// Names of the worker groups, in order.
    pub(super) fn groups(&self) -> &[Arc<str>] {
        &self.groups
    }

    /// Number of the worker group with this name.
    pub(super) fn group_named(&self, name: &str) -> Option<usize> {
        self.groups.iter().position(|group| **group == *name)
    }

    /// Worker group and class of a task of `stage` with these needs; `None` if no worker runs tasks of the
    /// stage.
    pub(super) fn class_of(&self, stage: StageIx, needs: Option<&Needs>) -> Option<(usize, Class)> {
        let (group, class) = self.classes[stage.0].as_ref()?;
        let class = match needs {
            Some(needs) if *needs != class.1 => Arc::new((stage, needs.clone())),
            _ => Arc::clone(class),
        };
        Some((*group, class))
    }

    /// Stages that write a queue.
    pub(super) fn writers(&self, queue: QueueIx) -> &[StageIx] {
        &self.writers[queue.0]
    }
}
