//! How the rest of the program talks to the coordinator.

use std::collections::HashSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};

use crate::collector::{HostJoin, ToHost, Verdicts};
use crate::core::{
    Complete, Core, Edition, Event, Fail, Join, Lease, LeaseRef, Reply, RequestId, Rewind, Settled,
    Status, Submit, Target,
};
use crate::id::{TaskId, WorkerId};
use crate::message::Message;
use crate::plan::{Plan, QueueIx};
use crate::record::TaskRecord;

/// The coordinator has stopped; what was asked of it may not have happened.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the coordinator has stopped")]
pub struct CoordinatorGone;

/// What the coordinator tells a worker.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum ToWorker {
    /// Run these, as one assignment.
    Assign(Vec<Lease>),
    /// Stop working on this; its result is not wanted.
    Cancel(LeaseRef),
    /// The coordinator does not know this worker: join again.
    Unknown,
}

/// A message whose turn it is to leave in chain order.
#[derive(Clone, Debug)]
pub struct Emission {
    /// What goes out.
    pub task: Arc<TaskRecord>,
}

/// A message for a queue.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SubmitRequest {
    /// Who brings it.
    pub producer: Arc<str>,
    /// The queue.
    pub queue: QueueIx,
    /// The message.
    pub message: Message,
    /// See [`crate::core::Submit::edition`].
    pub edition: Edition,
    /// For a source: see [`crate::core::Submit::source_next`].
    pub source_next: Option<u64>,
}

/// What the core answers with a [`Reply`], from whichever process it is asked.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Asked {
    /// See [`Event::Submit`].
    Submit(SubmitRequest),
    /// See [`Event::RetryDead`].
    RetryDead(TaskId),
    /// See [`Event::DropDead`].
    DropDead(TaskId),
    /// See [`Event::Cancel`].
    Cancel(Target),
    /// See [`Rewind`].
    Rewind {
        /// The source.
        source: Arc<str>,
        /// The queues that it writes.
        queues: Vec<QueueIx>,
        /// The first block that has changed.
        from: u64,
    },
}

pub(crate) enum Command {
    Ask(Asked, oneshot::Sender<Reply>),
    Join(Join, mpsc::UnboundedSender<ToWorker>),
    Worker(Event),
    Leave(WorkerId),
    HostJoin(HostJoin, mpsc::UnboundedSender<ToHost>),
    HostLeave(WorkerId),
    Inspect(Box<dyn FnOnce(&Core) + Send>),
    SourceNext(Arc<str>, oneshot::Sender<Option<u64>>),
    Status(oneshot::Sender<Status>),
    Flush(oneshot::Sender<()>),
    AttachSink(mpsc::UnboundedSender<Emission>),
    Observe(mpsc::UnboundedSender<Settled>),
    When(Condition, oneshot::Sender<()>),
    Drain,
}

/// What a caller waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    Idle,
    Drained,
}

/// A cheap clone of the way to a coordinator.
#[derive(Clone)]
pub struct Handle {
    pub(crate) commands: mpsc::Sender<Command>,
    pub(crate) plan: Arc<Plan>,
}

// === impl Handle ===

impl Handle {
    /// The workflow that the coordinator runs.
    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// Waits until the coordinator has stopped.
    pub async fn gone(&self) {
        self.commands.closed().await;
    }

    /// Whether the coordinator has stopped.
    pub fn is_gone(&self) -> bool {
        self.commands.is_closed()
    }

    async fn send(&self, command: Command) -> Result<(), CoordinatorGone> {
        self.commands
            .send(command)
            .await
            .map_err(|_| CoordinatorGone)
    }

    async fn ask<T>(
        &self,
        command: impl FnOnce(oneshot::Sender<T>) -> Command,
    ) -> Result<T, CoordinatorGone> {
        let (sender, receiver) = oneshot::channel();
        self.send(command(sender)).await?;
        receiver.await.map_err(|_| CoordinatorGone)
    }

    /// Brings a message. Returns once it is durable, or there is nothing to record; waits while
    /// the queue is full (Q_max).
    pub async fn submit(&self, request: SubmitRequest) -> Result<Reply, CoordinatorGone> {
        self.request(Asked::Submit(request)).await
    }

    /// As [`Handle::submit`], but returns as soon as the request is in the coordinator's hands;
    /// requests of one caller are taken in order.
    pub async fn submit_later(
        &self,
        request: SubmitRequest,
    ) -> Result<oneshot::Receiver<Reply>, CoordinatorGone> {
        let (sender, receiver) = oneshot::channel();
        let command = Command::Ask(Asked::Submit(request), sender);
        self.send(command).await?;
        Ok(receiver)
    }

    /// Offers a worker; the coordinator talks to it through `to_worker`.
    pub async fn join(
        &self,
        join: Join,
        to_worker: mpsc::UnboundedSender<ToWorker>,
    ) -> Result<(), CoordinatorGone> {
        self.send(Command::Join(join, to_worker)).await
    }

    /// Something happened at a worker, a host or the sink that has the way back to it already.
    pub(crate) async fn hear(&self, event: Event) -> Result<(), CoordinatorGone> {
        self.send(Command::Worker(event)).await
    }

    /// The worker takes nothing new.
    pub async fn retire(&self, worker: WorkerId) -> Result<(), CoordinatorGone> {
        self.hear(Event::Retire { worker }).await
    }

    /// The worker is gone.
    pub async fn leave(&self, worker: WorkerId) -> Result<(), CoordinatorGone> {
        self.send(Command::Leave(worker)).await
    }

    /// The worker is alive, and working on these; `retired` says that it takes nothing new, `paused`
    /// why it takes nothing for now.
    pub async fn heartbeat(
        &self,
        worker: WorkerId,
        running: Vec<LeaseRef>,
        retired: bool,
        paused: Option<String>,
    ) -> Result<(), CoordinatorGone> {
        self.hear(Event::Heartbeat {
            worker,
            running,
            retired,
            paused,
        })
        .await
    }

    /// A result.
    pub async fn complete(&self, complete: Complete) -> Result<(), CoordinatorGone> {
        self.hear(Event::Complete(complete)).await
    }

    /// A failed attempt.
    pub async fn fail(&self, fail: Fail) -> Result<(), CoordinatorGone> {
        self.hear(Event::Fail(fail)).await
    }

    /// A task handed back untried.
    pub async fn release(&self, worker: WorkerId, lease: LeaseRef) -> Result<(), CoordinatorGone> {
        self.hear(Event::Release { worker, lease }).await
    }

    /// Offers to keep partitions of collectors; the coordinator talks to the host through `to_host`.
    pub async fn host_join(
        &self,
        join: HostJoin,
        to_host: mpsc::UnboundedSender<ToHost>,
    ) -> Result<(), CoordinatorGone> {
        self.send(Command::HostJoin(join, to_host)).await
    }

    /// The host is alive.
    pub async fn host_beat(&self, host: WorkerId) -> Result<(), CoordinatorGone> {
        self.hear(Event::HostBeat { host }).await
    }

    /// The host is gone, or hands its partitions over.
    pub async fn host_leave(&self, host: WorkerId) -> Result<(), CoordinatorGone> {
        self.send(Command::HostLeave(host)).await
    }

    /// What a host has decided.
    pub async fn verdicts(&self, verdicts: Verdicts) -> Result<(), CoordinatorGone> {
        self.hear(Event::Verdicts(verdicts)).await
    }

    /// Receives what the sequencer emits, in order. One receiver at a time: a new one takes the
    /// place of the old.
    pub async fn attach_sink(
        &self,
        sink: mpsc::UnboundedSender<Emission>,
    ) -> Result<(), CoordinatorGone> {
        self.send(Command::AttachSink(sink)).await
    }

    /// The sinks have it, durably, in these places.
    pub async fn emitted(&self, task: TaskId, places: Vec<String>) -> Result<(), CoordinatorGone> {
        self.hear(Event::Emitted { task, places }).await
    }

    /// Receives every task that ends from now on, once its end is durable.
    pub async fn observe(
        &self,
        observer: mpsc::UnboundedSender<Settled>,
    ) -> Result<(), CoordinatorGone> {
        self.send(Command::Observe(observer)).await
    }

    /// Puts a dead letter back into its queue.
    pub async fn retry_dead(&self, task: TaskId) -> Result<Reply, CoordinatorGone> {
        self.request(Asked::RetryDead(task)).await
    }

    /// Gives a dead letter up for good.
    pub async fn drop_dead(&self, task: TaskId) -> Result<Reply, CoordinatorGone> {
        self.request(Asked::DropDead(task)).await
    }

    /// Stops a live task and moves it to the dead-letter queue, from where
    /// [`Handle::retry_dead`] brings it back. [`Reply::Accepted`] once that is durable,
    /// [`Reply::NotFound`] if there is no such live task.
    pub async fn cancel_task(&self, task: TaskId) -> Result<Reply, CoordinatorGone> {
        self.request(Asked::Cancel(Target::Task(task))).await
    }

    /// As [`Handle::cancel_task`], for every live task that is about this block, also where it is
    /// about others too.
    pub async fn cancel_block(&self, block: u64) -> Result<Reply, CoordinatorGone> {
        self.request(Asked::Cancel(Target::Block(block))).await
    }

    /// As [`Handle::cancel_task`], for every live task of the workflow.
    pub async fn cancel_all(&self) -> Result<Reply, CoordinatorGone> {
        self.request(Asked::Cancel(Target::All)).await
    }

    /// Takes back what a source has brought to `queues` about the blocks from `from` on: see
    /// [`Rewind`].
    pub async fn rewind(
        &self,
        source: &Arc<str>,
        queues: &[QueueIx],
        from: u64,
    ) -> Result<Reply, CoordinatorGone> {
        let (source, queues) = (source.clone(), queues.to_vec());
        self.request(Asked::Rewind {
            source,
            queues,
            from,
        })
        .await
    }

    pub(crate) async fn request(&self, asked: Asked) -> Result<Reply, CoordinatorGone> {
        self.ask(|reply| Command::Ask(asked, reply)).await
    }

    /// Looks at the core. `look` runs between two events: it should be quick.
    pub async fn inspect<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Core) -> T + Send + 'static,
    ) -> Result<T, CoordinatorGone> {
        self.ask(|reply| {
            Command::Inspect(Box::new(move |core| {
                // The caller may have given up waiting: nothing to tell anyone then.
                let _ = reply.send(look(core));
            }))
        })
        .await
    }

    /// Where a source goes on, as recorded by an earlier run.
    pub async fn source_next(&self, source: &Arc<str>) -> Result<Option<u64>, CoordinatorGone> {
        self.ask(|reply| Command::SourceNext(source.clone(), reply))
            .await
    }

    /// Waits until what follows from everything said before is durable.
    pub async fn flush(&self) -> Result<(), CoordinatorGone> {
        self.ask(Command::Flush).await
    }

    /// The whole at this moment.
    pub async fn status(&self) -> Result<Status, CoordinatorGone> {
        self.ask(Command::Status).await
    }

    /// Every blob that must be kept.
    pub async fn live_blobs(&self) -> Result<HashSet<[u8; 32]>, CoordinatorGone> {
        self.inspect(Core::live_blobs).await
    }

    /// Waits until nothing moves any more ([`Core::is_idle`]) and all of it is durable.
    pub async fn when_idle(&self) -> Result<(), CoordinatorGone> {
        self.ask(|waiter| Command::When(Condition::Idle, waiter))
            .await
    }

    /// Waits until nothing is under way ([`Core::is_drained`]) and all of it is durable.
    pub async fn when_drained(&self) -> Result<(), CoordinatorGone> {
        self.ask(|waiter| Command::When(Condition::Drained, waiter))
            .await
    }

    /// Leases nothing more; results of what is leased are still taken.
    pub async fn drain(&self) -> Result<(), CoordinatorGone> {
        self.send(Command::Drain).await
    }
}

// === impl Asked ===

impl Asked {
    /// As the core hears it.
    pub fn into_event(self, request: RequestId) -> Event {
        match self {
            Self::Submit(asked) => Event::Submit(Submit {
                request,
                producer: asked.producer,
                queue: asked.queue,
                message: asked.message,
                edition: asked.edition,
                source_next: asked.source_next,
            }),
            Self::RetryDead(task) => Event::RetryDead { request, task },
            Self::DropDead(task) => Event::DropDead { request, task },
            Self::Cancel(target) => Event::Cancel { request, target },
            Self::Rewind {
                source,
                queues,
                from,
            } => Event::Rewind(Rewind {
                request,
                producer: source,
                queues,
                from,
            }),
        }
    }
}
