//! The resident proving engine: keys stay in memory, stages of many proofs overlap, and memory stays
//! within one byte budget.
//!
//! [`Service::open`] makes an engine from [`Options`], [`Service::run`] does its work, and a
//! [`Handle`] is what callers hold.

mod budget;
// Declared here: the budget's folder is also compiled into the test that model-checks it.
#[cfg(test)]
#[path = "budget/tests.rs"]
mod budget_tests;
mod generator;
mod handle;
mod interface;
mod options;
mod service;
mod sync;
mod upload;

pub use generator::{Generator, GeneratorProgram, WitnessGenerator};
pub use handle::Handle;
pub use interface::{
    BudgetStatus, CircuitId, CircuitRef, CircuitSource, CircuitView, ConstraintsFrom, DeviceStatus,
    Error, Event, EventKind, Input, InvalidId, InvalidName, InvalidPriority, JobCounts, JobId,
    JobResult, JobState, JobView, MAX_NAME_BYTES, Owner, OwnerUse, Partition, PartitionProof,
    Priority, Registration, RequestId, Resource, Secret, Span, Stage, StageEnd, StageStatus,
    Status, Submission, Submitted, Tier, check_name,
};
pub use options::{DeviceOptions, Fault, Interference, KeyForm, Limits, Options, StageWorkers};
pub use service::Service;
pub use upload::Upload;
