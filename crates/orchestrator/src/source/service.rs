//! Submitting what a source brings.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use proofmill_bus::{BlobError, BlobStore};
use tokio::sync::oneshot;

use super::rate::Pace;
use crate::coordinator::{CoordinatorGone, Handle, SubmitRequest};
use crate::core::Reply;
use crate::executor::Resolved;
use crate::id::Part;
use crate::message::{Message, grouping};
use crate::payload::Encoding;
use crate::plan::{Needs, QueueIx};
use crate::shutdown::{Level, Shutdown};

/// Messages submitted and not yet acknowledged, at most.
const WINDOW: usize = 256;

/// A message that a source brings.
#[derive(Clone, Debug)]
pub struct SourceMessage {
    /// First block it is about.
    pub first: u64,
    /// Last block it is about, inclusive.
    pub last: u64,
    /// Which part of the block.
    pub part: Part,
    /// How to read `bytes`.
    pub encoding: Encoding,
    /// What it carries.
    pub bytes: Bytes,
    /// What a worker must offer; `None` leaves it to the stage.
    pub needs: Option<Needs>,
    /// The position after this message.
    pub next: u64,
}

/// A sequence of messages with a position.
pub trait Source: Send {
    /// Goes to `position`, as recorded by an earlier run.
    fn seek(&mut self, position: u64) -> Result<(), String>;

    /// The next message; `None` at the end.
    fn next(&mut self) -> BoxFuture<'_, Option<Result<SourceMessage, String>>>;
}

/// Settings of a source's service.
#[derive(Debug)]
pub struct Options {
    /// The source's name.
    pub name: Arc<str>,
    /// Every message goes to each of these.
    pub outputs: Vec<QueueIx>,
    /// How fast, at most.
    pub pace: Option<Pace>,
}

/// What a source brought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Messages newly recorded.
    pub accepted: u64,
    /// Messages that were known, or finished, already.
    pub duplicates: u64,
    /// Messages recorded in the dead-letter queue.
    pub rejected: u64,
    /// Whether it came to its end, and all that it brought is recorded.
    pub ended: bool,
}

/// Why a source stopped before its end.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The source itself failed.
    #[error("source {name}: {why}")]
    Source {
        /// Its name.
        name: String,
        /// In words.
        why: String,
    },
    /// A message differs from the one recorded under its id.
    #[error(
        "source {name}: block {block} was submitted before with other content, and is being worked \
         on; use another state directory for other blocks"
    )]
    Differs {
        /// Its name.
        name: String,
        /// The block.
        block: u64,
    },
    /// A payload could not be stored.
    #[error("source {name}: cannot store the payload of block {block}")]
    Store {
        /// Its name.
        name: String,
        /// The block.
        block: u64,
        /// Why.
        #[source]
        source: Box<BlobError>,
    },
    /// See [`CoordinatorGone`].
    #[error(transparent)]
    Gone(#[from] CoordinatorGone),
}

/// Submits what `source` brings, from where it left off, until its end or `shutdown`.
pub async fn run(
    mut source: Box<dyn Source>,
    options: Options,
    coordinator: Handle,
    blobs: Arc<BlobStore>,
    mut shutdown: Shutdown,
) -> Result<Summary, SourceError> {
    let name = options.name.clone();
    let position = coordinator.source_next(&name).await?;
    let failed = |why: String| SourceError::Source {
        name: name.to_string(),
        why,
    };
    if let Some(position) = position {
        source.seek(position).map_err(failed)?;
    }
    let mut window = Window {
        pending: VecDeque::new(),
        acknowledged: position,
        summary: Summary::default(),
    };
    let mut pace = options.pace;
    loop {
        if let Some(pace) = &mut pace {
            tokio::select! {
                () = pace.turn() => {}
                () = shutdown.reached(Level::Drain) => break,
            }
        }
        let message = tokio::select! {
            message = source.next() => message,
            () = shutdown.reached(Level::Drain) => break,
        };
        let Some(message) = message else {
            window.summary.ended = true;
            break;
        };
        let message = message.map_err(failed)?;
        let (block, next) = (message.first, message.next);
        // Only between messages: a message counts as acknowledged when all its queues have it.
        while window.pending.len() >= WINDOW {
            window.settle_one(&name).await?;
        }
        window.settle_ready(&name)?;
        for queue in &options.outputs {
            let request = request(&name, *queue, message.clone(), &coordinator, &blobs).await;
            let mut request = request.map_err(|source| SourceError::Store {
                name: name.to_string(),
                block,
                source: Box::new(source),
            })?;
            request.source_next = window.acknowledged;
            let reply = coordinator.submit_later(request).await?;
            window.pending.push_back((block, next, reply));
        }
    }
    while !window.pending.is_empty() {
        tokio::select! {
            settled = window.settle_one(&name) => settled?,
            // Producers that wait for a full queue are let go by the coordinator's own drain.
            () = shutdown.reached(Level::Stop) => {
                window.summary.ended = false;
                break;
            }
        }
    }
    Ok(window.summary)
}

pub(super) async fn request(
    producer: &Arc<str>,
    queue: QueueIx,
    message: SourceMessage,
    coordinator: &Handle,
    blobs: &BlobStore,
) -> Result<SubmitRequest, BlobError> {
    let plan = coordinator.plan();
    let json = (message.encoding == Encoding::Json).then_some(&*message.bytes);
    let grouping = grouping(plan, queue, json);
    let collected = plan.is_collected(queue);
    let payload = Resolved::store(message.encoding, message.bytes, collected, blobs).await?;
    Ok(SubmitRequest {
        producer: producer.clone(),
        queue,
        message: Message {
            first: message.first,
            last: message.last,
            part: message.part,
            payload,
            needs: message.needs,
            grouping,
        },
        source_next: None,
    })
}

/// Submitted messages in order, and how far all are acknowledged.
struct Window {
    pending: VecDeque<(u64, u64, oneshot::Receiver<Reply>)>,
    acknowledged: Option<u64>,
    summary: Summary,
}

impl Window {
    /// Waits for the oldest acknowledgement.
    async fn settle_one(&mut self, name: &Arc<str>) -> Result<(), SourceError> {
        let Some((block, next, reply)) = self.pending.front_mut() else {
            return Ok(());
        };
        let (block, next) = (*block, *next);
        let reply = reply.await.map_err(|_| CoordinatorGone)?;
        self.pending.pop_front();
        self.take(name, block, next, reply)
    }

    /// Takes every acknowledgement that is there.
    fn settle_ready(&mut self, name: &Arc<str>) -> Result<(), SourceError> {
        while let Some((block, next, reply)) = self.pending.front_mut() {
            let (block, next) = (*block, *next);
            match reply.try_recv() {
                Ok(reply) => {
                    self.pending.pop_front();
                    self.take(name, block, next, reply)?;
                }
                Err(oneshot::error::TryRecvError::Empty) => return Ok(()),
                Err(oneshot::error::TryRecvError::Closed) => return Err(CoordinatorGone.into()),
            }
        }
        Ok(())
    }

    fn take(
        &mut self,
        name: &Arc<str>,
        block: u64,
        next: u64,
        reply: Reply,
    ) -> Result<(), SourceError> {
        match reply {
            Reply::Accepted => self.summary.accepted += 1,
            Reply::Duplicate | Reply::IsDead { .. } => self.summary.duplicates += 1,
            Reply::Rejected { .. } => self.summary.rejected += 1,
            Reply::Differs { .. } => {
                return Err(SourceError::Differs {
                    name: name.to_string(),
                    block,
                });
            }
            Reply::Invalid { why } => {
                return Err(SourceError::Source {
                    name: name.to_string(),
                    why,
                });
            }
            // Not recorded: the position stays, so that the next run brings it again.
            Reply::Draining | Reply::NotFound => {
                self.summary.ended = false;
                return Ok(());
            }
        }
        // With several output queues a position counts once the last of them has acknowledged.
        if self
            .pending
            .front()
            .is_none_or(|(_, following, _)| *following != next)
        {
            self.acknowledged = Some(next);
        }
        Ok(())
    }
}
