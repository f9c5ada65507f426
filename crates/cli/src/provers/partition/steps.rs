//! The provers of the steps.

use bytes::Bytes;
use proofmill_orchestrator::coordinator::{ResultCheck, UncheckedResult};
use proofmill_orchestrator::executor::{Context, Json, Produced, Prover, ProverError};
use proofmill_orchestrator::payload::Encoding;
use proofmill_orchestrator::sink::{EmissionCheck, VerifiedResult};

use super::job::{JobFile, permanent};
use super::messages::{PartResult, WholeProof};
use super::parts::WorkerKeys;
use super::shards::Leaders;

/// `partition.trace`: traces the circuit; a task of committing for each part.
pub(super) struct Trace(pub(super) JobFile);

/// `partition.commit`: a commitment to one part.
pub(super) struct Commit(pub(super) WorkerKeys);

/// `partition.challenge`: draws the challenges from all commitments; a task of proving for each part.
pub(super) struct Challenge(pub(super) JobFile);

/// `partition.prove`: the proof of one part.
pub(super) struct Prove(pub(super) WorkerKeys);

/// `partition.aggregate`: one proof of all parts, made in shards if there are leaders of such.
pub(super) struct Aggregate(pub(super) JobFile, pub(super) Option<Leaders>);

fn fan_out(tasks: Vec<Bytes>) -> Produced {
    let tasks = tasks.into_iter();
    Produced::Many(tasks.map(|task| (Encoding::Binary, task)).collect())
}

/// Logs why keys could not be read in advance: the first task reads them again, and reports what fails then.
fn in_advance(prepared: Result<(), ProverError>) {
    if let Err(why) = prepared {
        tracing::debug!(%why, "no keys in advance");
    }
}

// === impl Trace ===

impl Prover for Trace {
    type Input = Bytes;
    type Output = Produced;

    fn prepare(&self) {
        in_advance(self.0.prepare());
    }

    fn prove(&self, _: &Context, _: Bytes) -> Result<Produced, ProverError> {
        Ok(fan_out(self.0.steps()?.commit_tasks()?))
    }
}

// === impl Commit ===

impl Prover for Commit {
    type Input = Bytes;
    type Output = Json<PartResult>;

    fn prepare(&self) {
        in_advance(self.prepare_keys());
    }

    fn prove(&self, context: &Context, task: Bytes) -> Result<Json<PartResult>, ProverError> {
        let job = context.first.to_string();
        Ok(Json(self.0.work()?.commit(job, &task)?))
    }
}

impl Commit {
    /// Commitments are made and checked with the same keys.
    fn prepare_keys(&self) -> Result<(), ProverError> {
        self.0.work()?.prepare_commitments()
    }
}

impl ResultCheck for Commit {
    fn prepare(&self) {
        in_advance(self.prepare_keys());
    }

    fn check_results(&self, results: &[UncheckedResult]) -> Vec<Result<(), ProverError>> {
        match self.0.work() {
            Ok(work) => work.check_commitments(results),
            Err(error) => vec![Err(error); results.len()],
        }
    }
}

// === impl Challenge ===

impl Prover for Challenge {
    type Input = Bytes;
    type Output = Produced;

    fn prove(&self, _: &Context, group: Bytes) -> Result<Produced, ProverError> {
        let steps = self.0.steps()?;
        let commitments = PartResult::of_group(&group, steps.parts()?)?;
        Ok(fan_out(steps.prove_tasks(&commitments)?))
    }
}

// === impl Prove ===

impl Prover for Prove {
    type Input = Bytes;
    type Output = Json<PartResult>;

    fn prepare(&self) {
        in_advance(self.0.prepare_proofs());
    }

    fn prove(&self, context: &Context, task: Bytes) -> Result<Json<PartResult>, ProverError> {
        Ok(Json(self.0.prove(context, &task)?))
    }
}

impl ResultCheck for Prove {
    fn prepare(&self) {
        let work = self.0.work();
        in_advance(work.and_then(|work| work.prepare_proof_checks()));
    }

    fn check_results(&self, results: &[UncheckedResult]) -> Vec<Result<(), ProverError>> {
        match self.0.work() {
            Ok(work) => work.check_proofs(results),
            Err(error) => vec![Err(error); results.len()],
        }
    }
}

// === impl Aggregate ===

impl Prover for Aggregate {
    type Input = Bytes;
    type Output = Json<WholeProof>;

    fn prove(&self, _: &Context, group: Bytes) -> Result<Json<WholeProof>, ProverError> {
        let steps = self.0.steps()?;
        let proofs = PartResult::of_group(&group, steps.parts()?)?;
        Ok(Json(steps.aggregate(&proofs, self.1.as_ref())?))
    }
}

impl EmissionCheck for Aggregate {
    fn check(&self, passed: &[VerifiedResult]) -> Vec<Result<(), ProverError>> {
        let verdict = |result: &VerifiedResult| {
            let proof: WholeProof = serde_json::from_slice(&result.bytes).map_err(permanent)?;
            self.0.steps()?.verify(&proof)
        };
        passed.iter().map(verdict).collect()
    }
}
