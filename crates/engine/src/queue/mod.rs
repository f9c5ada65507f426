//! State that survives a restart: accepted jobs, their results and the list of circuits, in the embedded
//! log.

mod journal;
mod record;

pub(crate) use journal::{Journal, Recovered};
pub(crate) use record::{EndRecord, InputRecord, JobRecord, PartitionRecord, ProofRecord};
