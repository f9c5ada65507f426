//! The types that callers and the engine exchange.

mod circuit;
mod error;
mod event;
mod id;
mod input;
mod job;
mod priority;
mod proof;
mod status;

pub use circuit::{
    CircuitRef, CircuitSource, CircuitView, ConstraintsFrom, InvalidName, MAX_NAME_BYTES,
    Registration, Tier, check_name,
};
pub use error::{Error, Resource};
pub(crate) use error::{Mib, listed};
pub use event::{Event, EventKind, PipelineStage, Span, StageEnd};
pub use id::{CircuitId, InvalidId, JobId, RequestId};
pub use input::{Input, Partition, Secret, Submission};
pub use job::{JobResult, JobState, JobView, Submitted};
pub use priority::{InvalidPriority, Priority};
#[cfg(test)]
pub(crate) use proof::proof_for_tests;
pub use proof::{AnyProof, MalformedProof, PartitionProof, ProofOf};
pub use status::{
    BudgetStatus, DeviceStatus, JobCounts, Load, Owner, OwnerUse, StageStatus, Status,
};
