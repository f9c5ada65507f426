//! The port of a host of collectors.

use tokio::sync::mpsc;

use super::line::{Attachment, Line};
use crate::conversation::{HostCommand, HostEvent, HostJoin};
use crate::coordinator::CoordinatorGone;

/// The connection of a host of collectors to the coordinator; cheap to clone.
#[derive(Clone)]
pub struct HostPort {
    line: Line,
}

// === impl HostPort ===

impl HostPort {
    pub(super) fn new(line: Line) -> Self {
        Self { line }
    }

    /// Offers to hold partitions of collectors; the coordinator sends its commands to `commands`.
    pub async fn join(
        &self,
        join: HostJoin,
        commands: mpsc::UnboundedSender<HostCommand>,
    ) -> Result<(), CoordinatorGone> {
        let attachment = Attachment::Host(join.host.clone(), commands);
        self.line.attach(attachment).await?;
        self.say(HostEvent::Join(join)).await
    }

    /// Reports an event at a host that has joined.
    pub async fn say(&self, event: HostEvent) -> Result<(), CoordinatorGone> {
        self.line.say(event).await
    }

    /// Waits until the coordinator has stopped.
    pub async fn gone(&self) {
        self.line.gone().await;
    }
}
