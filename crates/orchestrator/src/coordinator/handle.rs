//! How the rest of the program talks to the coordinator.

use std::collections::HashSet;
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};

use crate::conversation::{
    Complete, Fail, HostCommand, HostEvent, HostJoin, Join, LeaseRef, Reply, Request, Rewind,
    RoleEvent, SinkCommand, SinkEvent, Submit, Target, Verdicts, WorkerCommand, WorkerEvent,
};
use crate::core::{Core, Settled, Status};
use crate::id::{TaskId, WorkerId};
use crate::plan::{Plan, QueueIx};

/// The coordinator has stopped; what was asked of it may not have happened.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the coordinator has stopped")]
pub struct CoordinatorGone;

/// Way back from the coordinator to one of those that it tells something.
pub(crate) enum Attachment {
    Worker(WorkerId, mpsc::UnboundedSender<WorkerCommand>),
    Host(WorkerId, mpsc::UnboundedSender<HostCommand>),
    /// Takes the place of an earlier one.
    Sink(mpsc::UnboundedSender<SinkCommand>),
}

pub(crate) enum Command {
    Request(Request, oneshot::Sender<Reply>),
    Attach(Attachment),
    /// Something that happened. A worker or host that joins has been attached before.
    Event(RoleEvent),
    Inspect(Box<dyn FnOnce(&Core) + Send>),
    SourceNext(Arc<str>, oneshot::Sender<Option<u64>>),
    Status(oneshot::Sender<Status>),
    Flush(oneshot::Sender<()>),
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
    pub async fn submit(&self, request: Submit) -> Result<Reply, CoordinatorGone> {
        self.request(Request::Submit(request)).await
    }

    /// As [`Handle::submit`], but returns as soon as the request is in the coordinator's hands;
    /// requests of one caller are taken in order.
    pub async fn submit_later(
        &self,
        request: Submit,
    ) -> Result<oneshot::Receiver<Reply>, CoordinatorGone> {
        let (sender, receiver) = oneshot::channel();
        let command = Command::Request(Request::Submit(request), sender);
        self.send(command).await?;
        Ok(receiver)
    }

    /// Offers a worker; the coordinator talks to it through `to_worker`.
    pub async fn join(
        &self,
        join: Join,
        to_worker: mpsc::UnboundedSender<WorkerCommand>,
    ) -> Result<(), CoordinatorGone> {
        let attachment = Attachment::Worker(join.worker.clone(), to_worker);
        self.send(Command::Attach(attachment)).await?;
        self.hear(WorkerEvent::Join(join)).await
    }

    /// Something happened at a worker, a host or the sink.
    pub(crate) async fn hear(&self, event: impl Into<RoleEvent>) -> Result<(), CoordinatorGone> {
        self.send(Command::Event(event.into())).await
    }

    /// The worker takes nothing new.
    pub async fn retire(&self, worker: WorkerId) -> Result<(), CoordinatorGone> {
        self.hear(WorkerEvent::Retire { worker }).await
    }

    /// The worker is gone.
    pub async fn leave(&self, worker: WorkerId) -> Result<(), CoordinatorGone> {
        self.hear(WorkerEvent::Leave { worker }).await
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
        self.hear(WorkerEvent::Heartbeat {
            worker,
            running,
            retired,
            paused,
        })
        .await
    }

    /// A result.
    pub async fn complete(&self, complete: Complete) -> Result<(), CoordinatorGone> {
        self.hear(WorkerEvent::Complete(complete)).await
    }

    /// A failed attempt.
    pub async fn fail(&self, fail: Fail) -> Result<(), CoordinatorGone> {
        self.hear(WorkerEvent::Fail(fail)).await
    }

    /// A task handed back untried.
    pub async fn release(&self, worker: WorkerId, lease: LeaseRef) -> Result<(), CoordinatorGone> {
        self.hear(WorkerEvent::Release { worker, lease }).await
    }

    /// Offers to keep partitions of collectors; the coordinator talks to the host through `to_host`.
    pub async fn host_join(
        &self,
        join: HostJoin,
        to_host: mpsc::UnboundedSender<HostCommand>,
    ) -> Result<(), CoordinatorGone> {
        let attachment = Attachment::Host(join.host.clone(), to_host);
        self.send(Command::Attach(attachment)).await?;
        self.hear(HostEvent::Join(join)).await
    }

    /// The host is alive.
    pub async fn host_beat(&self, host: WorkerId) -> Result<(), CoordinatorGone> {
        self.hear(HostEvent::Beat { host }).await
    }

    /// The host is gone, or hands its partitions over.
    pub async fn host_leave(&self, host: WorkerId) -> Result<(), CoordinatorGone> {
        self.hear(HostEvent::Leave { host }).await
    }

    /// What a host has decided.
    pub async fn verdicts(&self, verdicts: Verdicts) -> Result<(), CoordinatorGone> {
        self.hear(HostEvent::Verdicts(verdicts)).await
    }

    /// Receives what the sequencer emits, in order. One receiver at a time: a new one takes the
    /// place of the old.
    pub async fn attach_sink(
        &self,
        sink: mpsc::UnboundedSender<SinkCommand>,
    ) -> Result<(), CoordinatorGone> {
        self.send(Command::Attach(Attachment::Sink(sink))).await
    }

    /// The sinks have it, durably, in these places.
    pub async fn emitted(&self, task: TaskId, places: Vec<String>) -> Result<(), CoordinatorGone> {
        self.hear(SinkEvent::Emitted { task, places }).await
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
        self.request(Request::RetryDead(task)).await
    }

    /// Gives a dead letter up for good.
    pub async fn drop_dead(&self, task: TaskId) -> Result<Reply, CoordinatorGone> {
        self.request(Request::DropDead(task)).await
    }

    /// Stops a live task and moves it to the dead-letter queue, from where
    /// [`Handle::retry_dead`] brings it back. [`Reply::Accepted`] once that is durable,
    /// [`Reply::NotFound`] if there is no such live task.
    pub async fn cancel_task(&self, task: TaskId) -> Result<Reply, CoordinatorGone> {
        self.request(Request::Cancel(Target::Task(task))).await
    }

    /// As [`Handle::cancel_task`], for every live task that is about this block, also where it is
    /// about others too.
    pub async fn cancel_block(&self, block: u64) -> Result<Reply, CoordinatorGone> {
        self.request(Request::Cancel(Target::Block(block))).await
    }

    /// As [`Handle::cancel_task`], for every live task of the workflow.
    pub async fn cancel_all(&self) -> Result<Reply, CoordinatorGone> {
        self.request(Request::Cancel(Target::All)).await
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
        self.request(Request::Rewind(Rewind {
            source,
            queues,
            from,
        }))
        .await
    }

    pub(crate) async fn request(&self, request: Request) -> Result<Reply, CoordinatorGone> {
        self.ask(|reply| Command::Request(request, reply)).await
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
