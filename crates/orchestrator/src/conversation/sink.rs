//! Messages between the core and the sink, which carries messages out of the workflow.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::id::TaskId;
use crate::record::TaskRecord;

/// An event at the sink.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum SinkEvent {
    /// The sink takes over from any other and receives all further emissions. Handled by the server beside
    /// the coordinator; the core ignores it.
    Attach {
        /// Term of the lease under which the sink runs. A sink of an earlier term does not replace one of a
        /// later term.
        term: u64,
    },
    /// The sink has durably stored the message of a [`SinkCommand::Emit`].
    Emitted {
        /// The task.
        task: TaskId,
        /// Sinks that have the message, each by its kind and place: a file, an address, a subject.
        places: Vec<String>,
    },
}

/// A command of the core to the sink.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum SinkCommand {
    /// Carry out this message, which is next in the order of the chain.
    Emit(Arc<TaskRecord>),
}
