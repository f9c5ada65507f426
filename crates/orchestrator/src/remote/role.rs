//! Roles of a cluster's processes.

use std::fmt;

use proofmill_bus::{Membership, MissingStream};

/// Role of a process of a cluster. It determines the subjects that the process uses, and whether it
/// creates the streams it needs. Its actual permissions are those of its user on the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Leads workflows: writes the log, and creates missing streams.
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
    /// The console of a cluster: queries without payloads, and no change.
    Console,
}

// === impl Role ===

impl Role {
    /// The name in subjects.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Coordinator => "coordinator",
            Self::Dispatcher => "dispatcher",
            Self::Collector => "collector",
            Self::Sequencer => "sequencer",
            Self::Source => "source",
            Self::Operator => "operator",
            Self::Console => "console",
        }
    }

    /// Membership with which a process of this role connects to the bus. Coordinators create the
    /// streams; an operator, who waits for an answer, gets an error if there are none.
    pub const fn membership(self) -> Membership {
        let creator = Self::Coordinator.name();
        let missing_stream = match self {
            Self::Coordinator => MissingStream::Create,
            Self::Dispatcher | Self::Collector | Self::Sequencer | Self::Source | Self::Console => {
                MissingStream::Wait { creator }
            }
            Self::Operator => MissingStream::Fail { creator },
        };
        let membership = Membership::new(self.name(), missing_stream);
        match self {
            // Workers of other users must not receive the answers.
            Self::Dispatcher => membership.with_user(),
            _ => membership,
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
