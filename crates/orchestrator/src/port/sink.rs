//! The port of the sink.

use std::sync::Arc;

use tokio::sync::mpsc;

use super::line::{Attachment, CoordinatorLink};
use crate::conversation::{SinkCommand, SinkEvent};
use crate::coordinator::CoordinatorGone;
use crate::id::TaskId;
use crate::plan::Plan;

/// The connection of the sink to the coordinator; cheap to clone.
#[derive(Clone)]
pub struct SinkPort {
    link: CoordinatorLink,
    plan: Arc<Plan>,
}

// === impl SinkPort ===

impl SinkPort {
    pub(super) fn new(link: CoordinatorLink, plan: Arc<Plan>) -> Self {
        Self { link, plan }
    }

    /// The plan of the workflow.
    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// Receives the sequencer's emissions, in order. There is one receiver at a time: a new one
    /// replaces the old.
    pub async fn attach(
        &self,
        commands: mpsc::UnboundedSender<SinkCommand>,
    ) -> Result<(), CoordinatorGone> {
        self.link.attach(Attachment::Sink(commands)).await
    }

    /// Reports that the sinks have durably stored a message, in these places.
    pub async fn emitted(&self, task: TaskId, places: Vec<String>) -> Result<(), CoordinatorGone> {
        self.link
            .send_event(SinkEvent::Emitted { task, places })
            .await
    }
}
