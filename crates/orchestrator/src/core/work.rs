//! Reports of work on blocks, as it begins and ends, for observers outside of the core. No decision depends on them.

use std::sync::Arc;

use crate::record::TaskRecord;

/// A report of work on blocks. Times are milliseconds since 1970-01-01 UTC.
#[derive(Clone, Debug)]
pub enum WorkEvent {
    /// A message from outside was accepted. A message becomes a task of each stage that reads its queue, so that this may
    /// come several times.
    Accepted {
        /// First block of the message.
        first: u64,
        /// Its last block, inclusive.
        last: u64,
        /// Time of acceptance.
        at_ms: u64,
    },
    /// A worker was given a task.
    Begun {
        /// Stage of the task.
        stage: Arc<str>,
        /// First block of the task.
        first: u64,
        /// Its last block, inclusive.
        last: u64,
        /// Beginning of the lease.
        at_ms: u64,
    },
    /// The sequencer has emitted a message.
    Emitted {
        /// The sequencer's task. Its time of acceptance is that of the last result.
        task: Arc<TaskRecord>,
    },
    /// The sequencer emitted a message before the observer came.
    EmittedBefore {
        /// First block of the message.
        first: u64,
        /// Its last block, inclusive.
        last: u64,
        /// Acceptance of the sequencer's task.
        at_ms: u64,
        /// Beginnings of its blocks' tasks: the first of each stage, as far as the history knows them.
        begun: Vec<(Arc<str>, u64)>,
    },
}
