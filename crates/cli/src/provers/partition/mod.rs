//! `partition.*`: the steps of one proof for a circuit in parts, as stages of a workflow.
//!
//! `partition.trace`, `partition.challenge` and `partition.aggregate` are the coordinator's steps: they need the job's
//! file, with the witness's path and the seed. `partition.commit` and `partition.prove` are the workers' steps: they
//! need the keys only, and the coordinator checks their results before these count.

mod batches;
mod engines;
mod job;
mod messages;
mod parts;
mod published;
mod shared;
mod steps;

pub(crate) use batches::{Batches, PARTS_MAX};
pub(crate) use engines::circuit_name as engine_circuit_name;
pub(crate) use job::Job;
pub(crate) use published::{PublishedKeys, store as published_store};

use std::sync::Arc;

use proofmill_orchestrator::mill::Registry;

use job::{JobFile, Jobs};
use parts::{LoadedKeys, WorkerKeys};

/// Registers the provers. Keys that are not on this machine are fetched from where they are published.
pub(super) fn register(registry: &mut Registry, published: Option<PublishedKeys>) {
    let jobs = Arc::new(Jobs::default());
    let of_trace = Arc::clone(&jobs);
    registry.prover("partition.trace", move |params| {
        Ok(steps::Trace(JobFile::of(params, &of_trace)?))
    });
    let of_challenge = Arc::clone(&jobs);
    registry.prover("partition.challenge", move |params| {
        Ok(steps::Challenge(JobFile::of(params, &of_challenge)?))
    });
    registry.verifier("partition.aggregate", move |params| {
        Ok(steps::Aggregate(JobFile::of(params, &jobs)?))
    });
    registry.strategy("partition.batches", Arc::new(Batches::factory));
    registry.strategy("partition.all-batches", Arc::new(batches::all_batches));
    let keys = Arc::new(LoadedKeys::new(published));
    let of_commit = Arc::clone(&keys);
    registry.checked_prover("partition.commit", move |params| {
        Ok(steps::Commit(WorkerKeys::of(params, &of_commit)?))
    });
    registry.checked_prover("partition.prove", move |params| {
        Ok(steps::Prove(WorkerKeys::of(params, &keys)?))
    });
}
