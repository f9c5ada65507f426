//! Roles of a cluster's processes on the bus.

use std::fmt;

/// Role of a process on the bus. It determines the subjects that the process uses, and whether it
/// creates the streams it needs. Its actual permissions are those of its user on the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Role {
    /// Leads workflows: writes the log, and creates missing streams.
    #[default]
    Coordinator,
    /// Runs tasks.
    Dispatcher,
    /// Gathers messages into groups.
    Collector,
    /// Delivers emitted payloads to the sinks.
    Sequencer,
    /// Produces messages.
    Source,
    /// A person's commands: queries, and changes that a person may make.
    Operator,
}

// === impl Role ===

impl Role {
    /// The name in subjects.
    pub fn name(self) -> &'static str {
        match self {
            Self::Coordinator => "coordinator",
            Self::Dispatcher => "dispatcher",
            Self::Collector => "collector",
            Self::Sequencer => "sequencer",
            Self::Source => "source",
            Self::Operator => "operator",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
