//! Requests of sources and operators, and the replies to them.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::id::TaskId;
use crate::message::Message;
use crate::plan::QueueIx;

/// Something that the core answers with a [`Reply`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Request {
    /// A source, or somebody who submits, brings a message.
    Submit(Submit),
    /// An operator puts a dead letter back into its queue, with its attempts forgotten.
    RetryDead(TaskId),
    /// An operator gives a dead letter up for good.
    DropDead(TaskId),
    /// An operator stops live tasks and moves them to the dead-letter queue. Answered with
    /// [`Reply::Accepted`] if there was one, else with [`Reply::NotFound`].
    Cancel(Target),
    /// A source takes back what has come of its later blocks. Answered with [`Reply::Rewound`].
    Rewind(Rewind),
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
    /// What the message is among those about its block.
    pub edition: Edition,
    /// For a source: where it goes on once this message is accepted, recorded with it.
    pub source_next: Option<u64>,
}

/// What a message is among those about its block that came the same way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Edition {
    /// One of several perhaps, which differ in their part.
    #[default]
    Any,
    /// The only one: another part of the block that is known is [`Reply::Differs`].
    Only,
    /// The same, but if nothing of the block is known nothing is recorded: it is
    /// [`Reply::Duplicate`].
    Recalled,
    /// As [`Edition::Any`], and what an operator has dropped from the dead-letter queue is taken once
    /// more: somebody submits it on purpose.
    Anew,
}

/// A source takes back what it has brought about the blocks from one on, in order to bring them
/// again: the chain that it follows has changed.
///
/// Everything that has followed is dropped: live tasks, dead letters, and the marks of what is
/// finished, in every stage that the source's messages reach. Where a group holds earlier blocks
/// too, those go with it. What the sink has been given stays.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Rewind {
    /// Name of the source: what it is to bring next is recorded.
    pub source: Arc<str>,
    /// The queues that it writes.
    pub queues: Vec<QueueIx>,
    /// The first block that has changed.
    pub from: u64,
}

/// Which live tasks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Target {
    /// This one.
    Task(TaskId),
    /// Those that are about this block, also where they are about others too.
    Block(u64),
    /// All.
    All,
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reply {
    /// Recorded.
    Accepted,
    /// Every task that this message becomes is known already, or finished: nothing to do.
    Duplicate {
        /// Whether they carried the same; `None` if that is not known of all any more.
        same: Option<bool>,
    },
    /// A live task of this id carries something else, or a task of another part is known where there
    /// is only one to be.
    Differs {
        /// The task.
        task: TaskId,
    },
    /// Recorded in the dead-letter queue: a reader cannot take it.
    Rejected {
        /// Why.
        why: String,
    },
    /// The same message is in the dead-letter queue.
    IsDead {
        /// The task.
        task: TaskId,
        /// Why it is there.
        why: String,
    },
    /// The message is wrong in itself; nothing was recorded.
    Invalid {
        /// Why.
        why: String,
    },
    /// There is no such dead letter, or no live task to cancel.
    NotFound,
    /// The core drains and takes nothing new.
    Draining,
    /// Nothing of the source's blocks from this one on is left: it goes on with this one. Later than
    /// what was asked for if the sink has been given blocks up to here, earlier if they were in
    /// groups with earlier ones.
    Rewound {
        /// The block.
        from: u64,
    },
}
