//! Conversion of the engine's answers into messages.

use proofmill_engine::{
    CircuitSource, CircuitView, ConstraintsFrom, JobCounts, JobResult, JobState, JobView, Owner,
    PartitionProof, Priority, Status, Submitted, Tier,
};

use super::event::stage;
use crate::engine::answer::ProofTexts;
use crate::engine::proto;
use crate::engine::proto::owner_use;

/// An accepted job.
pub(crate) fn submitted(submitted: Submitted) -> proto::SubmitResponse {
    proto::SubmitResponse {
        job: submitted.job.to_string(),
        existing: submitted.existing,
    }
}

/// The result of a job.
pub(crate) fn result(result: &JobResult) -> proto::JobResult {
    let (state, failure) = state(&result.state);
    proto::JobResult {
        job: result.job.to_string(),
        state: state.into(),
        failure,
        proofs: result.proofs.iter().map(proof).collect(),
    }
}

fn proof(made: &PartitionProof) -> proto::Proof {
    let PartitionProof { circuit, proof } = made;
    let texts = ProofTexts::from(proof);
    let public = proof.public_bytes().into_iter();
    proto::Proof {
        circuit_id: circuit.to_string(),
        curve: proof.curve().name().to_owned(),
        proof: proof.proof_bytes(),
        public_inputs: public.map(|input| input.to_vec()).collect(),
        proof_json: texts.proof,
        public_json: texts.public,
    }
}

/// The current state of a job.
pub(crate) fn job(job: &JobView) -> proto::Job {
    let (state, failure) = state(&job.state);
    proto::Job {
        id: job.id.to_string(),
        client: job.request.client().to_owned(),
        request_id: job.request.request().to_owned(),
        priority: priority(job.priority).into(),
        state: state.into(),
        failure,
        partitions: job.partitions,
        proven: job.proven,
        running: job.running,
        retries: job.retries,
        submitted_ms: job.submitted_ms,
        deadline_ms: job.deadline_ms,
        started_ms: job.started_ms,
        ended_ms: job.ended_ms,
        circuits: job.circuits.clone(),
        bytes: job.bytes,
    }
}

/// The current state of a circuit.
pub(crate) fn circuit(circuit: &CircuitView) -> proto::Circuit {
    let shown = |path: &std::path::Path| path.to_string_lossy().into_owned();
    let (key_path, constraints_path) = match &circuit.source {
        CircuitSource::Zkey(zkey) => (shown(zkey), String::new()),
        CircuitSource::System { constraints, key } => (shown(key), shown(constraints)),
    };
    let from = match circuit.from {
        ConstraintsFrom::Zkey => proto::ConstraintsFrom::Zkey,
        ConstraintsFrom::Precompiled => proto::ConstraintsFrom::Precompiled,
        ConstraintsFrom::R1cs => proto::ConstraintsFrom::R1cs,
    };
    proto::Circuit {
        name: circuit.name.clone(),
        id: circuit.id.to_string(),
        curve: circuit.curve.to_owned(),
        variables: circuit.variables,
        public_inputs: circuit.public,
        domain: circuit.domain,
        key_path,
        constraints_path,
        constraints_from: from.into(),
        tier: tier(circuit.tier).into(),
        loading: circuit.loading,
        pinned: circuit.pinned,
        bytes: circuit.bytes,
        hot_bytes: circuit.hot_bytes,
        measured: circuit.measured,
        work_bytes: circuit.work_bytes,
        needed_bytes: circuit.needed_bytes,
        users: circuit.users,
        loads: circuit.loads,
        load_ms: circuit.load_ms,
        evictions: circuit.evictions,
        proofs: circuit.proofs,
    }
}

/// The state of the whole engine.
pub(crate) fn status(status: &Status) -> proto::EngineStatus {
    let stages = status.stages.iter().map(|it| proto::StageStatus {
        stage: stage(it.stage).into(),
        workers: it.workers,
        busy: it.busy,
        queued: it.queued,
        ended: it.ended,
        busy_us: it.busy_us,
    });
    let devices = status.devices.iter().map(|it| proto::DeviceStatus {
        name: it.name.clone(),
        busy: it.busy,
        busy_us: it.busy_us,
        products: it.products,
        failures: it.failures,
        suspected: it.suspected,
        broken: it.broken.clone(),
    });
    proto::EngineStatus {
        uptime_us: status.uptime_us,
        started_ms: status.started_ms,
        draining: status.draining,
        jobs: status.jobs.iter().map(job).collect(),
        recent: status.recent.iter().map(job).collect(),
        counts: Some(counts(&status.counts)),
        stages: stages.collect(),
        devices: devices.collect(),
        budget: Some(budget(&status.budget)),
        circuits: status.circuits.iter().map(circuit).collect(),
    }
}

fn counts(counts: &JobCounts) -> proto::JobCounts {
    proto::JobCounts {
        accepted: counts.accepted,
        repeated: counts.repeated,
        refused: counts.refused,
        done: counts.done,
        failed: counts.failed,
        cancelled: counts.cancelled,
        expired: counts.expired,
        retries: counts.retries,
        pruned: counts.pruned,
    }
}

fn budget(budget: &proofmill_engine::BudgetStatus) -> proto::BudgetStatus {
    let owners = budget.owners.iter().map(|it| proto::OwnerUse {
        bytes: it.bytes,
        owner: Some(match it.owner {
            Owner::Key(circuit) => owner_use::Owner::Key(circuit.to_string()),
            Owner::Partition(job, partition) => {
                owner_use::Owner::Partition(proto::PartitionOwner {
                    job: job.to_string(),
                    partition,
                })
            }
            Owner::Registration => {
                owner_use::Owner::Registration(proto::RegistrationOwner::default())
            }
        }),
    });
    proto::BudgetStatus {
        total: budget.total,
        used: budget.used,
        peak: budget.peak,
        waiting: budget.waiting,
        waiting_bytes: budget.waiting_bytes,
        owners: owners.collect(),
        evictions: budget.evictions,
    }
}

/// A priority.
pub(crate) fn priority(priority: Priority) -> proto::Priority {
    match priority {
        Priority::Low => proto::Priority::Low,
        Priority::Normal => proto::Priority::Normal,
        Priority::High => proto::Priority::High,
        Priority::Critical => proto::Priority::Critical,
    }
}

/// A job's state, and the reason if it failed.
pub(super) fn state(state: &JobState) -> (proto::JobState, String) {
    let bare = match state {
        JobState::Queued => proto::JobState::Queued,
        JobState::Running => proto::JobState::Running,
        JobState::Done => proto::JobState::Done,
        JobState::Failed(why) => return (proto::JobState::Failed, why.clone()),
        JobState::Cancelled => proto::JobState::Cancelled,
        JobState::Expired => proto::JobState::Expired,
    };
    (bare, String::new())
}

/// A tier.
pub(super) fn tier(tier: Tier) -> proto::Tier {
    match tier {
        Tier::Cold => proto::Tier::Cold,
        Tier::Warm => proto::Tier::Warm,
        Tier::Hot => proto::Tier::Hot,
    }
}
