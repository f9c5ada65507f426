//! A workflow under a steady load with two coordinator processes, of which one leads.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::Context;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use proofmill_bus::Connection;
use proofmill_orchestrator::cluster::{self, ProcessContext};
use proofmill_orchestrator::shutdown::{self, Trigger};
use proofmill_orchestrator::sink::{Emitted, Sink, SinkError};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::harness::{
    EmissionCounter, Fleet, Journal, Load, Report, Role, StateDisk, Target, is_block, json_message,
    parse, registry, sequenced_stage,
};

/// Longest wait for any step before the experiment fails.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// The load: rate of blocks, time of a proof, number of dispatchers.
#[derive(Debug, clap::Args)]
pub(super) struct LoadArgs {
    /// Blocks submitted a second
    #[arg(long, default_value_t = 20.0)]
    rate: f64,
    /// Milliseconds of a proof
    #[arg(long, default_value_t = 100.0)]
    proof_ms: f64,
    /// Dispatchers, spread over up to four processes
    #[arg(long, default_value_t = 4)]
    dispatchers: u32,
}

/// A workflow with two coordinator processes, of which one leads; this process submits its blocks and receives its
/// emissions.
pub(super) struct CoordinatorPair {
    pub(super) fleet: Fleet,
    pub(super) emissions: EmissionCounter,
    journal: Journal,
    load: Load,
    repetitions: Arc<AtomicUsize>,
    /// The trigger that keeps the sequencer running: it ends when this is dropped.
    _sequencer_trigger: Trigger,
}

/// A sink that forwards emissions and drops repetitions, which it counts. A message is emitted again if a leader died
/// before it had recorded the first emission. The sink that writes a directory drops repetitions too.
struct DeduplicatingSink {
    stream: mpsc::Sender<Emitted>,
    payloads: HashMap<u64, Bytes>,
    repetitions: Arc<AtomicUsize>,
}

// === impl CoordinatorPair ===

impl CoordinatorPair {
    /// Starts the processes, the sequencer and the load, and waits for the first emission.
    pub(super) async fn start(
        name: &str,
        disk: &StateDisk,
        args: &LoadArgs,
    ) -> anyhow::Result<Self> {
        let state = disk.state(name);
        let bus = disk.bus(&state);
        let bus = bus.context("coordinators in processes of their own need --bus jetstream")?;
        let journal = Journal::in_directory(&state);
        let registry = registry();
        let text = sequenced_stage(name, args.dispatchers, &journal.sleep(args.proof_ms));
        let workflow = parse(&text, &registry)?;
        let mut fleet = Fleet::new(&workflow, bus.clone(), &state)?;
        for _ in 0..2 {
            fleet.start(Role::Coordinator)?;
        }
        fleet.start_dispatchers(&workflow)?;

        let connection = Connection::open(bus).await?;
        let state_here = state.join("here");
        let context =
            ProcessContext::open(connection, &workflow, registry, state_here, "bench").await?;
        let (plan, blobs) = (context.plan.clone(), context.blobs.clone());
        let queue = plan.queue_named("tasks").context("it has this queue")?;
        let (stream, emitted) = mpsc::channel(1024);
        let repetitions = Arc::new(AtomicUsize::new(0));
        let sink = DeduplicatingSink {
            stream,
            payloads: HashMap::new(),
            repetitions: repetitions.clone(),
        };
        let (trigger, shutdown) = shutdown::channel();
        tokio::spawn(async move {
            let ended = cluster::run_sequencer(context, vec![Box::new(sink)], shutdown).await;
            if let Err(error) = ended {
                eprintln!("the sequencer has ended: {error}");
            }
        });
        let emissions = EmissionCounter::count(emitted, is_block);
        let handle = fleet.submitter(blobs, plan).await?;
        let load = Load::start(handle, args.rate, move |block| {
            vec![json_message(queue, block, format!("{{\"block\":{block}}}"))]
        });
        let pair = Self {
            fleet,
            emissions,
            journal,
            load,
            repetitions,
            _sequencer_trigger: trigger,
        };
        anyhow::ensure!(
            pair.emissions.reaches(1, PATIENCE).await,
            "nothing is emitted"
        );
        Ok(pair)
    }

    /// Waits until a coordinator other than `before` leads; returns its name.
    pub(super) async fn leader(&self, before: Option<&str>) -> anyhow::Result<String> {
        let leads = timeout(PATIENCE, self.fleet.leader(before)).await;
        leads.context("nobody leads")
    }

    /// Ends the load, waits for the remaining blocks, and reports losses, repetitions and order.
    pub(super) async fn finish(self, report: &mut Report) -> anyhow::Result<()> {
        let submitted = self.load.end().await?;
        self.emissions.reaches(submitted, PATIENCE).await;
        let runs = self.journal.read();
        report.figure("blocks", submitted as f64, "", Target::None, "");
        let repetitions = self.repetitions.load(Ordering::SeqCst);
        let name = "handed out again, the same, and taken once";
        report.figure(name, repetitions as f64, "", Target::None, "");
        report.put("handed_out_again", repetitions);
        let name = "tasks begun more than once";
        report.figure(name, runs.begun_again() as f64, "", Target::None, "");
        report.put("blocks", submitted);
        report.put("begun_again", runs.begun_again());
        report.must_be_zero("proven_twice", "tasks proven twice", runs.proven_twice());
        report.emissions(&self.emissions, submitted);
        Ok(())
    }
}

// === impl DeduplicatingSink ===

impl Sink for DeduplicatingSink {
    fn put<'a>(&'a mut self, emitted: &'a Emitted) -> BoxFuture<'a, Result<(), SinkError>> {
        Box::pin(async move {
            let before = self.payloads.insert(emitted.first, emitted.bytes.clone());
            if before.as_ref() == Some(&emitted.bytes) {
                self.repetitions.fetch_add(1, Ordering::SeqCst);
                return Ok(());
            }
            // Sending fails if the counting task has ended.
            let _ = self.stream.send(emitted.clone()).await;
            Ok(())
        })
    }
}
