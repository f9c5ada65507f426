//! The port of a dispatcher's workers.

use std::sync::Arc;

use tokio::sync::mpsc;

use super::line::{Attachment, CoordinatorLink};
use crate::conversation::{WorkerCommand, WorkerEvent, WorkerJoin};
use crate::coordinator::CoordinatorGone;
use crate::plan::Plan;

/// The connection of a worker to the coordinator; cheap to clone.
#[derive(Clone)]
pub struct WorkerPort {
    link: CoordinatorLink,
    plan: Arc<Plan>,
}

// === impl WorkerPort ===

impl WorkerPort {
    pub(super) fn new(link: CoordinatorLink, plan: Arc<Plan>) -> Self {
        Self { link, plan }
    }

    /// The plan of the workflow.
    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// Offers a worker; the coordinator sends its commands to `commands`.
    pub async fn join(
        &self,
        join: WorkerJoin,
        commands: mpsc::UnboundedSender<WorkerCommand>,
    ) -> Result<(), CoordinatorGone> {
        let attachment = Attachment::Worker(join.worker.clone(), commands);
        self.link.attach(attachment).await?;
        self.send_event(WorkerEvent::Join(join)).await
    }

    /// Reports an event at a worker that has joined.
    pub async fn send_event(&self, event: WorkerEvent) -> Result<(), CoordinatorGone> {
        self.link.send_event(event).await
    }
}
