//! Access to a mill for the commands that inspect or change it: through the control socket of the running process,
//! over the bus, or by opening the state directory when no process runs the mill.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use proofmill_api::over_bus::{self, LedWorkflow};
use proofmill_api::{
    Action, ActionResult, Actor, AuditLog, BlockStatus, BlocksQuery, BundleQuery, Cancellation,
    Client, DeadLetter, DeadSummary, Dropped, MillView, Operations, QueueStatus, Submission,
    SubmitAnswer, TaskSummary, TasksQuery,
};
use proofmill_bus::{Connection, OpenError, open_blobs};
use proofmill_orchestrator::core::BlockSummary;
use proofmill_orchestrator::mill::{Mill, MillError, Options};
use proofmill_orchestrator::remote::Role;

use crate::args::MillArgs;
use crate::failure::Failure;
use crate::{bus, provers, state};

/// Longest wait for a state directory that is locked by a mill whose control socket does not answer yet. A mill may stand
/// still for seconds as it starts on a loaded machine.
const LOCK_WAIT_MAX: Duration = Duration::from_secs(20);

/// A connection to a mill, or its opened state.
pub(crate) enum MillAccess {
    /// A running mill, reached over its control socket or over the bus.
    Running(Client),
    /// A stopped mill: its state, or a read-only view of it, is open in this process until [`MillAccess::close`].
    Stopped(Box<Mill>, Operations),
}

/// Whether the command line names a bus, but neither a workflow nor a state directory.
pub(crate) fn names_bus_only(args: &MillArgs) -> bool {
    args.workflow.is_none() && args.bus.url.is_some() && args.state.state.is_none()
}

/// The workflows that have a leader on the bus.
pub(crate) async fn workflows(args: &MillArgs) -> Result<Vec<LedWorkflow>, Failure> {
    let connection = bus::connect(&args.bus, Role::Operator, "status").await?;
    over_bus::workflows(&connection).await.map_err(Failure::new)
}

/// The usage error for a command that names a bus but no workflow; it lists the workflows on the bus.
async fn workflow_not_named(args: &MillArgs) -> Result<Failure, Failure> {
    let found = workflows(args).await?;
    let names: Vec<&str> = found.iter().map(|led| led.workflow.as_str()).collect();
    let message = match names[..] {
        [] => "no workflow is led on this bus, and none is named".to_owned(),
        _ => format!(
            "no workflow is named; those on this bus are: {}",
            names.join(", ")
        ),
    };
    Ok(Failure::usage(message)
        .help("name one with --workflow, or a mill of this machine with --state"))
}

/// Name of the user of this machine, for the audit log of a coordinator, such as `alice@laptop`.
fn operator_name() -> String {
    let mut names = ["USER", "LOGNAME"].iter();
    let user = names.find_map(|name| std::env::var(name).ok());
    let user = user.unwrap_or_else(|| format!("user {}", rustix::process::getuid().as_raw()));
    let system = rustix::system::uname();
    format!("{user}@{}", system.nodename().to_string_lossy())
}

// === impl MillAccess ===

impl MillAccess {
    /// Opens the mill that the arguments name, read-only: nothing is written, so a full disk is no obstacle.
    pub(crate) async fn open_for_reading(args: &MillArgs) -> Result<Self, Failure> {
        match &args.workflow {
            None if names_bus_only(args) => Err(workflow_not_named(args).await?),
            None => Self::read(args.state.state.clone()).await,
            Some(workflow) => Self::on_bus(args, workflow).await,
        }
    }

    /// Opens the mill that the arguments name for a command that changes it.
    pub(crate) async fn open_for_change(args: &MillArgs) -> Result<Self, Failure> {
        match &args.workflow {
            None if names_bus_only(args) => Err(workflow_not_named(args).await?),
            None => Self::open_directory(args.state.state.clone(), false).await,
            Some(workflow) => Self::on_bus(args, workflow).await,
        }
    }

    /// Opens the mill of a state directory read-only. `None` means the only one under `.proofmill`.
    pub(crate) async fn read(named: Option<PathBuf>) -> Result<Self, Failure> {
        Self::open_directory(named, true).await
    }

    /// Opens the mill for a process that runs on, and that may be started before the coordinator of a cluster.
    pub(crate) async fn open_for_service(args: &MillArgs) -> Result<Self, Failure> {
        match &args.workflow {
            Some(workflow) => {
                let connection = bus::connect_service(&args.bus, workflow).await?;
                Self::over(connection, workflow).await
            }
            None => Self::open_for_reading(args).await,
        }
    }

    async fn on_bus(args: &MillArgs, workflow: &str) -> Result<Self, Failure> {
        let connection = bus::connect(&args.bus, Role::Operator, workflow).await?;
        Self::over(connection, workflow).await
    }

    async fn over(connection: Connection, workflow: &str) -> Result<Self, Failure> {
        let blobs = Arc::new(open_blobs(&connection).await?.for_workflow(workflow));
        Ok(Self::Running(Client::over_bus(
            connection,
            blobs,
            workflow,
            operator_name(),
        )))
    }

    /// Connects to the mill that runs in the state directory, or opens the state if none runs.
    async fn open_directory(named: Option<PathBuf>, read_only: bool) -> Result<Self, Failure> {
        let directory = state::choose(named)?;
        let until = Instant::now() + LOCK_WAIT_MAX;
        loop {
            if let Some(client) = Client::connect(&directory).await? {
                match client.status().await {
                    Ok(_) => return Ok(Self::Running(client)),
                    // The mill may have been shutting down at that moment.
                    Err(_) if Instant::now() < until => {
                        tokio::time::sleep(Duration::from_millis(50)).await;
                        continue;
                    }
                    Err(error) => return Err(error.into()),
                }
            }
            let workflow = state::load(&directory)?;
            let registry = provers::registry(Path::new(""));
            let options = Options {
                run_sources: false,
                read_only,
                ..Options::in_directory(&directory)
            };
            match Mill::open(&workflow, registry, options).await {
                Ok(mill) => {
                    let handle = mill.handle();
                    let operations =
                        Operations::new(handle.operator(), handle.source(), mill.blobs().clone())
                            .with_workflow(Arc::new(workflow));
                    let operations = match read_only {
                        true => operations,
                        false => operations.with_audit(AuditLog::in_directory(&directory)),
                    };
                    return Ok(Self::Stopped(Box::new(mill), operations));
                }
                // A mill that is starting or shutting down holds the lock but has no socket.
                Err(MillError::Open(OpenError::Locked(_))) if Instant::now() < until => {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Makes changes durable and releases the state. Does nothing for a running mill.
    pub(crate) async fn close(self) -> Result<(), Failure> {
        match self {
            Self::Running(_) => Ok(()),
            Self::Stopped(mill, _) => Ok(mill.close().await?),
        }
    }

    /// Whether a process runs the mill.
    pub(crate) fn is_running(&self) -> bool {
        matches!(self, Self::Running(_))
    }

    pub(crate) async fn status(&self) -> Result<serde_json::Value, Failure> {
        match self {
            Self::Running(client) => Ok(client.status().await?),
            Self::Stopped(_, operations) => Ok(serde_json::to_value(operations.status().await?)?),
        }
    }

    pub(crate) async fn view(&self) -> Result<MillView, Failure> {
        match self {
            Self::Running(client) => Ok(client.view().await?),
            Self::Stopped(_, operations) => Ok(operations.view().await?),
        }
    }

    pub(crate) async fn queues(&self) -> Result<Vec<QueueStatus>, Failure> {
        match self {
            Self::Running(client) => Ok(client.queues().await?),
            Self::Stopped(_, operations) => Ok(operations.queues().await?),
        }
    }

    pub(crate) async fn tasks(&self, query: TasksQuery) -> Result<Vec<TaskSummary>, Failure> {
        match self {
            Self::Running(client) => Ok(client.tasks(&query).await?),
            Self::Stopped(_, operations) => Ok(operations.tasks(query).await?),
        }
    }

    pub(crate) async fn block(&self, block: u64) -> Result<BlockStatus, Failure> {
        match self {
            Self::Running(client) => Ok(client.block(block).await?),
            Self::Stopped(_, operations) => Ok(operations.block(block).await?),
        }
    }

    pub(crate) async fn blocks(&self, blocks: BlocksQuery) -> Result<Vec<BlockSummary>, Failure> {
        match self {
            Self::Running(client) => Ok(client.blocks(blocks).await?),
            Self::Stopped(_, operations) => Ok(operations.blocks(blocks).await?),
        }
    }

    pub(crate) async fn dead_letters(&self) -> Result<Vec<DeadSummary>, Failure> {
        match self {
            Self::Running(client) => Ok(client.dead_letters().await?),
            Self::Stopped(_, operations) => Ok(operations.dead_letters().await?),
        }
    }

    pub(crate) async fn dead_letter(&self, task: &str) -> Result<DeadLetter, Failure> {
        match self {
            Self::Running(client) => Ok(client.dead_letter(task).await?),
            Self::Stopped(_, operations) => Ok(operations.dead_letter(task).await?),
        }
    }

    pub(crate) async fn bundle(&self, query: &BundleQuery) -> Result<Bytes, Failure> {
        match self {
            Self::Running(client) => Ok(client.bundle(query).await?),
            Self::Stopped(_, operations) => Ok(operations
                .bundle_for(&Actor::on_command_line(), query)
                .await?),
        }
    }

    pub(crate) async fn retry(&self, task: &str) -> Result<(), Failure> {
        match self {
            Self::Running(client) => Ok(client.retry(task).await?),
            Self::Stopped(..) => {
                let task = task.to_owned();
                self.act(&Action::Retry { task }).await.map(drop)
            }
        }
    }

    pub(crate) async fn drop_dead(&self, task: &str) -> Result<Dropped, Failure> {
        match self {
            Self::Running(client) => Ok(client.drop_dead(task).await?),
            Self::Stopped(..) => {
                let task = task.to_owned();
                let gap = self.act(&Action::Drop { task: task.clone() }).await?.gap;
                Ok(Dropped { task, gap })
            }
        }
    }

    pub(crate) async fn cancel(&self, cancellation: &Cancellation) -> Result<(), Failure> {
        match self {
            Self::Running(client) => Ok(client.cancel(cancellation).await?),
            Self::Stopped(..) => {
                let target = cancellation.clone();
                self.act(&Action::Cancel { target }).await.map(drop)
            }
        }
    }

    /// Carries out an action, with an entry in the audit log of a mill of this machine.
    pub(crate) async fn act(&self, action: &Action) -> Result<ActionResult, Failure> {
        match self {
            Self::Running(client) => Ok(client.act(action).await?),
            Self::Stopped(_, operations) => {
                Ok(operations.act(&Actor::on_command_line(), action).await?)
            }
        }
    }

    pub(crate) async fn submit(&self, submission: Submission) -> Result<SubmitAnswer, Failure> {
        match self {
            Self::Running(client) => Ok(client.submit(&submission).await?),
            Self::Stopped(_, operations) => {
                // No worker empties a queue while the mill is stopped, so submitting to a full one
                // would block for ever.
                let queues = operations.queues().await?;
                let full = queues
                    .iter()
                    .find(|queue| queue.queue == submission.queue && queue.waiting >= queue.q_max);
                if let Some(queue) = full {
                    let message = format!(
                        "queue {:?} is full: {} tasks wait",
                        queue.queue, queue.waiting
                    );
                    return Err(Failure::new(message).help("run the mill, then submit again"));
                }
                Ok(operations.submit(submission).await?)
            }
        }
    }
}
