//! The source of a program's ports.

use std::sync::Arc;

use super::line::Line;
use super::{HostPort, OperatorPort, SinkPort, SourcePort, WorkerPort};
use crate::plan::Plan;

/// Makes ports to one coordinator. Over the bus, the leader refuses messages of other roles than
/// the client's: see [`admit`](crate::remote::admit).
#[derive(Clone)]
pub struct Ports {
    line: Line,
    plan: Arc<Plan>,
}

// === impl Ports ===

impl Ports {
    pub(crate) fn new(line: Line, plan: Arc<Plan>) -> Self {
        Self { line, plan }
    }

    /// A port for the workers of dispatchers.
    pub fn worker(&self) -> WorkerPort {
        WorkerPort::new(self.line.clone(), self.plan.clone())
    }

    /// A port for hosts of collectors.
    pub fn host(&self) -> HostPort {
        HostPort::new(self.line.clone())
    }

    /// A port for the sink.
    pub fn sink(&self) -> SinkPort {
        SinkPort::new(self.line.clone(), self.plan.clone())
    }

    /// A port for sources, and for producers that submit messages.
    pub fn source(&self) -> SourcePort {
        SourcePort::new(self.line.clone(), self.plan.clone())
    }

    /// A port for operators.
    pub fn operator(&self) -> OperatorPort {
        OperatorPort::new(self.line.clone(), self.plan.clone())
    }

    /// The plan of the workflow.
    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    pub(crate) fn line(&self) -> &Line {
        &self.line
    }
}
