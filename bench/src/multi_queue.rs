//! A workflow with separate queues for proposers and provers, against one that proposes a block only after
//! the one before has left.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use proofmill_orchestrator::executor::{Context, Json, Prover, ProverError};
use proofmill_orchestrator::mill::Registry;
use proofmill_orchestrator::plan::QueueIx;
use proofmill_orchestrator::port::SourcePort;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::harness::{
    Common, Progress, Report, RunningMill, StateDisk, Target, json_message, parse, round, work_for,
};

/// Longest pause between two events, beyond the time of the poisoned proof. After it, the rest counts as
/// lost.
const PATIENCE: Duration = Duration::from_secs(30);

/// Arguments of `proofmill-bench multi-queue`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
One workflow, run twice: `propose` commits a block's boundary and asks for its proofs, `prove` makes
them, a barrier gathers them, the sequencer emits the block.

  linear       a block is proposed when the one before it has left: one line for both
  multi-queue  every block is proposed as soon as the proposer is free: it has a queue of its own

  speedup      linear over multi-queue, of the time until the last block's boundary is committed
  end to end   the same, of the time until the last block is emitted
  skew         blocks that the proposer is ahead of the chain while the chain waits for the
               poisoned block

  proofmill-bench multi-queue                # about a minute
  proofmill-bench multi-queue --scale 0.1    # every time a tenth of it, for a quick look")]
pub(crate) struct Args {
    #[command(flatten)]
    common: Common,
    /// Blocks
    #[arg(long, default_value_t = 30)]
    blocks: u64,
    /// Proofs of each block
    #[arg(long, default_value_t = 8)]
    proofs: u32,
    /// Dispatchers that prove
    #[arg(long, default_value_t = 4)]
    dispatchers: u32,
    /// Milliseconds that the proposer takes for a block
    #[arg(long, default_value_t = 10.0)]
    propose_ms: f64,
    /// Milliseconds of a proof
    #[arg(long, default_value_t = 300.0)]
    proof_ms: f64,
    /// The block of which one proof takes --poison-ms
    #[arg(long, default_value_t = 5)]
    poisoned: u64,
    /// Milliseconds of the poisoned proof
    #[arg(long, default_value_t = 15_000.0)]
    poison_ms: f64,
    /// Multiplies every time
    #[arg(long, default_value_t = 1.0)]
    scale: f64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Variant {
    Linear,
    MultiQueue,
}

struct Run {
    proposed: f64,
    emitted: f64,
    skew: u64,
    lost: usize,
    out_of_order: usize,
}

/// Measures and reports.
pub(crate) async fn run(args: &Args) -> anyhow::Result<()> {
    anyhow::ensure!(
        args.poisoned < args.blocks,
        "--poisoned must be one of the blocks"
    );
    anyhow::ensure!(args.scale > 0.0, "--scale must be above 0");
    let disk = StateDisk::fresh(&args.common)?;
    let linear = measure(args, &disk, &disk.state("linear"), Variant::Linear).await?;
    let multi = measure(args, &disk, &disk.state("multi-queue"), Variant::MultiQueue).await?;

    let title = format!(
        "Multi-queue against linear: {} blocks, {} proofs each on {} dispatchers, block {} poisoned",
        args.blocks, args.proofs, args.dispatchers, args.poisoned
    );
    let mut report = Report::new(&title, &disk);
    let speedup = linear.proposed / multi.proposed;
    let end_to_end = linear.emitted / multi.emitted;
    let figures = [
        (
            "all boundaries committed, linear",
            linear.proposed,
            "s",
            Target::None,
            "",
        ),
        (
            "all boundaries committed, multi-queue",
            multi.proposed,
            "s",
            Target::None,
            "",
        ),
        (
            "speedup of the proposer",
            speedup,
            "×",
            Target::AtLeast(4.2),
            "4.2×",
        ),
        (
            "all blocks emitted, linear",
            linear.emitted,
            "s",
            Target::None,
            "",
        ),
        (
            "all blocks emitted, multi-queue",
            multi.emitted,
            "s",
            Target::None,
            "",
        ),
        ("speedup end to end", end_to_end, "×", Target::None, ""),
        ("skew, linear", linear.skew as f64, "", Target::None, ""),
        (
            "skew, multi-queue",
            multi.skew as f64,
            "",
            Target::AtLeast(25.0),
            "25",
        ),
    ];
    for (name, ours, unit, target, push0) in figures {
        report.figure(name, ours, unit, target, push0);
    }
    report.note("push0's figures: table VI; `--help` says what each of ours is the time of");
    report.put("speedup", round(speedup));
    report.put("speedup_end_to_end", round(end_to_end));
    report.put("skew", multi.skew);
    report.put("skew_linear", linear.skew);
    report.put("linear_s", round(linear.emitted));
    report.put("multi_queue_s", round(multi.emitted));
    report.must_be_zero("lost", "blocks lost", linear.lost + multi.lost);
    report.must_be_zero(
        "out_of_order",
        "out of order",
        linear.out_of_order + multi.out_of_order,
    );
    report.finish(&args.common)
}

async fn measure(
    args: &Args,
    disk: &StateDisk,
    state: &Path,
    variant: Variant,
) -> anyhow::Result<Run> {
    let text = format!(
        r#"
        name = "multi-queue"
        [[source]]
        name = "chain"
        kind = "submit"
        output = "blocks"
        [[dispatcher]]
        name = "propose"
        input = "blocks"
        output = "boundaries"
        fan_out = true
        executor = {{ kind = "native", prover = "propose" }}
        [[dispatcher]]
        name = "prove"
        input = "boundaries"
        output = "proofs"
        workers = {}
        executor = {{ kind = "native", prover = "prove" }}
        [[collector]]
        name = "gather"
        inputs = ["proofs"]
        output = "proven"
        strategy = {{ kind = "match", k = {}, group_by = "/block" }}
        [sequencer]
        input = "proven"
        "#,
        args.dispatchers, args.proofs
    );
    let registry = registry(args);
    let workflow = parse(&text, &registry)?;
    let mut mill = RunningMill::start(&workflow, registry, disk, state).await?;
    let (label, window) = match variant {
        Variant::Linear => ("linear", 1),
        Variant::MultiQueue => ("multi-queue", args.blocks),
    };
    let began = Instant::now();
    let (emissions, emissions_receiver) = mpsc::channel(1024);
    let blocks = mill.queue("blocks")?;
    let submitter = tokio::spawn(submit_blocks(
        mill.source.clone(),
        blocks,
        args.blocks,
        window,
        emissions_receiver,
    ));

    let progress = Progress::new(&format!("{label}: blocks emitted"), args.blocks as usize);
    let mut run = Run {
        proposed: f64::NAN,
        emitted: f64::NAN,
        skew: 0,
        lost: 0,
        out_of_order: 0,
    };
    let (mut proposed, mut emitted) = (0, 0);
    let patience = PATIENCE + scaled(args, args.poison_ms);
    while emitted < args.blocks {
        let step = async {
            tokio::select! {
                settled = mill.settled.recv() => {
                    let settled = settled.context("the mill has stopped")?;
                    if settled.completed && &*settled.task.id.stage == "propose" {
                        proposed += 1;
                        run.proposed = began.elapsed().as_secs_f64();
                    }
                }
                block = mill.emitted.recv() => {
                    let block = block.context("the mill has stopped")?;
                    run.out_of_order += usize::from(block.first != emitted);
                    emitted += 1;
                    run.emitted = began.elapsed().as_secs_f64();
                    // Sending fails if all blocks are submitted already.
                    let _ = emissions.send(()).await;
                }
            }
            anyhow::Ok(())
        };
        match timeout(patience, step).await {
            Ok(result) => result?,
            Err(_) => break,
        }
        if emitted == args.poisoned {
            run.skew = run.skew.max(proposed - emitted);
        }
        progress.set(emitted as usize);
    }
    run.lost = (args.blocks - emitted) as usize;
    drop(emissions);
    submitter
        .await
        .context("the proposer's driver panicked")??;
    mill.finish().await?;
    Ok(run)
}

/// Submits the blocks, at most `window` of them ahead of the emissions.
async fn submit_blocks(
    port: SourcePort,
    queue: QueueIx,
    blocks: u64,
    window: u64,
    mut emissions: mpsc::Receiver<()>,
) -> anyhow::Result<()> {
    for block in 0..blocks {
        if block >= window && emissions.recv().await.is_none() {
            break;
        }
        let request = json_message(queue, block, format!("{{\"block\":{block}}}"));
        // The reply is not awaited, as the completion is counted.
        drop(port.submit_later(request).await?);
    }
    Ok(())
}

fn scaled(args: &Args, ms: f64) -> Duration {
    Duration::from_secs_f64(ms * args.scale / 1e3)
}

#[derive(Deserialize)]
struct Block {
    block: u64,
}

#[derive(Serialize, Deserialize)]
struct Proof {
    block: u64,
    index: u32,
}

/// A prover that commits a block's boundary. Its output is the list of the proofs that the block needs.
struct Propose {
    duration: Duration,
    proofs: u32,
}

/// A prover that makes one of the proofs.
struct Prove {
    duration: Duration,
    poisoned: u64,
    poisoned_duration: Duration,
}

fn registry(args: &Args) -> Registry {
    let mut registry = Registry::default();
    let (duration, proofs) = (scaled(args, args.propose_ms), args.proofs);
    registry.prover("propose", move |_| Ok(Propose { duration, proofs }));
    let (duration, poisoned) = (scaled(args, args.proof_ms), args.poisoned);
    let poisoned_duration = scaled(args, args.poison_ms);
    registry.prover("prove", move |_| {
        Ok(Prove {
            duration,
            poisoned,
            poisoned_duration,
        })
    });
    registry
}

impl Prover for Propose {
    type Input = Json<Block>;
    type Output = Json<Vec<Proof>>;

    fn prove(
        &self,
        _: &Context,
        Json(block): Json<Block>,
    ) -> Result<Json<Vec<Proof>>, ProverError> {
        work_for(self.duration);
        let block = block.block;
        Ok(Json(
            (0..self.proofs)
                .map(|index| Proof { block, index })
                .collect(),
        ))
    }
}

impl Prover for Prove {
    type Input = Json<Proof>;
    type Output = Json<Proof>;

    fn prove(&self, _: &Context, Json(proof): Json<Proof>) -> Result<Json<Proof>, ProverError> {
        let poisoned = proof.block == self.poisoned && proof.index == 0;
        work_for(if poisoned {
            self.poisoned_duration
        } else {
            self.duration
        });
        Ok(Json(proof))
    }
}
