//! Handle to the coordinator for its own process.

use std::collections::{BTreeSet, HashSet};
use std::sync::{Arc, Weak};

use proofmill_bus::{Log, LogUsage};
use tokio::sync::{mpsc, oneshot};

use super::questions::QuestionTimes;
use super::result_gate::ChecksBefore;
use crate::core::{Core, Settled, WorkEvent};
use crate::id::WorkerId;
use crate::plan::Plan;
use crate::port::{
    CoordinatorLink, HostPort, Message, OperatorPort, Ports, SinkPort, SourcePort, WorkerPort,
};

/// The coordinator has stopped. Requests without a reply may not have been carried out.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the coordinator has stopped")]
pub struct CoordinatorGone;

pub(crate) enum Command {
    /// A message from a port.
    Port(Message),
    Flush(ChecksBefore, oneshot::Sender<()>),
    LiveBlobs(oneshot::Sender<HashSet<[u8; 32]>>),
    Observe(mpsc::UnboundedSender<Settled>),
    ObserveWork(mpsc::UnboundedSender<WorkEvent>),
    When(Condition, oneshot::Sender<()>),
    Drain,
    Examine(Box<dyn FnOnce(&Core) + Send>),
}

/// State of the coordinator that a caller waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    Idle,
    Drained,
}

/// Handle to the coordinator for the process that runs it: the ports of the roles beside it, and operations
/// that no role may perform. Cheap to clone.
#[derive(Clone)]
pub struct Handle {
    commands: mpsc::Sender<Command>,
    ports: Ports,
    questions: QuestionTimes,
    /// Weak: a handle does not keep a log open.
    log: Weak<dyn Log>,
}

// === impl Handle ===

impl Handle {
    pub(super) fn new(
        commands: mpsc::Sender<Command>,
        plan: Arc<Plan>,
        questions: QuestionTimes,
        log: &Arc<dyn Log>,
    ) -> Self {
        Self {
            log: Arc::downgrade(log),
            ports: Ports::new(CoordinatorLink::Local(commands.clone()), plan),
            commands,
            questions,
        }
    }

    /// Times for which questions have kept the coordinator's loop.
    pub fn question_times(&self) -> &QuestionTimes {
        &self.questions
    }

    /// The workflow that the coordinator runs.
    pub fn plan(&self) -> &Arc<Plan> {
        self.ports.plan()
    }

    /// The room that the log takes up; `None` if that is unknown now.
    pub async fn log_usage(&self) -> Option<LogUsage> {
        let log = self.log.upgrade()?;
        log.usage().await
    }

    /// The ports of the roles beside the coordinator.
    pub fn ports(&self) -> &Ports {
        &self.ports
    }

    /// See [`Ports::worker`].
    pub fn worker(&self) -> WorkerPort {
        self.ports.worker()
    }

    /// See [`Ports::host`].
    pub fn host(&self) -> HostPort {
        self.ports.host()
    }

    /// See [`Ports::sink`].
    pub fn sink(&self) -> SinkPort {
        self.ports.sink()
    }

    /// See [`Ports::source`].
    pub fn source(&self) -> SourcePort {
        self.ports.source()
    }

    /// See [`Ports::operator`].
    pub fn operator(&self) -> OperatorPort {
        self.ports.operator()
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

    /// Channel that all ports use; the coordinator handles its messages in order.
    pub(crate) fn link(&self) -> &CoordinatorLink {
        self.ports.link()
    }

    /// Subscribes to every task that ends from now on. Each is reported once its end is durable.
    pub async fn observe(
        &self,
        observer: mpsc::UnboundedSender<Settled>,
    ) -> Result<(), CoordinatorGone> {
        self.send(Command::Observe(observer)).await
    }

    /// Subscribes to the work on blocks. First come reports of blocks that are not emitted yet and of the last emissions, then
    /// each beginning, acceptance and emission from now on, once it is durable; some may come twice.
    ///
    /// The channel has no bound, since the coordinator never waits: the observer must take reports quickly.
    pub async fn observe_work(
        &self,
        observer: mpsc::UnboundedSender<WorkEvent>,
    ) -> Result<(), CoordinatorGone> {
        self.send(Command::ObserveWork(observer)).await
    }

    /// Waits until the effects of all earlier messages are durable.
    pub async fn flush(&self) -> Result<(), CoordinatorGone> {
        self.ask(|flushed| Command::Flush(ChecksBefore::All, flushed))
            .await
    }

    /// Like [`Handle::flush`], but returns once the request has been sent. The receiver waits for the checks of these
    /// workers' results only.
    pub(crate) async fn flush_later(
        &self,
        workers: BTreeSet<WorkerId>,
    ) -> Result<oneshot::Receiver<()>, CoordinatorGone> {
        let (sender, receiver) = oneshot::channel();
        let checks = ChecksBefore::Of(workers);
        self.send(Command::Flush(checks, sender)).await?;
        Ok(receiver)
    }

    /// Digests of all blobs that must be kept, for the sweep in the coordinator's process.
    pub async fn live_blobs(&self) -> Result<HashSet<[u8; 32]>, CoordinatorGone> {
        self.ask(Command::LiveBlobs).await
    }

    /// Waits until the core is idle ([`Core::is_idle`]) and its state is durable.
    pub async fn when_idle(&self) -> Result<(), CoordinatorGone> {
        self.ask(|waiter| Command::When(Condition::Idle, waiter))
            .await
    }

    /// Waits until no work is under way ([`Core::is_drained`]) and the state is durable.
    pub async fn when_drained(&self) -> Result<(), CoordinatorGone> {
        self.ask(|waiter| Command::When(Condition::Drained, waiter))
            .await
    }

    /// Stops leasing; results of leased tasks are still accepted.
    pub async fn drain(&self) -> Result<(), CoordinatorGone> {
        self.send(Command::Drain).await
    }

    /// Runs `look` on the whole core, for tests: it runs between two events, and the amount that it copies is
    /// not bounded. All other callers use an [`OperatorPort`].
    pub async fn examine<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Core) -> T + Send + 'static,
    ) -> Result<T, CoordinatorGone> {
        self.ask(|answer| {
            Command::Examine(Box::new(move |core| {
                // The caller may have given up waiting.
                let _ = answer.send(look(core));
            }))
        })
        .await
    }
}
