//! State shared by every check: the workflow, its stages and queues, and the faults found so far.

use crate::diagnostic::{Code, Diagnostic};
use crate::document::{Document, Field};
use crate::fields::Faults;
use crate::host::Host;
use crate::linked::{LinkedStage, LinkedWorkflow, QueueId, StageId};
use crate::model::Workflow;

/// State shared by every check.
pub(super) struct Checker<'a> {
    pub(super) workflow: &'a Workflow,
    pub(super) host: &'a dyn Host,
    pub(super) linked: LinkedWorkflow,
    pub(super) found: Vec<Diagnostic>,
}

// === impl Checker ===

impl<'a> Checker<'a> {
    pub(super) fn new(workflow: &'a Workflow, host: &'a dyn Host) -> Self {
        Self {
            workflow,
            host,
            linked: workflow.link(),
            found: Vec::new(),
        }
    }

    pub(super) fn document(&self) -> &'a Document {
        &self.workflow.document
    }

    /// Whether the limit of faults is reached, so that further checks can be skipped.
    pub(super) fn full(&self) -> bool {
        self.found.len() >= Faults::MAX
    }

    pub(super) fn push(
        &mut self,
        code: Code,
        field: &Field,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        if !self.full() {
            self.found
                .push(Diagnostic::new(self.document(), code, field, message, help));
        }
    }

    /// The table that a stage was read from.
    pub(super) fn stage_field(&self, id: StageId) -> Field {
        let mut index = id.0;
        let workflow = self.workflow;
        for (section, count) in [
            ("source", workflow.sources.len()),
            ("dispatcher", workflow.dispatchers.len()),
            ("collector", workflow.collectors.len()),
        ] {
            if index < count {
                return self.document().origin(section, index);
            }
            index -= count;
        }
        Field::table("sequencer")
    }

    /// The field in which a stage names a queue that it reads.
    pub(super) fn input_field(&self, id: StageId, queue: QueueId) -> Field {
        let stage = self.linked.stage(id);
        let at = self.stage_field(id);
        let list = at.child("inputs");
        if self.document().has(&list) {
            self.mention(&list, &stage.inputs, queue)
        } else {
            at.child("input")
        }
    }

    /// The field in which a stage names a queue that it writes.
    pub(super) fn output_field(&self, id: StageId, queue: QueueId) -> Field {
        let list = self.stage_field(id).child("output");
        self.mention(&list, &self.linked.stage(id).outputs, queue)
    }

    fn mention(&self, list: &Field, queues: &[QueueId], queue: QueueId) -> Field {
        let index = queues.iter().position(|&other| other == queue).unwrap_or(0);
        let item = list.item(index);
        if self.document().has(&item) {
            item
        } else {
            list.clone()
        }
    }

    pub(super) fn stages(&self) -> impl Iterator<Item = &LinkedStage> {
        self.linked.stages.iter()
    }

    pub(super) fn queue_name(&self, id: QueueId) -> &str {
        &self.linked.queue(id).name
    }

    pub(super) fn stage_name(&self, id: StageId) -> &str {
        &self.linked.stage(id).name
    }
}
