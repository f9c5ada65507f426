//! What a dispatcher may say of its worker.

use std::sync::Arc;

use tokio::sync::mpsc;

use super::line::{Attachment, Line};
use crate::conversation::{Join, WorkerCommand, WorkerEvent};
use crate::coordinator::CoordinatorGone;
use crate::plan::Plan;

/// A worker's way to the coordinator; cheap to clone.
#[derive(Clone)]
pub struct WorkerPort {
    line: Line,
    plan: Arc<Plan>,
}

// === impl WorkerPort ===

impl WorkerPort {
    pub(super) fn new(line: Line, plan: Arc<Plan>) -> Self {
        Self { line, plan }
    }

    /// The workflow.
    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// Offers a worker; the coordinator talks to it through `commands`.
    pub async fn join(
        &self,
        join: Join,
        commands: mpsc::UnboundedSender<WorkerCommand>,
    ) -> Result<(), CoordinatorGone> {
        let attachment = Attachment::Worker(join.worker.clone(), commands);
        self.line.attach(attachment).await?;
        self.say(WorkerEvent::Join(join)).await
    }

    /// Says what has happened at a worker that has joined.
    pub async fn say(&self, event: WorkerEvent) -> Result<(), CoordinatorGone> {
        self.line.say(event).await
    }
}
