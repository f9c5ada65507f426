//! A mill's life: starting every role, and ending them in order.

use futures_util::future::BoxFuture;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use proofmill_bus::BlobStore;
use proofmill_files::{check_private_directory, make_private_directory};
use proofmill_workflow as file;
use tokio::task::{JoinError, JoinHandle, JoinSet};

use super::checks::{checks, result_checks};
use super::emitted;
use super::options::{MillError, Options, SourceSummary, Summary};
use super::presence::Presence;
use super::registry::Registry;
use super::roles::Roles;
use super::sinks::{sinks, sweep_sink_programs};
use super::store::Store;
use super::sweep::{sweep_at_end, sweep_blobs};
use crate::coordinator::{
    self, Coordinator, CoordinatorError, CoordinatorGone, Handle, ResultChecks,
};
use crate::core::{CoreOptions, HistoryOptions};
use crate::plan::{Plan, pools};
use crate::remote::Server;
use crate::shutdown::{self, Level, Shutdown, Trigger};
use crate::sink::{self, SinkStopped};
use crate::source;

/// Time limit for closing open files after the state directory was lost.
const CLOSE_LOST: Duration = Duration::from_secs(5);

/// An open workflow: its coordinator runs, and answers requests. No task is executed before
/// [`Mill::run`].
pub struct Mill {
    workflow: file::Workflow,
    registry: Registry,
    options: Options,
    store: Store,
    blobs: Arc<BlobStore>,
    handle: Handle,
    coordinator: JoinHandle<Result<(), CoordinatorError>>,
    stop_coordinator: Trigger,
    losses: Vec<String>,
}

// === impl Mill ===

impl Mill {
    /// Opens the state, replays the log, and starts the coordinator.
    pub fn open(
        workflow: &file::Workflow,
        registry: Registry,
        options: Options,
    ) -> BoxFuture<'_, Result<Self, MillError>> {
        // Boxed, so that it is compiled in this crate and not again in every caller's.
        Box::pin(async move {
            let plan = Arc::new(Plan::compile(workflow, registry.strategies())?);
            let state = &options.state;
            let is_private = if options.read_only {
                check_private_directory(state)
            } else {
                make_private(state)
            };
            is_private.map_err(|source| MillError::State {
                path: state.clone(),
                source,
            })?;
            let (store, blobs) = match &options.bus {
                None if options.read_only => Store::copied(state)?,
                None => Store::in_directory(state, options.accept_loss)?,
                Some(connection) => Store::on_bus(connection, &plan).await?,
            };
            let blobs = Arc::new(blobs);
            let settings = coordinator::Options {
                core: CoreOptions {
                    routing: options.routing,
                    history: history_options(workflow),
                    pools: pools(workflow),
                    ..CoreOptions::default()
                },
                // A process that only reads may lack the keys.
                result_checks: match options.read_only {
                    true => ResultChecks::default(),
                    false => result_checks(workflow, &registry, &plan)?,
                },
                blobs: Some(blobs.clone()),
            };
            let opened = Coordinator::open(plan, store.log(), settings).await?;
            let (coordinator, handle) = opened;
            let mut losses: Vec<String> = store.accepted_loss().into_iter().collect();
            if options.bus.is_none() && !options.read_only {
                let core = coordinator.core();
                losses.extend(emitted::check(workflow, state, core, options.accept_loss)?);
            }
            let (stop_coordinator, shutdown) = shutdown::channel();
            if let Some(connection) = &options.bus {
                let connection = connection.clone();
                let leadership = store.leadership();
                let server = Server::new(connection, blobs.clone(), handle.clone(), leadership);
                // Ends with the coordinator.
                tokio::spawn(server.run(shutdown.clone()));
            }
            Ok(Self {
                workflow: workflow.clone(),
                registry,
                options,
                store,
                blobs,
                handle,
                coordinator: tokio::spawn(coordinator.run(shutdown)),
                stop_coordinator,
                losses,
            })
        })
    }

    /// The handle of the coordinator.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// The workflow.
    pub fn workflow(&self) -> &file::Workflow {
        &self.workflow
    }

    /// Descriptions of the losses found when the mill was opened with [`Options::accept_loss`].
    pub fn accepted_losses(&self) -> &[String] {
        &self.losses
    }

    /// The blob store.
    pub fn blobs(&self) -> &Arc<BlobStore> {
        &self.blobs
    }

    /// Runs every role until the sources have ended and no task is pending, or until `shutdown`, or
    /// until the state directory is lost, which is noticed within a second.
    pub fn run(mut self, shutdown: Shutdown) -> BoxFuture<'static, Result<Summary, MillError>> {
        // Boxed, so that it is compiled in this crate and not again in every caller's.
        Box::pin(async move {
            let presence = Presence::of(&self.options.state);
            let ran = tokio::select! {
                ran = self.run_roles(shutdown) => ran,
                // The roles are dropped: their results could not be kept.
                () = presence.until_lost() => Err(CoordinatorGone.into()),
            };
            if let (Err(_), Some(lost)) = (&ran, presence.lost()) {
                let path = lost.to_owned();
                // The result of closing no longer matters.
                let _ = tokio::time::timeout(CLOSE_LOST, self.close()).await;
                return Err(MillError::StateLost { path });
            }
            // If the coordinator stopped, the other services only report that; the cause is its own
            // error.
            let closed = self.close().await;
            match ran {
                Err(error) if error.is_coordinator_gone() => Err(closed.err().unwrap_or(error)),
                Err(error) => Err(error),
                Ok(summary) => closed.map(|()| summary),
            }
        })
    }

    async fn run_roles(&mut self, mut shutdown: Shutdown) -> Result<Summary, MillError> {
        let (stop_services, services) = shutdown::channel();
        let (stop_sink, sink_shutdown) = shutdown::channel();
        let roles = Roles {
            workflow: &self.workflow,
            registry: &self.registry,
            state: &self.options.state,
            ports: self.handle.ports(),
            blobs: &self.blobs,
        };
        let dispatchers = roles.dispatchers(&self.options.workers, None, &str::to_owned)?;
        roles.sweep_programs().await?;
        let sources = self.options.run_sources.then(|| roles.sources());
        let sources = sources.transpose()?.unwrap_or_default();
        let mut sink = self.begin_sink(sink_shutdown).await?;
        let mut sweeping = JoinSet::new();
        sweeping.spawn(sweep_blobs(
            self.handle.clone(),
            self.blobs.clone(),
            self.store.log(),
            self.options.blob_sweep,
        ));
        let mut working: JoinSet<Result<(), CoordinatorGone>> = JoinSet::new();
        for dispatcher in dispatchers {
            working.spawn(dispatcher.run(services.clone()));
        }
        let mut sourcing = self.begin_sources(sources, &services);
        let mut summaries = BTreeMap::new();
        let mut failure: Option<MillError> = None;
        let gone = self.handle.clone();
        let (idle, keep_running) = (self.handle.clone(), self.options.keep_running);
        let ended = until_idle(idle, keep_running, &mut sourcing, &mut summaries);
        tokio::select! {
            result = ended => failure = result.err(),
            () = gone.gone() => return Err(CoordinatorGone.into()),
            joined = &mut sink => {
                failure = Some(match joined {
                    Ok(Err(SinkStopped::Refused(refused))) => refused.into(),
                    Ok(_) => CoordinatorGone.into(),
                    Err(error) => MillError::Panicked(error.to_string()),
                });
            }
            () = shutdown.reached(Level::Drain) => {}
        }
        let is_stopping = shutdown.level() > Level::Run;
        self.handle.drain().await?;
        stop_services.raise(Level::Drain);
        let mut draining = Draining {
            stop_services,
            working,
            sourcing,
            summaries,
            failure,
        };
        let is_immediate_stop = draining.finish(&mut shutdown).await;
        let Draining {
            summaries, failure, ..
        } = draining;
        // Complete blocks are still emitted, unless the shutdown is immediate; nothing comes that they could wait for.
        stop_sink.raise(Level::Drain);
        if !is_immediate_stop && failure.is_none() {
            tokio::select! {
                drained = self.handle.when_drained() => drained?,
                () = shutdown.reached(Level::Stop) => {}
            }
        }
        sweeping.abort_all();
        if self.store.is_alone() {
            sweep_at_end(&self.handle, &self.blobs, &*self.store.log()).await;
        }
        let status = self.handle.operator().status().await?;
        stop_sink.raise(Level::Stop);
        match failure {
            Some(failure) => Err(failure),
            None => {
                let is_complete = status.live == 0 && summaries.values().all(|it| it.ended);
                // A mill that keeps running has no end of its own.
                let is_cut_off = keep_running || is_immediate_stop || !is_complete;
                Ok(Summary {
                    interrupted: is_stopping && is_cut_off,
                    status,
                    sources: summaries,
                })
            }
        }
    }

    fn begin_sources(
        &self,
        sources: Vec<(Box<dyn source::Source>, source::Options)>,
        services: &Shutdown,
    ) -> JoinSet<Sourced> {
        let mut sourcing = JoinSet::new();
        for (source, options) in sources {
            let name = options.name.to_string();
            let (port, blobs) = (self.handle.source(), self.blobs.clone());
            let ran = source::run(source, options, port, blobs, services.clone());
            sourcing.spawn(async move { (name, ran.await) });
        }
        sourcing
    }

    /// Starts the emission to the workflow's sinks and those of the options.
    async fn begin_sink(
        &mut self,
        shutdown: Shutdown,
    ) -> Result<JoinHandle<Result<(), SinkStopped>>, MillError> {
        let (state, bus) = (&self.options.state, self.options.bus.as_ref());
        sweep_sink_programs(&self.workflow, state).await?;
        let mut sinks = sinks(&self.workflow, &self.registry, state, bus).await?;
        sinks.append(&mut self.options.sinks);
        let mut options = sink::Options {
            sinks,
            checks: checks(&self.workflow, &self.registry, state)?,
            stream: self.options.stream.take(),
        };
        let (port, blobs) = (self.handle.sink(), self.blobs.clone());
        Ok(tokio::spawn(async move {
            sink::run(&mut options, port, blobs, shutdown).await
        }))
    }

    /// Stops the coordinator and closes the log; everything accepted is durable when this returns.
    pub fn close(self) -> BoxFuture<'static, Result<(), MillError>> {
        // Boxed, so that it is compiled in this crate and not again in every caller's.
        Box::pin(async move {
            self.stop_coordinator.raise(Level::Stop);
            let stopped = match self.coordinator.await {
                Ok(stopped) => stopped.map_err(MillError::from),
                Err(error) => Err(MillError::Panicked(error.to_string())),
            };
            let closed = self.store.close().await;
            stopped?;
            closed.map_err(|failure| CoordinatorError::Log(failure).into())
        })
    }
}

/// The name and the result of a source.
type Sourced = (String, Result<source::Summary, source::SourceError>);

/// The roles of a mill while they finish their work.
struct Draining {
    stop_services: Trigger,
    working: JoinSet<Result<(), CoordinatorGone>>,
    sourcing: JoinSet<Sourced>,
    summaries: BTreeMap<String, SourceSummary>,
    /// The first error, for which the mill fails.
    failure: Option<MillError>,
}

// === impl Draining ===

impl Draining {
    /// Waits for dispatchers, and for sources, which await their last acknowledgements. Returns
    /// whether an immediate stop was requested.
    async fn finish(&mut self, shutdown: &mut Shutdown) -> bool {
        let mut is_immediate_stop = false;
        while !(self.working.is_empty() && self.sourcing.is_empty()) {
            tokio::select! {
                Some(joined) = self.working.join_next() => {
                    if let Err(error) = joined {
                        self.failure = Some(MillError::Panicked(error.to_string()));
                    }
                }
                Some(joined) = self.sourcing.join_next() => {
                    if let Err(error) = note_source(joined, &mut self.summaries) {
                        self.failure.get_or_insert(error);
                    }
                }
                () = shutdown.reached(Level::Stop), if !is_immediate_stop => {
                    is_immediate_stop = true;
                    self.stop_services.raise(Level::Stop);
                }
            }
        }
        is_immediate_stop
    }
}

/// Waits until the sources have ended and no task is pending; for ever if the mill is to keep running.
async fn until_idle(
    handle: Handle,
    keep_running: bool,
    sourcing: &mut JoinSet<Sourced>,
    summaries: &mut BTreeMap<String, SourceSummary>,
) -> Result<(), MillError> {
    while let Some(joined) = sourcing.join_next().await {
        note_source(joined, summaries)?;
    }
    if keep_running {
        std::future::pending::<()>().await;
    }
    handle.when_idle().await.map_err(MillError::from)
}

/// Records the result of a source.
fn note_source(
    joined: Result<Sourced, JoinError>,
    summaries: &mut BTreeMap<String, SourceSummary>,
) -> Result<(), MillError> {
    match joined {
        Ok((name, summary)) => {
            summaries.insert(name, SourceSummary::from(summary?));
            Ok(())
        }
        Err(error) => Err(MillError::Panicked(error.to_string())),
    }
}

/// Limits of the history that a workflow keeps.
pub(crate) fn history_options(workflow: &file::Workflow) -> HistoryOptions {
    HistoryOptions {
        steps: usize::try_from(workflow.history.steps).unwrap_or(usize::MAX),
        keep: workflow.history.keep,
    }
}

/// Creates a directory that only this user can change, or checks an existing one.
pub(crate) fn make_private(path: &Path) -> std::io::Result<()> {
    make_private_directory(path)
}
