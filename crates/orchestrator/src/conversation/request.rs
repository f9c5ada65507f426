//! Requests of sources and operators, and the replies to them.

use std::sync::Arc;

use proofmill_trace::TraceContext;
use serde::{Deserialize, Serialize};

use crate::id::TaskId;
use crate::message::Message;
use crate::plan::QueueIx;
use crate::record::PauseKind;

/// A request, which the core answers with a [`Reply`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Request {
    /// A source or a submitter brings a message.
    Submit(Submit),
    /// An operator puts a dead letter back into its queue and discards its attempts.
    RetryDead(TaskId),
    /// An operator drops a dead letter for good.
    DropDead(TaskId),
    /// An operator stops live tasks and moves them to the dead-letter queue. Answered with
    /// [`Reply::Accepted`] if at least one matched, else with [`Reply::NotFound`].
    Cancel(Target),
    /// A source takes back blocks and all that followed from them. Answered with [`Reply::Rewound`].
    Rewind(Rewind),
    /// An operator has a task run that waits for its next attempt. Answered with [`Reply::Invalid`] if it does not.
    RunNow(TaskId),
    /// An operator pauses a stage or a source, or drains a worker. Answered with [`Reply::NotFound`] if there is none of
    /// this name.
    Pause {
        /// Kind of what is paused.
        kind: PauseKind,
        /// Its name.
        name: Arc<str>,
        /// Name of the operator, which is shown with the pause.
        by: Arc<str>,
    },
    /// An operator ends a pause. Answered with [`Reply::NotFound`] if there is none.
    Resume {
        /// Kind of what is paused.
        kind: PauseKind,
        /// Its name.
        name: Arc<str>,
    },
}

/// A message for a queue, from outside the workflow or from one of its sources.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Submit {
    /// Name of the source, or of the submitter, that brings it.
    pub producer: Arc<str>,
    /// The queue.
    pub queue: QueueIx,
    /// The message.
    pub message: Message,
    /// Relation of the message to others about the same block.
    pub uniqueness: Uniqueness,
    /// For a source: position to record with this message, the block that it continues with afterwards.
    pub source_next: Option<u64>,
    /// The context of the caller's trace, which the block's trace then continues. No decision depends on it.
    pub caller: Option<Arc<TraceContext>>,
}

/// Relation of a message to others about the same block from the same producer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Uniqueness {
    /// The block may have several messages, which differ in their part.
    #[default]
    Multiple,
    /// The block has only this message: the reply is [`Reply::Differs`] if another part of it is known.
    Single,
    /// As [`Uniqueness::Single`], but if no task of the block is known, nothing is recorded and the reply is
    /// [`Reply::Duplicate`].
    ReplayOnly,
    /// As [`Uniqueness::Multiple`], but a task that an operator has dropped from the dead-letter queue is accepted
    /// again: the message is submitted on purpose.
    Resubmitted,
}

/// A source's retraction of all its blocks from one on, in order to bring them again: the chain that it
/// follows has changed.
///
/// All that followed from the blocks is dropped: live tasks, dead letters, and the marks of finished tasks,
/// in every stage that the source's messages reach. If a group contains earlier blocks too, those are dropped
/// with it. Messages that the sink has been given are kept.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Rewind {
    /// Name of the source, whose recorded position is moved back.
    pub source: Arc<str>,
    /// Queues that the source writes.
    pub queues: Vec<QueueIx>,
    /// First block that has changed.
    pub from: u64,
}

/// Selection of live tasks to cancel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Target {
    /// The task with this id.
    Task(TaskId),
    /// All tasks about this block, including those that span others too.
    Block(u64),
    /// All live tasks.
    All,
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reply {
    /// The request was recorded.
    Accepted,
    /// Every task of this message is known already, or finished; nothing was recorded.
    Duplicate {
        /// Whether the known tasks carried the same content; `None` if that is no longer known of all of
        /// them.
        same: Option<bool>,
    },
    /// A live task of this id has different content, or another part of a block that may only have one
    /// message is known.
    Differs {
        /// The task.
        task: TaskId,
    },
    /// A reader cannot take the message; it was recorded in the dead-letter queue.
    Rejected {
        /// Reason.
        why: String,
    },
    /// The same message is in the dead-letter queue.
    IsDead {
        /// The task.
        task: TaskId,
        /// Reason for the task's death.
        why: String,
    },
    /// The message is malformed; nothing was recorded.
    Invalid {
        /// Reason.
        why: String,
    },
    /// The dead letter does not exist, no live task matches, or there is nothing of this name to pause or to resume.
    NotFound,
    /// The core drains and takes nothing new.
    Draining,
    /// No task of the source's blocks from this one on is left, and the source continues with it. Higher than
    /// requested if the sink has been given blocks up to here; lower if requested blocks shared groups with
    /// earlier ones.
    Rewound {
        /// Block that the source continues with.
        from: u64,
    },
}
