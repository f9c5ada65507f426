//! Submission of messages from outside to the queues of a mill.

use std::sync::Arc;

use bytes::Bytes;
use proofmill_bus::BlobStore;
use proofmill_orchestrator::conversation::{Reply, Uniqueness};
use proofmill_orchestrator::core::Status;
use proofmill_orchestrator::plan::{Plan, QueueIx};
use proofmill_orchestrator::port::SourcePort;
use proofmill_orchestrator::source::{self, SourceMessage, SubmitError};

use crate::operations::OperationError;
use crate::types::{Submission, SubmitAnswer};

/// The operations that a client which submits messages may use.
#[derive(Clone)]
pub struct Submissions {
    port: SourcePort,
    blobs: Arc<BlobStore>,
}

// === impl Submissions ===

impl Submissions {
    /// Submissions to the mill behind `port`; large payloads go to `blobs`.
    pub fn new(port: SourcePort, blobs: Arc<BlobStore>) -> Self {
        Self { port, blobs }
    }

    /// The current state of the mill.
    pub async fn status(&self) -> Result<Status, OperationError> {
        Ok(self.port.status().await?)
    }

    /// Submits a message; waits while its queue is full.
    pub async fn submit(&self, submission: Submission) -> Result<SubmitAnswer, OperationError> {
        let queue = self.queue(&submission.queue)?;
        let payload = Bytes::copy_from_slice(submission.payload.get().as_bytes());
        let caller = submission.trace();
        let message = SourceMessage::of_json(
            (submission.first, submission.last),
            submission.part.as_deref(),
            payload,
            submission.requires,
        );
        let message = SourceMessage {
            caller,
            ..message.map_err(OperationError::Invalid)?
        };
        self.submit_to_queue(queue, message).await
    }

    /// The workflow.
    pub(crate) fn plan(&self) -> &Plan {
        self.port.plan()
    }

    /// The queue named `name`.
    pub(crate) fn queue(&self, name: &str) -> Result<QueueIx, OperationError> {
        let plan = self.port.plan();
        plan.queue_named(name).ok_or_else(|| {
            let known: Vec<&str> = plan.queues.iter().map(|queue| &*queue.name).collect();
            OperationError::NotFound(format!(
                "no queue {name:?} in workflow {:?}; it has {}",
                plan.workflow,
                known.join(", ")
            ))
        })
    }

    /// Submits a message like [`Submissions::submit`], to a queue that was looked up.
    pub(crate) async fn submit_to_queue(
        &self,
        queue: QueueIx,
        message: SourceMessage,
    ) -> Result<SubmitAnswer, OperationError> {
        // A block that was dropped may be submitted again, and is then processed again.
        let message = SourceMessage {
            uniqueness: Uniqueness::Resubmitted,
            ..message
        };
        let producer = "submit".into();
        let reply = source::submit(&self.port, &self.blobs, &producer, queue, message);
        match reply.await.map_err(|error| not_recorded(&error))? {
            Reply::Accepted => Ok(SubmitAnswer::Accepted),
            Reply::Duplicate { same } => Ok(SubmitAnswer::Duplicate { same }),
            Reply::Rejected { why } => Ok(SubmitAnswer::Rejected { why }),
            Reply::IsDead { task, why } => Ok(SubmitAnswer::Dead {
                task: task.to_string(),
                why,
            }),
            Reply::Differs { task } => Err(OperationError::Conflict(format!(
                "task {task} is live and carries something else; wait for it, or use another part"
            ))),
            Reply::Invalid { why } => Err(OperationError::Invalid(why)),
            Reply::Draining => Err(OperationError::Unavailable(
                "the mill drains and takes no new messages; submit again when it runs".to_owned(),
            )),
            Reply::NotFound | Reply::Rewound { .. } => Err(OperationError::Unavailable(
                "taken back before it was recorded; submit again".to_owned(),
            )),
        }
    }
}

fn not_recorded(error: &SubmitError) -> OperationError {
    let cause = std::error::Error::source(error);
    let cause = cause.map_or_else(String::new, |cause| format!(": {cause}"));
    OperationError::Unavailable(format!("{error}{cause}"))
}
