//! The interface between a dispatcher and its executors.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use proofmill_trace::TraceContext;
use tokio_util::sync::CancellationToken;

use super::machine::Unfinished;
use super::resolved::Resolved;
use crate::payload::Encoding;
use crate::record::TaskRecord;
use proofmill_process::MachineFailure;

/// One task to run.
#[derive(Clone, Debug)]
pub struct Execution {
    /// The task as recorded by the core.
    pub task: Arc<TaskRecord>,
    /// Number of this attempt, from 1.
    pub attempt: u32,
    /// The payload, with the content of every blob.
    pub input: Resolved,
    /// Context of the attempt's span, for whatever the executor calls; `None` if the block has none.
    pub trace: Option<TraceContext>,
    /// Cancelled when the result is no longer wanted.
    pub cancel: CancellationToken,
}

/// The product of an execution.
#[derive(Clone, Debug)]
pub struct Product {
    /// The resulting messages, each with its encoding; exactly one unless the stage fans out.
    pub outputs: Vec<(Encoding, Bytes)>,
    /// Whether `outputs` are the elements of a fan-out.
    pub fan_out: bool,
    /// Duration of the execution.
    pub ran: Duration,
}

/// Runs tasks.
pub trait Executor: Send + Sync {
    /// Runs a batch; one result for each, in order. Never panics because of a task: an error is
    /// that task's [`Failure`](crate::record::Failure), or the machine's [`MachineFailure`], which
    /// does not count as an attempt.
    fn execute(&self, batch: Vec<Execution>) -> BoxFuture<'_, Vec<Result<Product, Unfinished>>>;

    /// Loads, before there is a task, what the first one would wait for. Dispatchers that share this call it when they
    /// start, and do not wait for it: tasks may run meanwhile.
    fn prepare(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    /// Checks whether this machine can begin a task at this moment. Called after a
    /// [`MachineFailure`], before tasks are taken again; cheap, and without lasting effects.
    fn probe(&self) -> BoxFuture<'_, Result<(), MachineFailure>> {
        Box::pin(std::future::ready(Ok(())))
    }
}
