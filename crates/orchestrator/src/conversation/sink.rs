//! The conversation with the sink, which carries messages out of the workflow.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::id::TaskId;
use crate::record::TaskRecord;

/// Something that happened at the sink.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum SinkEvent {
    /// The sink takes what is emitted from now on, in the place of any other. The server beside the
    /// coordinator deals with it: to the core it means nothing.
    Attach {
        /// Term of the lease under which the sink runs: one of an earlier term does not take it over.
        term: u64,
    },
    /// The sink has what [`SinkCommand::Emit`] handed over, durably.
    Emitted {
        /// The task.
        task: TaskId,
        /// The sinks that have it, each by what it is and where: a file, an address, a subject.
        places: Vec<String>,
    },
}

/// What the core has the sink do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum SinkCommand {
    /// Carry this message out: it is its turn in the order of the chain.
    Emit(Arc<TaskRecord>),
}
