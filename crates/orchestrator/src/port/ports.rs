//! The source of a program's ports.

use std::sync::Arc;

use super::line::CoordinatorLink;
use super::{HostPort, OperatorPort, SinkPort, SourcePort, WorkerPort};
use crate::plan::Plan;

/// Makes ports to one coordinator. Over the bus, the leader refuses messages of other roles than
/// the client's: see [`admit`](crate::remote::admit).
#[derive(Clone)]
pub struct Ports {
    link: CoordinatorLink,
    plan: Arc<Plan>,
}

// === impl Ports ===

impl Ports {
    pub(crate) fn new(link: CoordinatorLink, plan: Arc<Plan>) -> Self {
        Self { link, plan }
    }

    /// A port for the workers of dispatchers.
    pub fn worker(&self) -> WorkerPort {
        WorkerPort::new(self.link.clone(), self.plan.clone())
    }

    /// A port for hosts of collectors.
    pub fn host(&self) -> HostPort {
        HostPort::new(self.link.clone())
    }

    /// A port for the sink.
    pub fn sink(&self) -> SinkPort {
        SinkPort::new(self.link.clone(), self.plan.clone())
    }

    /// A port for sources, and for producers that submit messages.
    pub fn source(&self) -> SourcePort {
        SourcePort::new(self.link.clone(), self.plan.clone())
    }

    /// A port for operators.
    pub fn operator(&self) -> OperatorPort {
        OperatorPort::new(self.link.clone(), self.plan.clone())
    }

    /// The plan of the workflow.
    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    pub(crate) fn link(&self) -> &CoordinatorLink {
        &self.link
    }
}
