//! The port of a host of collectors.

use tokio::sync::mpsc;

use super::line::{Attachment, CoordinatorLink};
use crate::conversation::{HostCommand, HostEvent, HostJoin};
use crate::coordinator::CoordinatorGone;

/// The connection of a host of collectors to the coordinator; cheap to clone.
#[derive(Clone)]
pub struct HostPort {
    link: CoordinatorLink,
}

// === impl HostPort ===

impl HostPort {
    pub(super) fn new(link: CoordinatorLink) -> Self {
        Self { link }
    }

    /// Offers to hold partitions of collectors; the coordinator sends its commands to `commands`.
    pub async fn join(
        &self,
        join: HostJoin,
        commands: mpsc::UnboundedSender<HostCommand>,
    ) -> Result<(), CoordinatorGone> {
        let attachment = Attachment::Host(join.host.clone(), commands);
        self.link.attach(attachment).await?;
        self.send_event(HostEvent::Join(join)).await
    }

    /// Reports an event at a host that has joined.
    pub async fn send_event(&self, event: HostEvent) -> Result<(), CoordinatorGone> {
        self.link.send_event(event).await
    }

    /// Waits until the coordinator has stopped.
    pub async fn gone(&self) {
        self.link.gone().await;
    }
}
