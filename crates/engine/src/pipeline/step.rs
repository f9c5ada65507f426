//! Running one stage of a partition. It runs outside the scheduler, which gets the partition back.

use std::sync::Arc;

use proofmill_files::MappedFile;
use proofmill_trace::TraceContext;
use tokio_util::sync::CancellationToken;

use super::flight::RunningPartition;
use super::scheduler::Env;
use crate::generator::{self, Generator};
use crate::interface::{PartitionProof, PipelineStage, Secret};
use crate::key::{Accelerator, StepError, ensure_wanted};
use crate::options::Fault;
use crate::queue::InputRecord;

/// A partition that left a stage, with the outcome.
pub(super) struct StageOutcome {
    pub(super) running: RunningPartition,
    pub(super) stage: PipelineStage,
    pub(super) worker: Arc<str>,
    pub(super) began_us: u64,
    /// The proof, from the last stage.
    pub(super) result: Result<Option<PartitionProof>, StepError>,
}

/// The bytes of a witness, from a file or a generator.
enum Bytes {
    File(MappedFile),
    Made(Secret),
}

/// The resources that a stage runs on.
pub(super) struct StageResources {
    /// The name of the stage or the device.
    pub(super) worker: Arc<str>,
    /// The pool of threads that computes.
    pub(super) pool: Arc<rayon::ThreadPool>,
    /// The accelerator that products are submitted to, in the prove stage.
    pub(super) accelerator: Option<Arc<Accelerator>>,
}

/// Runs a stage.
pub(super) async fn run(
    env: Arc<Env>,
    mut running: RunningPartition,
    stage: PipelineStage,
    resources: StageResources,
    began_us: u64,
) -> StageOutcome {
    let worker = resources.worker.clone();
    let made = match stage {
        PipelineStage::Witness => {
            let (input, stop) = (running.input().clone(), running.stop().clone());
            let trace = env.events.traces().context(running.job());
            run_program(&env, &input, trace.as_ref(), &stop).await
        }
        _ => Ok(None),
    };
    let (running, result) = match made {
        Err(error) => (running, Err(error)),
        Ok(made) => {
            // The thread does not inherit the span of the log lines.
            let log = tracing::Span::current();
            let computed = tokio::task::spawn_blocking(move || {
                let _entered = log.enter();
                let name = &resources.worker;
                let step = || resources.compute(&env, &mut running, stage, made);
                let result = proofmill_panics::catch(step).unwrap_or_else(|panic| {
                    Err(StepError::Retry(format!(
                        "{stage} on {name} panicked: {panic}"
                    )))
                });
                if result.is_err() {
                    // The partition's data is no longer needed.
                    running.drop_work();
                }
                (running, result)
            });
            match computed.await {
                Ok(computed) => computed,
                // The closure catches panics, so this is the runtime ending, and no caller waits any more.
                Err(_) => std::future::pending().await,
            }
        }
    };
    StageOutcome {
        running,
        stage,
        worker,
        began_us,
        result,
    }
}

/// Generates the witness, if its generator is a program.
async fn run_program(
    env: &Env,
    input: &InputRecord,
    trace: Option<&TraceContext>,
    stop: &CancellationToken,
) -> Result<Option<Bytes>, StepError> {
    let Some(name) = &input.generator else {
        return Ok(None);
    };
    let generator = env.generators.get(name).ok_or_else(|| {
        StepError::Permanent(format!("no witness generator {name:?} is configured"))
    })?;
    let Generator::Program(program) = generator else {
        return Ok(None);
    };
    let inputs = read(env, input)?;
    let limit = env.inputs.limits().witness_bytes;
    let made = generator::run(program, &inputs, limit, trace, stop).await?;
    Ok(Some(Bytes::File(made)))
}

// === impl StageResources ===

impl StageResources {
    fn compute(
        &self,
        env: &Env,
        running: &mut RunningPartition,
        stage: PipelineStage,
        made: Option<Bytes>,
    ) -> Result<Option<PartitionProof>, StepError> {
        ensure_wanted(running.stop())?;
        let proof = match &self.accelerator {
            None => self.pool.install(|| compute(env, running, stage, made))?,
            Some(accelerator) => {
                let stop = running.stop().clone();
                running
                    .require_work()?
                    .prove_on(accelerator, &self.pool, &stop)?;
                None
            }
        };
        if stage == PipelineStage::Prove {
            self.inject_fault(env, running)?;
        }
        Ok(proof)
    }

    /// Injects the fault that a test asks for.
    fn inject_fault(&self, env: &Env, running: &mut RunningPartition) -> Result<(), StepError> {
        let fault = env.interference.as_ref().map_or(Fault::None, |broken| {
            broken.with_products(&self.worker, running.partition(), running.attempt())
        });
        match fault {
            Fault::None => {}
            Fault::WrongProduct => running.require_work()?.corrupt_product(),
            Fault::Panic => panic!("as it was told to"),
        }
        Ok(())
    }
}

fn compute(
    env: &Env,
    running: &mut RunningPartition,
    stage: PipelineStage,
    made: Option<Bytes>,
) -> Result<Option<PartitionProof>, StepError> {
    let bytes = match stage {
        PipelineStage::Witness => Some(witness(env, running, made)?),
        _ => None,
    };
    let (stop, circuit) = (running.stop().clone(), running.circuit_id());
    let work = running.require_work()?;
    match stage {
        PipelineStage::Witness => match bytes {
            Some(Bytes::File(file)) => work.read_witness(&file)?,
            Some(Bytes::Made(secret)) => work.read_witness(&secret)?,
            None => {}
        },
        PipelineStage::Evaluate => work.evaluate(&stop)?,
        PipelineStage::Prove => work.prove(&stop)?,
        PipelineStage::Finish => work.finish(&stop)?,
        PipelineStage::Verify => return work.verify(circuit).map(Some),
    }
    Ok(None)
}

/// The witness's bytes.
fn witness(env: &Env, running: &RunningPartition, made: Option<Bytes>) -> Result<Bytes, StepError> {
    if let Some(made) = made {
        return Ok(made);
    }
    let file = read(env, running.input())?;
    let Some(name) = &running.input().generator else {
        return Ok(Bytes::File(file));
    };
    match env.generators.get(name) {
        Some(Generator::Native(function)) => {
            function.generate(&file).map(Bytes::Made).map_err(|why| {
                StepError::Permanent(format!("generator {name:?} made no witness: {why}"))
            })
        }
        _ => Err(StepError::Permanent(format!(
            "no witness generator {name:?} is configured"
        ))),
    }
}

fn read(env: &Env, input: &InputRecord) -> Result<MappedFile, StepError> {
    env.inputs
        .read(&input.name)
        .map_err(|error| StepError::Permanent(format!("the input is not there: {error}")))
}
