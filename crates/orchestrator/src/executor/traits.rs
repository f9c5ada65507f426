//! The interface between a dispatcher and what runs its tasks.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use tokio::sync::watch;

use super::machine::{MachineFailure, Unfinished};
use super::resolved::Resolved;
use crate::payload::Encoding;
use crate::record::TaskRecord;

/// One task to run.
#[derive(Clone, Debug)]
pub struct Execution {
    /// What was accepted.
    pub task: Arc<TaskRecord>,
    /// Which attempt this is, from 1.
    pub attempt: u32,
    /// The payload, with every blob fetched.
    pub input: Resolved,
    /// Raised when the result is not wanted any more.
    pub cancel: Cancel,
}

/// What an execution made.
#[derive(Clone, Debug)]
pub struct Product {
    /// The messages that go on, each with its encoding. A stage that does not fan out has one.
    pub outputs: Vec<(Encoding, Bytes)>,
    /// Whether `outputs` are the elements of a fan-out.
    pub fan_out: bool,
    /// How long it ran.
    pub ran: Duration,
}

/// Runs tasks.
pub trait Executor: Send + Sync {
    /// Runs a batch; one result for each, in order. Never panics for a task's sake: whatever goes
    /// wrong is that task's [`Failure`](crate::record::Failure), or the machine's
    /// [`MachineFailure`], which is no attempt.
    fn execute(&self, batch: Vec<Execution>) -> BoxFuture<'_, Vec<Result<Product, Unfinished>>>;

    /// Whether this machine has, at this moment, what it takes to begin a task. Asked after a
    /// [`MachineFailure`], before tasks are taken again; cheap, and without effects that last.
    fn probe(&self) -> BoxFuture<'_, Result<(), MachineFailure>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// Tells an execution that it should stop.
#[derive(Clone, Debug)]
pub struct Cancel(watch::Receiver<bool>);

// === impl Cancel ===

impl Cancel {
    /// A signal, and the sender that raises it by sending `true`.
    pub fn new() -> (watch::Sender<bool>, Self) {
        let (sender, receiver) = watch::channel(false);
        (sender, Self(receiver))
    }

    /// Whether the result is not wanted any more; also where whoever would take it is gone.
    pub fn is_raised(&self) -> bool {
        *self.0.borrow() || self.0.has_changed().is_err()
    }

    /// Waits until [`Cancel::is_raised`].
    pub async fn raised(&mut self) {
        // An error means that the sender was dropped: nobody waits for the result.
        let _ = self.0.wait_for(|raised| *raised).await;
    }

    /// The channel itself, for executors that want one.
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
