//! Where a program gets its ports from.

use std::sync::Arc;

use super::line::Line;
use super::{HostPort, OperatorPort, SinkPort, SourcePort, WorkerPort};
use crate::plan::Plan;

/// Gives out ports to one coordinator. Over the bus, whoever leads refuses what another role than the
/// client's says: see [`admit`](crate::remote::admit).
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

    /// A port for sources, and for those who submit.
    pub fn source(&self) -> SourcePort {
        SourcePort::new(self.line.clone(), self.plan.clone())
    }

    /// A port for operators.
    pub fn operator(&self) -> OperatorPort {
        OperatorPort::new(self.line.clone(), self.plan.clone())
    }

    /// The workflow.
    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    pub(crate) fn line(&self) -> &Line {
        &self.line
    }
}
