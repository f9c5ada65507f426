//! Producers submit ten times the proving rate: measures the queue's length, and the waiting times of producers and of
//! the chain's head.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use proofmill_orchestrator::core::Settled;
use proofmill_orchestrator::plan::QueueIx;
use proofmill_orchestrator::port::{OperatorPort, SourcePort};
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use crate::harness::{
    Common, Figures, Load, Report, RunningMill, StateDisk, Target, json_message, one_stage, parse,
    registry, round, sleep,
};

/// First block of the flood. The blocks at the head of the chain are below it.
const FLOOD_FIRST_BLOCK: u64 = 1 << 32;

/// Blocks that are submitted at the head of the chain, a second.
const HEAD_RATE: f64 = 10.0;

/// Submission rate as a multiple of the proving rate.
const OVERLOAD_FACTOR: f64 = 10.0;

/// Most unacknowledged submissions of one producer.
const WINDOW: usize = 64;

/// Interval between samples of the queue.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(5);

/// Time after the producers' end at which unfinished blocks count as lost.
const PATIENCE: Duration = Duration::from_secs(30);

/// Bytes in a mebibyte.
const MIB: f64 = 1024.0 * 1024.0;

/// Arguments of `proofmill-bench cluster flood`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    common: Common,
    /// Seconds of the flood
    #[arg(long, default_value_t = 20)]
    seconds: u64,
    /// Q_max of the queue
    #[arg(long, default_value_t = 1000)]
    q_max: usize,
    /// Dispatchers
    #[arg(long, default_value_t = 4)]
    dispatchers: u32,
    /// Milliseconds of a proof
    #[arg(long, default_value_t = 20)]
    proof_ms: u32,
    /// Producers, which together bring ten times what the dispatchers can do
    #[arg(long, default_value_t = 8)]
    producers: u64,
}

/// Peaks of the queue and of this process's memory.
#[derive(Clone, Copy, Debug, Default)]
struct Peaks {
    /// Most tasks that waited in the queue.
    depth: usize,
    /// Most producers' messages that waited before it.
    outside: usize,
    /// Most bytes of memory.
    memory: u64,
}

/// Completed blocks, and the latency of those at the head.
#[derive(Debug, Default)]
struct Counts {
    completed: HashSet<u64>,
    duplicated: usize,
    /// Milliseconds from the submission of each block of the head until its completion.
    latency: Vec<f64>,
}

/// Measures and reports.
pub(crate) async fn run(args: &Args) -> anyhow::Result<()> {
    anyhow::ensure!(args.proof_ms > 0, "--proof-ms must be at least 1");
    anyhow::ensure!(args.producers > 0, "--producers must be at least 1");
    let disk = StateDisk::fresh(&args.common)?;
    let text = format!(
        "{}[[queue]]\nname = \"tasks\"\nq_max = {}\n",
        one_stage("flood", args.dispatchers, &sleep(f64::from(args.proof_ms))),
        args.q_max
    );
    let registry = registry();
    let workflow = parse(&text, &registry)?;
    let mut mill = RunningMill::start(&workflow, registry, &disk, &disk.state("flood")).await?;
    let queue = mill.queue("tasks")?;
    let before = proofmill_memory::resident().unwrap_or_default();
    let peaks = sample_queue(mill.leader.operator());

    let (head_sender, head_receiver) = std::sync::mpsc::channel();
    let counting = tokio::spawn(count(mill.take_settled(), head_receiver));
    let proofs_per_s = f64::from(args.dispatchers) * 1e3 / f64::from(args.proof_ms);
    let end = Instant::now() + Duration::from_secs(args.seconds);
    let next = Arc::new(AtomicU64::new(FLOOD_FIRST_BLOCK));
    let producers: Vec<_> = (0..args.producers)
        .map(|_| {
            let rate = OVERLOAD_FACTOR * proofs_per_s / args.producers as f64;
            tokio::spawn(produce(mill.source.clone(), queue, next.clone(), rate, end))
        })
        .collect();
    let head = Load::start(mill.source.clone(), HEAD_RATE, move |block| {
        // Sending fails if the counting task has ended.
        let _ = head_sender.send(Instant::now());
        vec![json_message(queue, block, "{}")]
    });
    tokio::time::sleep_until(end.into()).await;
    let mut submitted = head.end().await?;
    let during = *peaks.borrow();
    for producer in producers {
        submitted += producer.await.context("a producer panicked")??;
    }
    // A timeout needs no error here: unfinished blocks are reported as lost below.
    let _ = timeout(PATIENCE, mill.leader.when_idle()).await;
    let after = proofmill_memory::resident().unwrap_or_default();
    mill.finish().await?;
    let counts = counting.await.context("the count panicked")?;

    let mut report = Report::new(
        &format!(
            "Flood: {:.0} tasks a second brought, {proofs_per_s:.0} can be done, Q_max {}",
            OVERLOAD_FACTOR * proofs_per_s,
            args.q_max
        ),
        &disk,
    );
    let latency = Figures::of(counts.latency);
    report.figure("tasks", submitted as f64, "", Target::None, "");
    // The queue accepts a block below all waiting ones beyond Q_max, one at a time.
    let most = args.q_max as f64 + 1.0;
    report.figure(
        "most tasks in the queue",
        during.depth as f64,
        "",
        Target::AtMost(most),
        "",
    );
    let over = during.depth.saturating_sub(args.q_max + 1);
    let windows = (args.producers as usize * WINDOW) as f64;
    let name = "most messages that waited outside";
    report.figure(
        name,
        during.outside as f64,
        "",
        Target::AtMost(windows + 1.0),
        "",
    );
    report.figure(
        "head of the chain, P50",
        latency.p50(),
        "ms",
        Target::None,
        "",
    );
    report.figure(
        "head of the chain, P99",
        latency.p99(),
        "ms",
        Target::None,
        "",
    );
    for (name, bytes) in [
        ("before", before),
        ("most during", during.memory),
        ("after", after),
    ] {
        let name = format!("memory {name} (coordinator and producers)");
        report.figure(&name, bytes as f64 / MIB, "MiB", Target::None, "");
    }
    report.put("tasks", submitted);
    report.put("depth", during.depth);
    report.put("head_p50_ms", round(latency.p50()));
    report.put("head_p99_ms", round(latency.p99()));
    report.put("memory_before_bytes", before);
    report.put("memory_most_bytes", during.memory);
    report.put("memory_after_bytes", after);
    report.must_be_zero("over", "beyond Q_max and the head", over);
    report.must_be_zero(
        "lost",
        "lost",
        submitted.saturating_sub(counts.completed.len() as u64) as usize,
    );
    report.must_be_zero("duplicated", "duplicated", counts.duplicated);
    report.finish(&args.common)
}

/// Counts completions until the mill has ended. `submissions` has the times at which the blocks of the
/// head were submitted, in the order of the blocks.
async fn count(
    mut settled: mpsc::UnboundedReceiver<Settled>,
    submissions: std::sync::mpsc::Receiver<Instant>,
) -> Counts {
    let mut counts = Counts::default();
    let mut submitted_at: Vec<Instant> = Vec::new();
    while let Some(settled) = settled.recv().await {
        let block = settled.task.id.block;
        if !settled.completed {
            continue;
        }
        if !counts.completed.insert(block) {
            counts.duplicated += 1;
            continue;
        }
        submitted_at.extend(submissions.try_iter());
        let index = usize::try_from(block).ok();
        if let Some(began) = index.and_then(|index| submitted_at.get(index)) {
            counts.latency.push(began.elapsed().as_secs_f64() * 1e3);
        }
    }
    counts
}

/// Submits blocks until `end`, at `rate` a second or, if that is slower, as fast as they are accepted.
/// Returns the number of blocks.
async fn produce(
    port: SourcePort,
    queue: QueueIx,
    next: Arc<AtomicU64>,
    rate: f64,
    end: Instant,
) -> anyhow::Result<u64> {
    let mut ticks = tokio::time::interval(Duration::from_secs_f64(1.0 / rate));
    let mut waiting = VecDeque::with_capacity(WINDOW);
    let mut submitted = 0;
    while Instant::now() < end {
        ticks.tick().await;
        let block = next.fetch_add(1, Ordering::Relaxed);
        let request = json_message(queue, block, "{}");
        waiting.push_back(port.submit_later(request).await?);
        submitted += 1;
        if waiting.len() == WINDOW
            && let Some(reply) = waiting.pop_front()
        {
            reply.await?;
        }
    }
    for reply in waiting {
        reply.await?;
    }
    Ok(submitted)
}

/// Samples the queue until the mill has ended.
fn sample_queue(leader: OperatorPort) -> watch::Receiver<Peaks> {
    let (sender, peaks) = watch::channel(Peaks::default());
    tokio::spawn(async move {
        while let Ok(status) = leader.status().await {
            let depth = status.stages.first().map_or(0, |stage| stage.waiting);
            let memory = proofmill_memory::resident().unwrap_or_default();
            sender.send_modify(|peaks| {
                peaks.depth = peaks.depth.max(depth);
                peaks.outside = peaks.outside.max(status.producers_waiting);
                peaks.memory = peaks.memory.max(memory);
            });
            tokio::time::sleep(SAMPLE_INTERVAL).await;
        }
    });
    peaks
}
