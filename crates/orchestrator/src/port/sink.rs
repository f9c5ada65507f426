//! What the sink may say.

use std::sync::Arc;

use tokio::sync::mpsc;

use super::line::{Attachment, Line};
use crate::conversation::{SinkCommand, SinkEvent};
use crate::coordinator::CoordinatorGone;
use crate::id::TaskId;
use crate::plan::Plan;

/// The sink's way to the coordinator; cheap to clone.
#[derive(Clone)]
pub struct SinkPort {
    line: Line,
    plan: Arc<Plan>,
}

// === impl SinkPort ===

impl SinkPort {
    pub(super) fn new(line: Line, plan: Arc<Plan>) -> Self {
        Self { line, plan }
    }

    /// The workflow.
    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// Receives what the sequencer emits, in order. One receiver at a time: a new one takes the
    /// place of the old.
    pub async fn attach(
        &self,
        commands: mpsc::UnboundedSender<SinkCommand>,
    ) -> Result<(), CoordinatorGone> {
        self.line.attach(Attachment::Sink(commands)).await
    }

    /// The sinks have it, durably, in these places.
    pub async fn emitted(&self, task: TaskId, places: Vec<String>) -> Result<(), CoordinatorGone> {
        self.line.say(SinkEvent::Emitted { task, places }).await
    }
}
