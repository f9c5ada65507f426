//! `partition.*`: the steps of one proof for a circuit in parts, as stages of a workflow.
//!
//! `partition.trace`, `partition.challenge` and `partition.aggregate` are the coordinator's steps: they need the job's
//! file, with the witness's path and the seed. `partition.commit` and `partition.prove` are the workers' steps: they
//! need the keys only, and the coordinator checks their results before these count.

mod job;
mod messages;
mod parts;
mod steps;

pub(crate) use job::Job;

use proofmill_orchestrator::mill::Registry;

use job::JobFile;
use parts::WorkerKeys;

/// Registers the provers.
pub(super) fn register(registry: &mut Registry) {
    registry.prover("partition.trace", |params| {
        Ok(steps::Trace(JobFile::of(params)?))
    });
    registry.prover("partition.challenge", |params| {
        Ok(steps::Challenge(JobFile::of(params)?))
    });
    registry.verifier("partition.aggregate", |params| {
        Ok(steps::Aggregate(JobFile::of(params)?))
    });
    registry.checked_prover("partition.commit", |params| {
        Ok(steps::Commit(WorkerKeys::of(params)?))
    });
    registry.checked_prover("partition.prove", |params| {
        Ok(steps::Prove(WorkerKeys::of(params)?))
    });
}
