//! The service that submits a source's messages.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use proofmill_bus::{BlobError, BlobStore, Held};
use proofmill_trace::TraceContext;
use tokio::sync::oneshot;

use super::rate::Pace;
use crate::conversation::{Reply, Submit, Uniqueness};
use crate::coordinator::CoordinatorGone;
use crate::executor::Resolved;
use crate::id::Part;
use crate::message::{Message, grouping};
use crate::payload::Encoding;
use crate::plan::{Needs, QueueIx};
use crate::port::SourcePort;
use crate::role_counts::{SourceCounts, role_counts};
use crate::shutdown::{Level, Shutdown};

/// Maximum number of submitted messages not yet acknowledged; 1 for messages whose acknowledgement
/// decides whether the next ones are valid.
const WINDOW: usize = 256;

/// A message of a source.
#[derive(Clone, Debug)]
pub struct SourceMessage {
    /// First block that the message is about.
    pub first: u64,
    /// Last block that the message is about, inclusive.
    pub last: u64,
    /// The part of the block that the message is about.
    pub part: Part,
    /// Encoding of `bytes`.
    pub encoding: Encoding,
    /// The payload.
    pub bytes: Bytes,
    /// Capabilities required of a worker; `None` for those of the stage.
    pub needs: Option<Needs>,
    /// Relation of the message to others about the same block.
    pub uniqueness: Uniqueness,
    /// The source's position after this message.
    pub next: u64,
    /// The context of the caller's trace, if it sent one.
    pub caller: Option<Arc<TraceContext>>,
}

/// The next item of a source.
#[derive(Clone, Debug)]
pub enum SourceItem {
    /// A message.
    Message(SourceMessage),
    /// The messages about this block and later ones are no longer valid, and will be submitted
    /// again. The source's position is the block.
    Changed {
        /// The first of these blocks.
        from: u64,
    },
}

/// A sequence of messages with a position.
pub trait Source: Send {
    /// Moves to `position`, which an earlier run has recorded.
    fn seek(&mut self, position: u64) -> Result<(), String>;

    /// The next item; `None` at the end.
    ///
    /// If the messages of a source have an [`Uniqueness`] other than [`Uniqueness::Multiple`], dropping the
    /// future must lose nothing.
    fn next(&mut self) -> BoxFuture<'_, Option<Result<SourceItem, String>>>;

    /// Waits until messages that [`next`](Self::next) has returned are no longer valid; returns the first of their
    /// blocks, as [`SourceItem::Changed`] does. Called while the last of these messages cannot be submitted, because
    /// an earlier one waits for room in a queue; `next` is not called meanwhile. Dropping the future must lose nothing.
    ///
    /// By default it never ends: the messages of most sources stay valid.
    fn changed(&mut self) -> BoxFuture<'_, u64> {
        Box::pin(std::future::pending())
    }

    /// Called once, before the first [`next`](Self::next): the source notes the last block that it could bring in
    /// `counts`, whenever it learns it. By default it notes nothing.
    fn watch(&mut self, counts: Arc<SourceCounts>) {
        let _ = counts;
    }

    /// Called when the messages about the blocks from `from` on have been withdrawn; the source
    /// must submit them again from there. `asked` is the block that the source reported; `from` is
    /// higher if earlier blocks cannot be withdrawn any more.
    fn rewound(&mut self, asked: u64, from: u64) {
        let _ = (asked, from);
    }
}

/// Options of a source's service.
#[derive(Debug)]
pub struct Options {
    /// The source's name.
    pub name: Arc<str>,
    /// Queues that every message goes to.
    pub outputs: Vec<QueueIx>,
    /// Limit on the rate of messages; `None` for no limit.
    pub pace: Option<Pace>,
}

/// The counts of a source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Messages newly recorded.
    pub accepted: u64,
    /// Messages that were already known or finished.
    pub duplicates: u64,
    /// Messages recorded in the dead-letter queue.
    pub rejected: u64,
    /// Whether the source reached its end, with all its messages recorded.
    pub ended: bool,
}

/// The reason why a source stopped before its end.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The source itself failed.
    #[error("source {name}: {why}")]
    Source {
        /// The source's name.
        name: String,
        /// The reason, as a sentence fragment.
        why: String,
    },
    /// A message differs from the one recorded under its id.
    #[error(
        "source {name}: block {block} was submitted before with other content, and is being worked \
         on; use another state directory for other blocks"
    )]
    Differs {
        /// The source's name.
        name: String,
        /// The block.
        block: u64,
    },
    /// A payload could not be stored.
    #[error("source {name}: cannot store the payload of block {block}")]
    Store {
        /// The source's name.
        name: String,
        /// The block.
        block: u64,
        /// The error of the blob store.
        #[source]
        source: Box<BlobError>,
    },
    /// The coordinator has stopped.
    #[error(transparent)]
    CoordinatorGone(#[from] CoordinatorGone),
}

/// Submits the messages of `source`, from its recorded position, until its end or `shutdown`: at [`Level::Drain`] it awaits
/// the acknowledgements of what it has submitted, at [`Level::Stop`] it returns at once.
pub fn run(
    mut source: Box<dyn Source>,
    mut options: Options,
    coordinator: SourcePort,
    blobs: Arc<BlobStore>,
    mut shutdown: Shutdown,
) -> BoxFuture<'static, Result<Summary, SourceError>> {
    // Boxed, so that it is compiled in this crate and not again in every caller's.
    Box::pin(async move {
        let name = options.name.clone();
        let position = tokio::select! {
            position = coordinator.next_of(&name) => position?,
            () = shutdown.reached(Level::Stop) => return Ok(Summary::default()),
        };
        let failed = |why: String| SourceError::Source {
            name: name.to_string(),
            why,
        };
        if let Some(position) = position {
            source.seek(position).map_err(failed)?;
        }
        let counts = role_counts().source(&coordinator.plan().workflow, &name);
        counts.note_next(position);
        source.watch(counts.clone());
        let mut window = SubmissionWindow {
            pending: VecDeque::new(),
            acknowledged: position,
            counts,
            is_first_run: position.is_none(),
            changed: None,
            summary: Summary::default(),
        };
        let mut pace = options.pace.take();
        loop {
            if let Some(pace) = &mut pace {
                tokio::select! {
                    () = pace.turn() => {}
                    () = shutdown.reached(Level::Drain) => break,
                }
            }
            let item = tokio::select! {
                biased;
                changed = window.until_changed(&name) => {
                    let from = changed?;
                    Some(Ok(SourceItem::Changed { from }))
                }
                () = shutdown.reached(Level::Drain) => break,
                item = source.next() => item,
            };
            let Some(item) = item else {
                window.summary.ended = true;
                break;
            };
            let from = match item.map_err(failed)? {
                SourceItem::Changed { from } => from,
                SourceItem::Message(message) => {
                    let submitting = window.submit_in_turn(
                        message,
                        &mut *source,
                        &options,
                        &coordinator,
                        &blobs,
                    );
                    let submitted = tokio::select! {
                        submitted = submitting => submitted?,
                        () = shutdown.reached(Level::Stop) => break,
                    };
                    match submitted {
                        Some(from) => from,
                        None => continue,
                    }
                }
            };
            let rewinding = window.rewind(&coordinator, &name, &options.outputs, from);
            let rewound = tokio::select! {
                rewound = rewinding => rewound?,
                () = shutdown.reached(Level::Stop) => break,
            };
            source.rewound(from, rewound);
        }
        window.finish(&name, &mut shutdown).await?;
        Ok(window.summary)
    })
}

/// The submission of a message, and a hold on its blob for the caller to keep until the coordinator
/// has the message.
pub(super) async fn request(
    producer: &Arc<str>,
    queue: QueueIx,
    message: SourceMessage,
    coordinator: &SourcePort,
    blobs: &BlobStore,
) -> Result<(Submit, Option<Held>), BlobError> {
    let plan = coordinator.plan();
    let uniqueness = message.uniqueness;
    let json = (message.encoding == Encoding::Json).then_some(&*message.bytes);
    let grouping = grouping(plan, queue, json);
    let collected = plan.is_collected(queue);
    let stored = Resolved::store(message.encoding, message.bytes, collected, blobs).await?;
    let (payload, held) = stored;
    let request = Submit {
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
        uniqueness,
        source_next: None,
        caller: message.caller,
    };
    Ok((request, held))
}

/// A message that was submitted to a queue.
struct Pending {
    block: u64,
    next: u64,
    uniqueness: Uniqueness,
    reply: oneshot::Receiver<Reply>,
}

/// Submitted messages in order, and the position up to which all are acknowledged.
struct SubmissionWindow {
    pending: VecDeque<Pending>,
    acknowledged: Option<u64>,
    /// The source's numbers for the metrics.
    counts: Arc<SourceCounts>,
    /// Whether no earlier run has recorded a position.
    is_first_run: bool,
    /// Lowest block for which the core knows another message.
    changed: Option<u64>,
    summary: Summary,
}

// === impl SourceMessage ===

impl SourceMessage {
    /// A JSON message from outside, about the blocks `first ..= last`; its [`next`](Self::next) is
    /// 0.
    ///
    /// # Errors
    /// A description of the fault.
    pub fn of_json(
        (first, last): (u64, u64),
        part: Option<&str>,
        payload: Bytes,
        requires: Option<BTreeSet<String>>,
    ) -> Result<Self, String> {
        if last < first {
            return Err("`last` is below `first`".into());
        }
        let part = match part {
            Some(part) => Part::new(part).map_err(|error| error.to_string())?,
            None => Part::whole(),
        };
        Ok(Self {
            first,
            last,
            part,
            encoding: Encoding::Json,
            bytes: payload,
            needs: requires.map(|labels| Needs { labels, memory: 0 }),
            uniqueness: Uniqueness::Multiple,
            next: 0,
            caller: None,
        })
    }
}

// === impl SubmissionWindow ===

impl SubmissionWindow {
    /// Submits a message once the window has room for it. An earlier message may wait for room in a queue for hours;
    /// if the chain changes meanwhile, this message is dropped, since it is no longer valid, and the result is the
    /// first block whose messages must be withdrawn, if there are any.
    async fn submit_in_turn(
        &mut self,
        message: SourceMessage,
        source: &mut dyn Source,
        options: &Options,
        coordinator: &SourcePort,
        blobs: &BlobStore,
    ) -> Result<Option<u64>, SourceError> {
        let name = &options.name;
        let from = tokio::select! {
            biased;
            room = self.until_room(name, message.uniqueness) => {
                room?;
                self.submit(message, options, coordinator, blobs).await?;
                return Ok(None);
            }
            from = source.changed() => from.min(message.first),
        };
        self.process_ready_replies(name)?;
        if from == message.first && self.is_beyond_known(message.uniqueness) {
            source.rewound(from, from);
            return Ok(None);
        }
        Ok(Some(from))
    }

    /// Waits until the window has room for a message. Waits only between messages: a message is acknowledged when
    /// all its queues have acknowledged it. May be dropped and called again.
    async fn until_room(
        &mut self,
        name: &Arc<str>,
        uniqueness: Uniqueness,
    ) -> Result<(), SourceError> {
        let most = if uniqueness == Uniqueness::Multiple {
            WINDOW
        } else {
            1
        };
        while self.pending.len() >= most {
            self.await_oldest_reply(name).await?;
        }
        Ok(())
    }

    /// Whether the core has nothing of this source about the block of a message that comes next, and about later
    /// blocks, so that there is nothing to withdraw. Messages of a source whose blocks are unique are submitted in
    /// order: nothing follows one that was new to the core. (If the core has something nevertheless, it answers the
    /// block's next message with [`Reply::Differs`].)
    fn is_beyond_known(&self, uniqueness: Uniqueness) -> bool {
        uniqueness == Uniqueness::Single
            && (self.is_first_run || self.summary.accepted > 0)
            && self.changed.is_none()
    }

    /// Submits a message to every queue; the window has [room](Self::until_room). Does nothing if an earlier
    /// block has changed, since the blocks after it are submitted again.
    async fn submit(
        &mut self,
        message: SourceMessage,
        options: &Options,
        coordinator: &SourcePort,
        blobs: &BlobStore,
    ) -> Result<(), SourceError> {
        let name = &options.name;
        let (block, next, uniqueness) = (message.first, message.next, message.uniqueness);
        self.process_ready_replies(name)?;
        if self.changed.is_some() {
            return Ok(());
        }
        for queue in &options.outputs {
            let request = request(name, *queue, message.clone(), coordinator, blobs).await;
            let (mut request, _held) = request.map_err(|source| SourceError::Store {
                name: name.to_string(),
                block,
                source: Box::new(source),
            })?;
            request.source_next = self.acknowledged;
            let reply = coordinator.submit_later(request).await?;
            self.pending.push_back(Pending {
                block,
                next,
                uniqueness,
                reply,
            });
        }
        Ok(())
    }

    fn acknowledge(&mut self, next: Option<u64>) {
        self.acknowledged = next;
        self.counts.note_next(next);
    }

    /// Awaits the remaining acknowledgements, unless the shutdown is immediate.
    async fn finish(
        &mut self,
        name: &Arc<str>,
        shutdown: &mut Shutdown,
    ) -> Result<(), SourceError> {
        while !self.pending.is_empty() {
            tokio::select! {
                // Those that have come count, even at a stop.
                biased;
                settled = self.await_oldest_reply(name) => settled?,
                // Producers that wait for a full queue are released by the coordinator's own drain.
                () = shutdown.reached(Level::Stop) => {
                    self.summary.ended = false;
                    break;
                }
            }
        }
        Ok(())
    }

    /// Waits for the oldest acknowledgement. May be dropped and called again.
    async fn await_oldest_reply(&mut self, name: &Arc<str>) -> Result<(), SourceError> {
        let Some(pending) = self.pending.front_mut() else {
            return Ok(());
        };
        let reply = (&mut pending.reply).await.map_err(|_| CoordinatorGone)?;
        self.take(name, reply)
    }

    /// Processes every acknowledgement that has arrived.
    fn process_ready_replies(&mut self, name: &Arc<str>) -> Result<(), SourceError> {
        while let Some(pending) = self.pending.front_mut() {
            match pending.reply.try_recv() {
                Ok(reply) => self.take(name, reply)?,
                Err(oneshot::error::TryRecvError::Empty) => return Ok(()),
                Err(oneshot::error::TryRecvError::Closed) => return Err(CoordinatorGone.into()),
            }
        }
        Ok(())
    }

    /// Waits until the core reports another message for a block, which for most sources never
    /// happens. May be dropped and called again.
    async fn until_changed(&mut self, name: &Arc<str>) -> Result<u64, SourceError> {
        loop {
            if let Some(from) = self.changed {
                return Ok(from);
            }
            match self.pending.front() {
                Some(pending) if pending.uniqueness != Uniqueness::Multiple => {
                    self.await_oldest_reply(name).await?
                }
                _ => std::future::pending().await,
            }
        }
    }

    /// Withdraws the messages about the blocks from `from` on. Returns the block from which the
    /// source continues.
    async fn rewind(
        &mut self,
        coordinator: &SourcePort,
        name: &Arc<str>,
        outputs: &[QueueIx],
        mut from: u64,
    ) -> Result<u64, SourceError> {
        loop {
            if let Some(changed) = self.changed.take() {
                from = from.min(changed);
            }
            match coordinator.rewind(name, outputs, from).await? {
                Reply::Rewound { from: rewound } => from = rewound,
                other => {
                    return Err(SourceError::Source {
                        name: name.to_string(),
                        why: format!("its blocks cannot be taken back: {other:?}"),
                    });
                }
            }
            if self.pending.is_empty() {
                self.acknowledge(Some(from));
                return Ok(from);
            }
            if self.pending.iter().all(|pending| pending.block < from) {
                // They stay valid and may still wait for room. Their acknowledgement does not move the source's
                // position beyond what was withdrawn, which one that was submitted by an earlier run would.
                self.acknowledge(self.acknowledged.map(|position| position.min(from)));
                for pending in &mut self.pending {
                    pending.next = pending.next.min(from);
                }
                return Ok(from);
            }
            // Messages in flight may have arrived after the withdrawal.
            while !self.pending.is_empty() {
                self.await_oldest_reply(name).await?;
            }
        }
    }

    /// Processes the reply to the oldest message.
    fn take(&mut self, name: &Arc<str>, reply: Reply) -> Result<(), SourceError> {
        let Some(Pending {
            block,
            next,
            uniqueness,
            ..
        }) = self.pending.pop_front()
        else {
            return Ok(());
        };
        match reply {
            Reply::Accepted => self.summary.accepted += 1,
            Reply::Duplicate { .. } | Reply::IsDead { .. } => self.summary.duplicates += 1,
            Reply::Rejected { .. } => self.summary.rejected += 1,
            Reply::Differs { .. } if uniqueness != Uniqueness::Multiple => {
                self.changed = Some(self.changed.map_or(block, |known| known.min(block)));
                return Ok(());
            }
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
            // Withdrawn while it waited for a full queue.
            Reply::Rewound { .. } => return Ok(()),
            // Not recorded: the position stays, so that the next run submits it again.
            Reply::Draining | Reply::NotFound => {
                self.summary.ended = false;
                return Ok(());
            }
        }
        // With several output queues a position counts once the last queue has acknowledged.
        let following = self.pending.front();
        if self.changed.is_none() && following.is_none_or(|following| following.next != next) {
            self.acknowledge(Some(next));
        }
        Ok(())
    }
}
