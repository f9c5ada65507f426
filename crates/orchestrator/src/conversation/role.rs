//! One type for each direction, whatever the role.

use serde::{Deserialize, Serialize};

use super::host::{HostCommand, HostEvent};
use super::sink::{SinkCommand, SinkEvent};
use super::worker::{WorkerCommand, WorkerEvent};
use crate::id::WorkerId;

/// Something that happened at a worker, a host or the sink.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum RoleEvent {
    /// At a worker.
    Worker(WorkerEvent),
    /// At a host of collectors.
    Host(HostEvent),
    /// At the sink.
    Sink(SinkEvent),
}

/// What the core has a worker, a host or the sink do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum RoleCommand {
    /// This worker.
    Worker(WorkerId, WorkerCommand),
    /// This host of collectors.
    Host(WorkerId, HostCommand),
    /// The sink.
    Sink(SinkCommand),
}

// === impl RoleEvent ===

impl RoleEvent {
    /// The worker or host of which it is a sign of life and no more.
    pub fn beat_of(&self) -> Option<&WorkerId> {
        match self {
            Self::Worker(event) => event.is_beat().then(|| event.worker()),
            Self::Host(event) => event.is_beat().then(|| event.host()),
            Self::Sink(_) => None,
        }
    }

    /// Whether something would be lost, if only work, were it not heard.
    pub fn matters(&self) -> bool {
        match self {
            Self::Worker(event) => event.carries_work(),
            Self::Host(_) | Self::Sink(SinkEvent::Attach { .. }) => false,
            Self::Sink(SinkEvent::Emitted { .. }) => true,
        }
    }
}

impl From<WorkerEvent> for RoleEvent {
    fn from(event: WorkerEvent) -> Self {
        Self::Worker(event)
    }
}

impl From<HostEvent> for RoleEvent {
    fn from(event: HostEvent) -> Self {
        Self::Host(event)
    }
}

impl From<SinkEvent> for RoleEvent {
    fn from(event: SinkEvent) -> Self {
        Self::Sink(event)
    }
}
