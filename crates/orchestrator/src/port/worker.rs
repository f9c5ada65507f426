//! The port of a dispatcher's workers.

use std::sync::Arc;

use tokio::sync::mpsc;

use super::line::{Attachment, Line};
use crate::conversation::{Join, WorkerCommand, WorkerEvent};
use crate::coordinator::CoordinatorGone;
use crate::plan::Plan;

/// The connection of a worker to the coordinator; cheap to clone.
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

    /// The plan of the workflow.
    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// Offers a worker; the coordinator sends its commands to `commands`.
    pub async fn join(
        &self,
        join: Join,
        commands: mpsc::UnboundedSender<WorkerCommand>,
    ) -> Result<(), CoordinatorGone> {
        let attachment = Attachment::Worker(join.worker.clone(), commands);
        self.line.attach(attachment).await?;
        self.say(WorkerEvent::Join(join)).await
    }

    /// Reports an event at a worker that has joined.
    pub async fn say(&self, event: WorkerEvent) -> Result<(), CoordinatorGone> {
        self.line.say(event).await
    }
}
