//! The five steps of a proof: trace, commitments, challenge, proofs, aggregation.

use serde::Serialize;

use super::constants::Constants;
use super::phase::{Allocation, Phase};
use super::workers::Workers;

/// The parts of a proof, and their allocation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Job {
    pub(super) parts: usize,
    pub(super) allocation: Allocation,
}

/// Seconds of each step, in order.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Steps {
    pub(super) trace_s: f64,
    pub(super) commit_s: f64,
    pub(super) challenge_s: f64,
    pub(super) prove_s: f64,
    pub(super) aggregate_s: f64,
}

// === impl Steps ===

impl Steps {
    pub(super) fn total_s(&self) -> f64 {
        self.trace_s + self.commit_s + self.challenge_s + self.prove_s + self.aggregate_s
    }
}

/// The steps of a proof; `None` if there is none, as parts of dead workers are not made.
///
/// Workers load their keys while they wait for nothing else: at their first task. Time 0 of deaths is the beginning of
/// the commitments.
pub(super) fn simulate(
    constants: &Constants,
    job: Job,
    mut workers: Workers,
    lease_s: f64,
) -> Option<Steps> {
    for worker in &mut workers.all {
        worker.keys_s = constants.keys_s();
    }
    let parts = job.parts as f64;
    let phase = |part_s: f64, bytes: f64| Phase {
        parts: job.parts,
        part_s,
        transfer_s: bytes / constants.bandwidth,
        dispatch_s: constants.dispatch_s,
        latency_s: constants.latency_s,
        lease_s,
    };
    let commit = phase(constants.commit_s, constants.commit_bytes);
    let committed = commit.end(job.allocation, 0.0, &mut workers.all)?;
    let challenged = committed + parts * constants.challenge_s;
    let prove = phase(constants.prove_s, constants.prove_bytes);
    let proved = prove.end(job.allocation, challenged, &mut workers.all)?;
    Some(Steps {
        trace_s: parts * constants.trace_s,
        commit_s: committed,
        challenge_s: parts * constants.challenge_s,
        prove_s: proved - challenged,
        aggregate_s: constants.aggregation_s(job.parts, workers.all.len()),
    })
}
