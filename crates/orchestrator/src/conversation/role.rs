//! Events and commands of all roles, as one type for each direction.

use serde::{Deserialize, Serialize};

use super::host::{HostCommand, HostEvent};
use super::sink::{SinkCommand, SinkEvent};
use super::worker::{WorkerCommand, WorkerEvent};
use crate::id::WorkerId;

/// An event at a worker, a host or the sink.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum RoleEvent {
    /// An event at a worker.
    Worker(WorkerEvent),
    /// An event at a host of collectors.
    Host(HostEvent),
    /// An event at the sink.
    Sink(SinkEvent),
}

/// A command of the core to a worker, a host or the sink.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum RoleCommand {
    /// A command to this worker.
    Worker(WorkerId, WorkerCommand),
    /// A command to this host of collectors.
    Host(WorkerId, HostCommand),
    /// A command to the sink.
    Sink(SinkCommand),
}

// === impl RoleEvent ===

impl RoleEvent {
    /// Worker or host of a heartbeat; `None` for other events.
    pub fn heartbeat_sender(&self) -> Option<&WorkerId> {
        match self {
            Self::Worker(event) => event.is_heartbeat().then(|| event.worker()),
            Self::Host(event) => event.is_heartbeat().then(|| event.host()),
            Self::Sink(_) => None,
        }
    }

    /// Whether losing the event would lose a result, or work.
    pub fn must_deliver(&self) -> bool {
        match self {
            Self::Worker(event) => event.must_deliver(),
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
