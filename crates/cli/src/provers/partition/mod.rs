//! `partition.*`: the steps of one proof for a circuit in parts, as stages of a workflow.
//!
//! `partition.trace`, `partition.challenge` and `partition.aggregate` are the coordinator's steps: they need the job's
//! file, with the witness's path and the seed. `partition.commit` and `partition.prove` are the workers' steps: they
//! need the keys only, and the coordinator checks their results before these count. Workers also make shards of the
//! aggregation.

mod batches;
mod engines;
mod job;
mod messages;
mod parts;
mod published;
mod shards;
mod shared;
mod steps;

pub(crate) use batches::{Batches, PARTS_MAX};
pub(crate) use engines::circuit_name as engine_circuit_name;
pub(crate) use job::Job;
pub(crate) use published::store as published_store;

use std::path::Path;
use std::sync::Arc;

use proofmill_aggregation::sharded::MAX_SHARDS;
use proofmill_bus::Connection;
use proofmill_orchestrator::mill::Registry;
use proofmill_workflow::{Dispatcher, EngineExecutor, Executor, Workflow};
use serde_json::Value;
use tokio::runtime::Handle;

use crate::failure::Failure;
use engines::EngineSettings;
use job::{JobFile, Jobs};
use parts::{LoadedKeys, WorkerKeys};
use published::PublishedKeys;
use shards::{BusNetwork, Leaders, ShardServer};

/// The parameter of `partition.prove` that names engines.
const ENGINES: &str = "engines";

/// The parameter of `partition.aggregate` that allows shards.
const SHARDS: &str = "shards";

/// The provers of a process, and what they share.
#[derive(Clone)]
pub(crate) struct PartitionProvers {
    keys: Arc<LoadedKeys>,
    /// The bus, with the runtime of its connection.
    bus: Option<(Connection, Handle)>,
}

// === impl PartitionProvers ===

impl PartitionProvers {
    /// Those of a process without a bus.
    pub(crate) fn alone() -> Self {
        Self {
            keys: Arc::new(LoadedKeys::new(None)),
            bus: None,
        }
    }

    /// Those of a process on a bus; `keys` is the folder of proving keys. Keys that are not on this machine are fetched
    /// from the bus. Must be called in a runtime.
    pub(crate) fn on(connection: &Connection, keys: &Path) -> Self {
        let runtime = Handle::current();
        let published = PublishedKeys::on(connection, keys, &runtime);
        Self {
            keys: Arc::new(LoadedKeys::new(Some(published))),
            bus: Some((connection.clone(), runtime)),
        }
    }

    /// Registers the provers.
    pub(super) fn register(self, registry: &mut Registry) {
        let jobs = Arc::new(Jobs::default());
        let of_trace = Arc::clone(&jobs);
        registry.prover("partition.trace", move |params| {
            Ok(steps::Trace(JobFile::of(params, &of_trace)?))
        });
        let of_challenge = Arc::clone(&jobs);
        registry.prover("partition.challenge", move |params| {
            Ok(steps::Challenge(JobFile::of(params, &of_challenge)?))
        });
        let bus = self.bus;
        registry.verifier("partition.aggregate", move |params| {
            let mut params = params.clone();
            let shards = params.as_object_mut().and_then(|all| all.remove(SHARDS));
            let leaders = shards.map(|shards| leaders(&shards, bus.as_ref()));
            let leaders = leaders.transpose()?.flatten();
            Ok(steps::Aggregate(JobFile::of(&params, &jobs)?, leaders))
        });
        registry.strategy("partition.batches", Arc::new(Batches::factory));
        registry.strategy("partition.all-batches", Arc::new(batches::all_batches));
        let (keys, of_commit) = (Arc::clone(&self.keys), self.keys);
        registry.checked_prover("partition.commit", move |params| {
            Ok(steps::Commit(WorkerKeys::of(params, &of_commit)?))
        });
        registry.checked_prover("partition.prove", move |params| {
            Ok(steps::Prove(WorkerKeys::of(params, &keys)?))
        });
    }

    /// Makes shards of aggregations for as long as this is polled, if the workflow divides them and a stage for which
    /// `runs` is true proves parts. Returns at once otherwise; `name` is the process's.
    pub(crate) async fn serve_shards(
        &self,
        workflow: &Workflow,
        runs: impl Fn(&Dispatcher) -> bool,
        name: &str,
    ) -> Result<(), Failure> {
        let divides = |stage: &Dispatcher| {
            params(stage, "partition.aggregate").is_some_and(|params| params.get(SHARDS).is_some())
        };
        let mut proves = workflow.dispatchers.iter().filter(|stage| runs(stage));
        let proves = proves.find_map(|stage| params(stage, "partition.prove"));
        let (Some((connection, _)), Some(params)) = (&self.bus, proves) else {
            return Ok(());
        };
        if !workflow.dispatchers.iter().any(divides) {
            return Ok(());
        }
        let keys = WorkerKeys::of(params, &self.keys).map_err(Failure::new)?;
        let network = BusNetwork::new(connection, keys.partition());
        let server = ShardServer::new(move || {
            let work = keys.work().map_err(|error| error.to_string())?;
            Ok(work)
        });
        network.serve(Arc::new(server), name).await
    }
}

/// The parameters of a stage, if this prover runs it.
fn params<'w>(stage: &'w Dispatcher, name: &str) -> Option<&'w Value> {
    match &stage.executor {
        Executor::Native { prover, params } if prover == name => Some(params),
        _ => None,
    }
}

/// The engines at which a stage proves parts; none if it proves no parts, or proves them in its own process.
pub(crate) fn part_engines(stage: &Dispatcher) -> Option<EngineExecutor> {
    let settings = params(stage, "partition.prove")?.get(ENGINES)?.clone();
    let settings: EngineSettings = serde_json::from_value(settings).ok()?;
    // Its circuits are the classes', which the keys name.
    settings.executor("").ok()
}

/// The leader of aggregations in so many shards; none without a bus, where one process makes them.
fn leaders(shards: &Value, bus: Option<&(Connection, Handle)>) -> Result<Option<Leaders>, String> {
    let shards = shards.as_u64().and_then(|it| usize::try_from(it).ok());
    let shards = shards.filter(|shards| shards.is_power_of_two() && *shards <= MAX_SHARDS);
    let shards = shards.ok_or_else(|| {
        format!("`{SHARDS}` is the number of shards: a power of two up to {MAX_SHARDS}")
    })?;
    Ok(bus.map(|(connection, runtime)| Leaders::new(connection, runtime, shards)))
}
