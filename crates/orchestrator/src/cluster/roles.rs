//! The roles that work for the current leader.

use futures_util::future::BoxFuture;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proofmill_workflow::{self as file, Source, SourceKind};
use tokio::task::JoinSet;

use super::error::ClusterError;
use super::site::ProcessContext;
use crate::collector;
use crate::dispatcher::Dispatcher;
use crate::mill::{self, MillError, SourceSummary};
use crate::plan::StageIx;
use crate::port::{Ports, SourcePort};
use crate::principal::worker_name;
use crate::remote::{Client, Role, Seat};
use crate::shutdown::{self, Level, Shutdown};
use crate::sink::{self, Sink, SinkStopped};
use crate::source;

/// Maximum time for a role to hand back its work after it is told to stop.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

/// Runs dispatchers for the stages in `stages` (all stages, if it is empty). `workers` has the number of
/// dispatchers for a stage; the workflow has it for other stages. On [`Level::Drain`] the dispatchers finish
/// their tasks.
pub fn run_dispatchers(
    context: ProcessContext,
    stages: BTreeSet<String>,
    workers: BTreeMap<String, usize>,
    shutdown: Shutdown,
) -> BoxFuture<'static, Result<(), ClusterError>> {
    // Boxed, so that it is compiled here and not again in every program that calls it.
    Box::pin(async move {
        for stage in stages.iter().chain(workers.keys()) {
            let mut known = context.workflow.dispatchers.iter();
            if !known.any(|dispatcher| dispatcher.name == *stage) {
                return Err(ClusterError::Nothing {
                    workflow: context.workflow.name.clone(),
                    what: format!("no dispatcher {stage:?}"),
                });
            }
        }
        let chosen =
            |dispatcher: &&file::Dispatcher| stages.is_empty() || stages.contains(&dispatcher.name);
        let chosen = context.workflow.dispatchers.iter().filter(chosen);
        let mut groups: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        for dispatcher in chosen {
            let of_group = groups.entry(&dispatcher.group).or_default();
            of_group.insert(dispatcher.name.clone());
        }
        let mut crews = Vec::new();
        for (group, stages) in groups {
            let crew = Crew::open(&context, group, &stages, &workers).await?;
            crews.extend(crew);
        }
        let Some(first) = crews.first() else {
            return Err(ClusterError::Nothing {
                workflow: context.workflow.name.clone(),
                what: "no dispatchers to run here".into(),
            });
        };
        context.roles(first.ports()).sweep_programs().await?;
        let mut working = JoinSet::new();
        for crew in crews {
            working.spawn(crew.run(shutdown.clone()));
        }
        while let Some(joined) = working.join_next().await {
            joined.map_err(|error| MillError::Panicked(error.to_string()))??;
        }
        Ok(())
    })
}

/// The dispatchers of one worker group, and the client that carries their messages. A client belongs to one
/// group: the server tells the groups apart by the subject of a message.
struct Crew {
    client: Client,
    ports: Ports,
    dispatchers: Vec<Dispatcher>,
}

// === impl Crew ===

impl Crew {
    /// Opens the group's dispatchers; `None` if it has none here.
    async fn open(
        context: &ProcessContext,
        group: &str,
        stages: &BTreeSet<String>,
        workers: &BTreeMap<String, usize>,
    ) -> Result<Option<Self>, ClusterError> {
        let user = context.user();
        let (client, ports) = context
            .client(Seat::of_workers(group, user), &context.name)
            .await?;
        let name = |worker: &str| worker_name(worker, group, user, &context.name);
        let dispatchers = context
            .roles(&ports)
            .dispatchers(workers, Some(stages), &name)?;
        let crew = Self {
            client,
            ports,
            dispatchers,
        };
        Ok((!crew.dispatchers.is_empty()).then_some(crew))
    }

    fn ports(&self) -> &Ports {
        &self.ports
    }

    async fn run(self, shutdown: Shutdown) -> Result<(), ClusterError> {
        drop(self.ports);
        let mut working = JoinSet::new();
        for dispatcher in self.dispatchers {
            working.spawn(dispatcher.run(shutdown.clone()));
        }
        // The dispatchers hold the ports, so the client ends after them, or soon after a stop.
        let mut until_stop = shutdown;
        let carried = tokio::select! {
            carried = self.client.run() => carried,
            () = async {
                until_stop.reached(Level::Stop).await;
                tokio::time::sleep(SHUTDOWN_TIMEOUT).await;
            } => return Ok(()),
        };
        while let Some(joined) = working.join_next().await {
            if let Err(error) = joined {
                return Err(MillError::Panicked(error.to_string()).into());
            }
        }
        Ok(carried?)
    }
}

/// Keeps partitions of the collectors in `stages` (all collectors, if it is empty), until `shutdown` reaches
/// [`Level::Drain`].
pub fn run_collectors(
    context: ProcessContext,
    stages: BTreeSet<String>,
    shutdown: Shutdown,
) -> BoxFuture<'static, Result<(), ClusterError>> {
    // Boxed, so that it is compiled here and not again in every program that calls it.
    Box::pin(async move {
        let nothing = |what: String| ClusterError::Nothing {
            workflow: context.workflow.name.clone(),
            what,
        };
        let is_collector = |ix: &StageIx| context.plan.stage(*ix).collector().is_some();
        let all = (0..context.plan.stages.len())
            .map(StageIx)
            .filter(is_collector);
        let chosen = if stages.is_empty() {
            all.collect()
        } else {
            let named = stages.iter().map(|name| {
                let found = context.plan.stage_named(name).filter(is_collector);
                found.ok_or_else(|| nothing(format!("no collector {name:?}")))
            });
            named.collect::<Result<Vec<StageIx>, ClusterError>>()?
        };
        if chosen.is_empty() {
            return Err(nothing("no collectors to run here".into()));
        }
        let (client, ports) = context
            .client(Seat::of(Role::Collector), &context.name)
            .await?;
        let host = collector::Host::new(context.plan.clone(), context.name.clone(), chosen);
        let keeping = tokio::spawn(collector::run(host, ports.host(), shutdown));
        // Only the host's task holds a port now, so the client ends after it.
        drop(ports);
        let carried = client.run().await;
        keeping.abort();
        Ok(carried?)
    })
}

/// Hands the sequencer's emissions to the workflow's directory and sinks, then to `further`, whenever no
/// other process does.
pub fn run_sequencer(
    context: ProcessContext,
    further: Vec<Box<dyn Sink>>,
    mut shutdown: Shutdown,
) -> BoxFuture<'static, Result<(), ClusterError>> {
    // Boxed, so that it is compiled here and not again in every program that calls it.
    Box::pin(async move {
        let (workflow, registry) = (&context.workflow, &context.registry);
        let bus = Some(&context.connection);
        let mut sinks = mill::sinks(workflow, registry, &context.state, bus).await?;
        sinks.extend(further);
        let mut options = sink::Options {
            sinks,
            checks: mill::checks(&context.workflow, &context.registry, &context.state)?,
            stream: None,
        };
        while let Some(lease) = context.take_role_lease("sequencer", &mut shutdown).await {
            mill::sweep_sink_programs(&context.workflow, &context.state).await?;
            let (mut client, ports) = context
                .client(Seat::of(Role::Sequencer), &context.name)
                .await?;
            client.set_sink_term(lease.term());
            let (stop, stopping) = shutdown::channel();
            let (port, blobs) = (ports.sink(), context.blobs.clone());
            drop(ports);
            let mut sinking = tokio::spawn(async move {
                let ran = sink::run(&mut options, port, blobs, stopping).await;
                (options, ran)
            });
            let mut sunk = None;
            let mut carrying = tokio::spawn(client.run());
            let carried = tokio::select! {
                carried = &mut carrying => Some(carried),
                ended = &mut sinking => {
                    sunk = Some(ended);
                    None
                }
                () = lease.lost() => None,
                () = shutdown.reached(Level::Drain) => None,
            };
            stop.raise(Level::Stop);
            let panicked = |error: tokio::task::JoinError| MillError::Panicked(error.to_string());
            let sunk = match sunk {
                Some(sunk) => sunk,
                None => sinking.await,
            };
            let (sunk, ran) = sunk.map_err(panicked)?;
            options = sunk;
            let carried = match carried {
                Some(carried) => carried,
                // Emissions that were handed out are still confirmed.
                None => match tokio::time::timeout(SHUTDOWN_TIMEOUT, &mut carrying).await {
                    Ok(carried) => carried,
                    Err(_) => {
                        carrying.abort();
                        Ok(Ok(()))
                    }
                },
            };
            lease.give_back().await;
            carried.map_err(panicked)??;
            // The client reports that it has gone.
            if let Err(SinkStopped::Refused(refused)) = ran {
                return Err(MillError::from(refused).into());
            }
        }
        Ok(())
    })
}

/// Runs each source of the workflow whenever no other process does, until all have ended.
pub fn run_sources(
    context: ProcessContext,
    shutdown: Shutdown,
) -> BoxFuture<'static, Result<BTreeMap<String, SourceSummary>, ClusterError>> {
    // Boxed, so that it is compiled here and not again in every program that calls it.
    Box::pin(async move {
        let sources = context.workflow.sources.iter();
        let own = sources.filter(|source| !matches!(source.kind, SourceKind::Submit));
        let mut running = JoinSet::new();
        for stage in own {
            running.spawn(run_source(context.clone(), stage.clone(), shutdown.clone()));
        }
        if running.is_empty() {
            return Err(ClusterError::Nothing {
                workflow: context.workflow.name.clone(),
                what: "no source that runs by itself".into(),
            });
        }
        let mut summaries = BTreeMap::new();
        while let Some(joined) = running.join_next().await {
            let (name, summary) =
                joined.map_err(|error| MillError::Panicked(error.to_string()))??;
            summaries.insert(name, summary);
        }
        Ok(summaries)
    })
}

/// Gives `serve` a port to the current leader, for messages from outside the workflow, and runs until `serve`
/// ends.
pub async fn run_submissions<F: Future<Output = ()>>(
    context: ProcessContext,
    serve: impl FnOnce(SourcePort) -> F,
) -> Result<(), ClusterError> {
    let (client, ports) = context
        .client(Seat::of(Role::Source), &context.name)
        .await?;
    let port = ports.source();
    drop(ports);
    tokio::select! {
        carried = client.run() => Ok(carried?),
        () = serve(port) => Ok(()),
    }
}

async fn run_source(
    context: ProcessContext,
    stage: Source,
    mut shutdown: Shutdown,
) -> Result<(String, SourceSummary), ClusterError> {
    let what = format!("source.{}", stage.name);
    while let Some(lease) = context.take_role_lease(&what, &mut shutdown).await {
        let name = format!("{}-{}", context.name, stage.name);
        let (client, ports) = context.client(Seat::of(Role::Source), &name).await?;
        let Some((source, options)) = context.roles(&ports).source(&stage)? else {
            break;
        };
        let port = ports.source();
        drop(ports);
        let (stop, stopping) = shutdown::channel();
        let carrying = tokio::spawn(client.run());
        let mut running = std::pin::pin!(source::run(
            source,
            options,
            port,
            context.blobs.clone(),
            stopping,
        ));
        let ran = tokio::select! {
            ran = &mut running => Some(ran),
            () = lease.lost() => {
                stop.raise(Level::Stop);
                None
            }
            () = shutdown.reached(Level::Drain) => {
                stop.raise(Level::Drain);
                let mut until_stop = shutdown.clone();
                tokio::select! {
                    ran = &mut running => Some(ran),
                    () = until_stop.reached(Level::Stop) => {
                        stop.raise(Level::Stop);
                        Some(running.await)
                    }
                }
            }
        };
        if ran.is_none() {
            carrying.abort();
        }
        lease.give_back().await;
        match ran {
            Some(Ok(summary)) => return Ok((stage.name, summary.into())),
            Some(Err(source::SourceError::CoordinatorGone(_))) => match carrying.await {
                Ok(carried) => carried?,
                Err(error) => return Err(MillError::Panicked(error.to_string()).into()),
            },
            Some(Err(error)) => return Err(MillError::from(error).into()),
            None => {}
        }
    }
    Ok((stage.name, source::Summary::default().into()))
}
