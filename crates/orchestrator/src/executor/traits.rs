//! The interface between a dispatcher and its executors.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use tokio::sync::watch;

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
    /// Raised when the result is no longer wanted.
    pub cancel: Cancel,
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

    /// Checks whether this machine can begin a task at this moment. Called after a
    /// [`MachineFailure`], before tasks are taken again; cheap, and without lasting effects.
    fn probe(&self) -> BoxFuture<'_, Result<(), MachineFailure>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// Signal for an execution to stop.
#[derive(Clone, Debug)]
pub struct Cancel(watch::Receiver<bool>);

// === impl Cancel ===

impl Cancel {
    /// A signal, and the sender that raises it by sending `true`.
    pub fn new() -> (watch::Sender<bool>, Self) {
        let (sender, receiver) = watch::channel(false);
        (sender, Self(receiver))
    }

    /// Whether the result is no longer wanted, or its receiver is gone.
    pub fn is_raised(&self) -> bool {
        *self.0.borrow() || self.0.has_changed().is_err()
    }

    /// Waits until [`Cancel::is_raised`] is true.
    pub async fn raised(&mut self) {
        // An error means that the sender was dropped: the result has no receiver.
        let _ = self.0.wait_for(|raised| *raised).await;
    }

    /// The underlying channel.
    pub fn receiver(&self) -> watch::Receiver<bool> {
        self.0.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_cancel_is_raised_by_its_sender_or_by_its_end() {
        let (sender, mut cancel) = Cancel::new();
        assert!(!cancel.is_raised());
        sender.send(true).expect("it listens");
        assert!(cancel.is_raised());
        cancel.raised().await;

        let (sender, mut cancel) = Cancel::new();
        drop(sender);
        assert!(cancel.is_raised());
        cancel.raised().await;
    }
}
