//! Leadership of a workflow: leading it, or standing by.

use futures_util::future::BoxFuture;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::{Duration, Instant};

use proofmill_bus::{AppendError, JetStreamLog, Log};
use tokio::sync::watch;

use super::error::ClusterError;
use super::site::ProcessContext;
use crate::coordinator::{Coordinator, CoordinatorError, Handle, Options};
use crate::core::CoreOptions;
use crate::mill::{history_options, result_checks, sweep_blobs};
use crate::plan::{Plan, pools};
use crate::remote::{Leadership, Server};
use crate::shutdown::{self, Level, Shutdown};

/// Time for which a new leader waits for workers to report their leases. Workers learn of a new leader at
/// once.
const ADOPT_GRACE: Duration = Duration::from_millis(800);

/// Delay, for each workflow that the process leads already, before it tries to lead another.
const ELECTION_BACKOFF: Duration = Duration::from_millis(300);

/// The workflows that this process leads now, for observers.
#[derive(Clone, Default)]
pub struct LedWorkflows(Arc<watch::Sender<LedHandles>>);

/// The workflows being led, by name.
type LedHandles = Vec<(Arc<str>, Handle)>;

// === impl LedWorkflows ===

impl LedWorkflows {
    /// Handle of a workflow, if this process leads it now.
    pub fn handle(&self, workflow: &str) -> Option<Handle> {
        let leading = self.0.borrow();
        let found = leading.iter().find(|(name, _)| &**name == workflow);
        found.map(|(_, handle)| handle.clone())
    }

    /// Number of workflows that this process leads.
    pub fn count(&self) -> usize {
        self.0.borrow().len()
    }

    /// Waits until this process leads the workflow.
    pub async fn wait_until_leading(&self, workflow: &str) -> Handle {
        let mut changes = self.0.subscribe();
        loop {
            if let Some(handle) = self.handle(workflow) {
                return handle;
            }
            // The sender lives in `self`.
            let _ = changes.changed().await;
        }
    }

    /// Waits until this process does not lead the workflow.
    pub async fn wait_until_standby(&self, workflow: &str) {
        let is_led = |leading: &LedHandles| leading.iter().any(|(name, _)| &**name == workflow);
        // The sender lives in `self`.
        let _ = self.0.subscribe().wait_for(|led| !is_led(led)).await;
    }

    fn begin(&self, workflow: &Arc<str>, handle: &Handle) {
        let entry = (workflow.clone(), handle.clone());
        self.0.send_modify(|leading| leading.push(entry));
    }

    fn end(&self, workflow: &Arc<str>) {
        self.0
            .send_modify(|leading| leading.retain(|(name, _)| name != workflow));
    }
}

/// Leads the workflow whenever no other process does, until `shutdown` reaches [`Level::Drain`].
pub fn lead(
    context: ProcessContext,
    leading: LedWorkflows,
    mut shutdown: Shutdown,
) -> BoxFuture<'static, Result<(), ClusterError>> {
    // Boxed, so that it is compiled here and not again in every program that calls it.
    Box::pin(async move {
        let workflow = context.plan.workflow.clone();
        loop {
            tokio::select! {
                () = yield_to_idle_peers(&context, &leading) => {}
                () = shutdown.reached(Level::Drain) => return Ok(()),
            }
            let Some(lease) = context.take_role_lease(Plan::LEADER, &mut shutdown).await else {
                return Ok(());
            };
            tracing::info!(%workflow, term = lease.term(), "leading");
            let leadership = Leadership::under(&lease);
            let led = tokio::select! {
                led = lead_once(&context, &leading, leadership, shutdown.clone()) => led,
                () = lease.lost() => Ok(()),
            };
            leading.end(&workflow);
            lease.give_back().await;
            match led {
                Ok(()) if shutdown.level() >= Level::Drain => return Ok(()),
                Ok(()) => {}
                // Another process writes the log, so it leads.
                Err(ClusterError::Coordinator(
                    CoordinatorError::Log(_) | CoordinatorError::Append(AppendError::Failed(_)),
                )) => {}
                Err(ClusterError::Connect(error)) => {
                    tracing::warn!(%error, "cannot lead now");
                    tokio::time::sleep(Duration::from_millis(500)).await;
                }
                Err(error) => return Err(error),
            }
            tracing::info!(%workflow, "not leading any more");
        }
    })
}

/// Waits, so that processes that lead fewer workflows can take the lead first.
async fn yield_to_idle_peers(context: &ProcessContext, leading: &LedWorkflows) {
    let begun = Instant::now();
    // The stagger keeps processes that start together from all trying for the same workflow first.
    let mut hasher = DefaultHasher::new();
    (&context.name, &context.plan.workflow).hash(&mut hasher);
    let stagger = ELECTION_BACKOFF * (hasher.finish() % 64) as u32 / 64;
    loop {
        let count = u32::try_from(leading.count()).unwrap_or(u32::MAX);
        let wait = stagger + ELECTION_BACKOFF.saturating_mul(count);
        let Some(left) = wait.checked_sub(begun.elapsed()) else {
            return;
        };
        tokio::time::sleep(left).await;
    }
}

async fn lead_once(
    context: &ProcessContext,
    leading: &LedWorkflows,
    leadership: Leadership,
    mut shutdown: Shutdown,
) -> Result<(), ClusterError> {
    let log = Arc::new(JetStreamLog::open(&context.connection, &context.plan.workflow).await?);
    let options = Options {
        core: CoreOptions {
            adopt_grace: ADOPT_GRACE,
            routing: context.routing,
            history: history_options(&context.workflow),
            pools: pools(&context.workflow),
            ..CoreOptions::default()
        },
        result_checks: result_checks(&context.workflow, &context.registry, &context.plan)?,
        blobs: Some(context.blobs.clone()),
    };
    let opened =
        Coordinator::open(context.plan.clone(), log.clone() as Arc<dyn Log>, options).await;
    let (coordinator, handle) = match opened {
        Err(CoordinatorError::Read(error)) => {
            tracing::warn!(%error, "cannot replay the log now");
            return Ok(());
        }
        opened => opened?,
    };
    let (stop, stopping) = shutdown::channel();
    let server = Server::new(
        context.connection.clone(),
        context.blobs.clone(),
        handle.clone(),
        leadership,
    );
    leading.begin(&context.plan.workflow, &handle);
    let sweeping = tokio::spawn(sweep_blobs(
        handle.clone(),
        context.blobs.clone(),
        log.clone(),
        context.blob_sweep,
    ));
    let mut coordinating = std::pin::pin!(coordinator.run(stopping.clone()));
    let mut serving = std::pin::pin!(server.run(stopping));
    let ended = tokio::select! {
        ended = &mut coordinating => ended.map_err(ClusterError::from),
        served = &mut serving => served.map_err(ClusterError::from),
        () = shutdown.reached(Level::Drain) => {
            stop.raise(Level::Stop);
            // The server tells its callers to turn to the next leader, without which they would wait for an answer.
            let (ended, _) = tokio::join!(coordinating, serving);
            let ended = ended.map_err(ClusterError::from);
            // The accepted records are durable; the coordinator has reported any failure.
            let _ = log.close().await;
            ended
        }
    };
    sweeping.abort();
    ended
}
