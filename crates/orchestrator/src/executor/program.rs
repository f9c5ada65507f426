//! The executor of a stage whose tasks are run by a program.

use bytes::Bytes;
use futures_util::future::{BoxFuture, join_all};

use super::machine::Unfinished;
use super::native::split_array;
use super::traits::{Execution, Executor, Product};
use crate::payload::Encoding;
use crate::record::{Failure, TaskRecord};
use proofmill_process::MachineFailure;
use proofmill_process::{Attempt, Outcome, ProcessExecutor, TaskContext};
use proofmill_trace::TraceContext;

/// Maximum number of origins passed in an environment variable; for a larger group it is not set.
const ORIGINS_SHOWN: usize = 1024;

/// Runs a program for each task; see [`proofmill_process`]. The program's output is one JSON value.
pub struct Program {
    process: ProcessExecutor,
    fan_out: bool,
}

// === impl Program ===

impl Program {
    /// An executor for `process`. With `fan_out` the output is a JSON array, and each element
    /// becomes a message.
    pub fn new(process: ProcessExecutor, fan_out: bool) -> Self {
        Self { process, fan_out }
    }

    async fn run(&self, execution: Execution) -> Result<Product, Unfinished> {
        let input = execution
            .input
            .to_program_input()
            .map_err(Failure::permanent)?;
        let context = TaskContext {
            id: execution.task.id.to_string(),
            attempt: execution.attempt,
            block: execution.task.id.block,
        };
        let context_of_trace = trace_of(execution.trace.as_ref());
        let added = origin_of(&execution.task).into_iter();
        let process = self.process.with_env(added.chain(context_of_trace));
        let attempt = process
            .run(&context, &input, execution.cancel.cancelled())
            .await;
        match &attempt.outcome {
            Outcome::Succeeded(output) => {
                let outputs = self.outputs(output).map_err(|reason| {
                    // An output truncated by a full disk is the machine's failure.
                    let disk_full = attempt.disk_full.clone().map(Unfinished::Machine);
                    disk_full.unwrap_or_else(|| failed(&attempt, Failure::retryable(reason)))
                })?;
                Ok(Product {
                    outputs,
                    fan_out: self.fan_out,
                    ran: attempt.wall,
                })
            }
            Outcome::Permanent { reason } => Err(failed(&attempt, Failure::permanent(reason))),
            Outcome::Failed { reason } => Err(failed(&attempt, Failure::retryable(reason))),
            Outcome::CouldNotStart { reason } => {
                let reason = format!("the program did not run: {reason}");
                Err(failed(&attempt, Failure::retryable(reason)))
            }
            Outcome::Machine(of_machine) => Err(of_machine.clone().into()),
            outcome @ (Outcome::TimedOut | Outcome::Cancelled) => {
                Err(failed(&attempt, Failure::retryable(outcome.to_string())))
            }
        }
    }

    fn outputs(&self, output: &Bytes) -> Result<Vec<(Encoding, Bytes)>, String> {
        if self.fan_out {
            return split_array(output);
        }
        serde_json::from_slice::<&serde_json::value::RawValue>(output)
            .map_err(|error| format!("the output is not one JSON value: {error}"))?;
        Ok(vec![(Encoding::Json, output.clone())])
    }
}

/// The variable `PROOFMILL_ORIGIN`, for programs that verify: SHA-256 of the payload submitted for
/// the task, or of each member's if it is a group.
fn origin_of(task: &TaskRecord) -> Option<(String, String)> {
    let digests = task.origins.iter().map(|origin| hex::encode(origin.digest));
    let digests: Vec<String> = digests.collect();
    let fits = (1..=ORIGINS_SHOWN).contains(&digests.len());
    fits.then(|| ("PROOFMILL_ORIGIN".to_owned(), digests.join(",")))
}

/// The variables `TRACEPARENT` and `TRACESTATE`, with which a program's own spans join the trace.
pub(crate) fn trace_of(trace: Option<&TraceContext>) -> impl Iterator<Item = (String, String)> {
    let variables = trace.into_iter().flat_map(TraceContext::variables);
    variables.map(|(name, value)| (name.to_owned(), value))
}

/// Adds the known facts about the program's run to `failure`.
fn failed(attempt: &Attempt, failure: Failure) -> Unfinished {
    Unfinished::Failed(Failure {
        exit: attempt.exit,
        stdout: attempt.stdout.to_string(),
        stderr: attempt.stderr.to_string(),
        ..failure.after(attempt.wall)
    })
}

impl Executor for Program {
    fn execute(&self, batch: Vec<Execution>) -> BoxFuture<'_, Vec<Result<Product, Unfinished>>> {
        Box::pin(join_all(
            batch.into_iter().map(|execution| self.run(execution)),
        ))
    }

    fn probe(&self) -> BoxFuture<'_, Result<(), MachineFailure>> {
        Box::pin(self.process.probe())
    }
}
