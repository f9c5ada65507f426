//! The roles that work for the current leader.

use futures_util::future::BoxFuture;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proofmill_bus::Role;
use proofmill_workflow::{self as file, Source, SourceKind};
use tokio::task::JoinSet;

use super::error::ClusterError;
use super::site::Site;
use crate::collector;
use crate::dispatcher::Dispatcher;
use crate::mill::{self, MillError, SourceSummary};
use crate::plan::StageIx;
use crate::port::{Ports, SourcePort};
use crate::principal::worker_name;
use crate::remote::{Client, Seat};
use crate::shutdown::{self, Level, Shutdown};
use crate::sink::{self, Sink, SinkStopped};
use crate::source;

/// Maximum time for a role to hand back its work after it is told to stop.
const HURRY: Duration = Duration::from_secs(2);

/// Runs dispatchers for the stages in `stages` (all stages, if it is empty). `workers` has the number of
/// dispatchers for a stage; the workflow has it for other stages. On [`Level::Drain`] the dispatchers finish
/// their tasks.
pub fn run_dispatchers(
    site: Site,
    stages: BTreeSet<String>,
    workers: BTreeMap<String, usize>,
    shutdown: Shutdown,
) -> BoxFuture<'static, Result<(), ClusterError>> {
    // Boxed, so that it is compiled here and not again in every program that calls it.
    Box::pin(async move {
        for stage in stages.iter().chain(workers.keys()) {
            let mut known = site.workflow.dispatchers.iter();
            if !known.any(|dispatcher| dispatcher.name == *stage) {
                return Err(ClusterError::Nothing {
                    workflow: site.workflow.name.clone(),
                    what: format!("no dispatcher {stage:?}"),
                });
            }
        }
        let chosen =
            |dispatcher: &&file::Dispatcher| stages.is_empty() || stages.contains(&dispatcher.name);
        let chosen = site.workflow.dispatchers.iter().filter(chosen);
        let mut groups: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        for dispatcher in chosen {
            let of_group = groups.entry(&dispatcher.group).or_default();
            of_group.insert(dispatcher.name.clone());
        }
        let mut crews = Vec::new();
        for (group, stages) in groups {
            let crew = Crew::open(&site, group, &stages, &workers).await?;
            crews.extend(crew);
        }
        let Some(first) = crews.first() else {
            return Err(ClusterError::Nothing {
                workflow: site.workflow.name.clone(),
                what: "no dispatchers to run here".into(),
            });
        };
        site.roles(first.ports()).sweep_programs().await?;
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
        site: &Site,
        group: &str,
        stages: &BTreeSet<String>,
        workers: &BTreeMap<String, usize>,
    ) -> Result<Option<Self>, ClusterError> {
        let user = site.user();
        let (client, ports) = site
            .client(Seat::of_workers(group, user), &site.name)
            .await?;
        let name = |worker: &str| worker_name(worker, group, user, &site.name);
        let dispatchers = site
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
        let mut hurry = shutdown;
        let carried = tokio::select! {
            carried = self.client.run() => carried,
            () = async {
                hurry.reached(Level::Stop).await;
                tokio::time::sleep(HURRY).await;
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
    site: Site,
    stages: BTreeSet<String>,
    shutdown: Shutdown,
) -> BoxFuture<'static, Result<(), ClusterError>> {
    // Boxed, so that it is compiled here and not again in every program that calls it.
    Box::pin(async move {
        let nothing = |what: String| ClusterError::Nothing {
            workflow: site.workflow.name.clone(),
            what,
        };
        let is_collector = |ix: &StageIx| site.plan.stage(*ix).collector().is_some();
        let all = (0..site.plan.stages.len())
            .map(StageIx)
            .filter(is_collector);
        let chosen = if stages.is_empty() {
            all.collect()
        } else {
            let named = stages.iter().map(|name| {
                let found = site.plan.stage_named(name).filter(is_collector);
                found.ok_or_else(|| nothing(format!("no collector {name:?}")))
            });
            named.collect::<Result<Vec<StageIx>, ClusterError>>()?
        };
        if chosen.is_empty() {
            return Err(nothing("no collectors to run here".into()));
        }
        let (client, ports) = site.client(Seat::of(Role::Collector), &site.name).await?;
        let host = collector::Host::new(site.plan.clone(), site.name.clone(), chosen);
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
    site: Site,
    further: Vec<Box<dyn Sink>>,
    mut shutdown: Shutdown,
) -> BoxFuture<'static, Result<(), ClusterError>> {
    // Boxed, so that it is compiled here and not again in every program that calls it.
    Box::pin(async move {
        let mut sinks = mill::sinks(&site.workflow, &site.state, Some(&site.connection)).await?;
        sinks.extend(further);
        let mut options = sink::Options {
            sinks,
            checks: mill::checks(&site.workflow, &site.registry, &site.state)?,
            stream: None,
        };
        while let Some(lease) = site.turn("sequencer", &mut shutdown).await {
            mill::sweep_sink_programs(&site.workflow, &site.state).await?;
            let (mut client, ports) = site.client(Seat::of(Role::Sequencer), &site.name).await?;
            client.set_sink_term(lease.term());
            let (stop, stopping) = shutdown::channel();
            let (port, blobs) = (ports.sink(), site.blobs.clone());
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
                None => match tokio::time::timeout(HURRY, &mut carrying).await {
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
    site: Site,
    shutdown: Shutdown,
) -> BoxFuture<'static, Result<BTreeMap<String, SourceSummary>, ClusterError>> {
    // Boxed, so that it is compiled here and not again in every program that calls it.
    Box::pin(async move {
        let sources = site.workflow.sources.iter();
        let own = sources.filter(|source| !matches!(source.kind, SourceKind::Submit));
        let mut running = JoinSet::new();
        for stage in own {
            running.spawn(run_source(site.clone(), stage.clone(), shutdown.clone()));
        }
        if running.is_empty() {
            return Err(ClusterError::Nothing {
                workflow: site.workflow.name.clone(),
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
    site: Site,
    serve: impl FnOnce(SourcePort) -> F,
) -> Result<(), ClusterError> {
    let (client, ports) = site.client(Seat::of(Role::Source), &site.name).await?;
    let port = ports.source();
    drop(ports);
    tokio::select! {
        carried = client.run() => Ok(carried?),
        () = serve(port) => Ok(()),
    }
}

async fn run_source(
    site: Site,
    stage: Source,
    mut shutdown: Shutdown,
) -> Result<(String, SourceSummary), ClusterError> {
    let what = format!("source.{}", stage.name);
    while let Some(lease) = site.turn(&what, &mut shutdown).await {
        let name = format!("{}-{}", site.name, stage.name);
        let (client, ports) = site.client(Seat::of(Role::Source), &name).await?;
        let Some((source, options)) = site.roles(&ports).source(&stage)? else {
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
            site.blobs.clone(),
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
                let mut hurry = shutdown.clone();
                tokio::select! {
                    ran = &mut running => Some(ran),
                    () = hurry.reached(Level::Stop) => None,
                }
            }
        };
        if ran.is_none() {
            carrying.abort();
        }
        lease.give_back().await;
        match ran {
            Some(Ok(summary)) => return Ok((stage.name, summary.into())),
            Some(Err(source::SourceError::Gone(_))) => match carrying.await {
                Ok(carried) => carried?,
                Err(error) => return Err(MillError::Panicked(error.to_string()).into()),
            },
            Some(Err(error)) => return Err(MillError::from(error).into()),
            None => {}
        }
    }
    Ok((stage.name, source::Summary::default().into()))
}
