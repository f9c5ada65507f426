//! Which of a cluster's processes connects.

use std::fmt;

/// What a process does on the bus. The subjects it may use follow from it, and whether it makes the
/// streams that it needs; what it may in truth do is decided by the server, by its user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Role {
    /// Leads workflows: writes the log, and makes whatever is not there.
    #[default]
    Coordinator,
    /// Runs tasks.
    Dispatcher,
    /// Gathers what tasks bring.
    Collector,
    /// Hands out what leaves.
    Sequencer,
    /// Brings work.
    Source,
    /// Asks, and changes what a person may change.
    Operator,
}

// === impl Role ===

impl Role {
    /// Its name in subjects.
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
