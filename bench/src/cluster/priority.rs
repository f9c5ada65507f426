//! Priority of older blocks: counts tasks that start before an older one, here and with a FIFO consumer.

use std::time::Duration;

use anyhow::Context;
use proofmill_orchestrator::conversation::Reply;
use tokio::time::timeout;

use super::fifo::{FifoLoad, TaskStart};
use crate::harness::{
    Common, Progress, Report, RunningMill, StateDisk, Target, json_message, one_stage, parse,
    registry, sleep,
};

/// Longest wait for the next completion.
const PATIENCE: Duration = Duration::from_secs(60);

/// Arguments of `proofmill-bench cluster priority`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    common: Common,
    /// Tasks, submitted newest block first
    #[arg(long, default_value_t = 512)]
    tasks: u64,
    /// Dispatchers
    #[arg(long, default_value_t = 32)]
    workers: u32,
    /// Milliseconds of a proof
    #[arg(long, default_value_t = 50)]
    ms: u32,
}

/// Measures and reports.
pub(crate) async fn run(args: &Args) -> anyhow::Result<()> {
    let disk = StateDisk::fresh(&args.common)?;
    let text = one_stage("priority", args.workers, &sleep(f64::from(args.ms)));
    let registry = registry();
    let workflow = parse(&text, &registry)?;
    let state = disk.state("priority");
    let mut mill = RunningMill::start(&workflow, registry, &disk, &state).await?;
    let queue = mill.queue("tasks")?;
    // All tasks shall be in the queue before the first counted one starts. Until then, the first
    // tasks keep every worker busy.
    let mut replies = Vec::new();
    for block in (0..args.tasks).rev() {
        let payload = format!("{{\"block\":{block}}}");
        let request = json_message(queue, block, payload);
        replies.push(mill.source.submit_later(request).await?);
    }
    let mut accepted = 0;
    for reply in replies {
        accepted += usize::from(reply.await? == Reply::Accepted);
    }
    // The start of a task is the time of its completion minus the time for which it was leased.
    let progress = Progress::new("priority", args.tasks as usize);
    let mut starts: Vec<TaskStart> = Vec::new();
    while starts.len() < args.tasks as usize {
        let Ok(settled) = timeout(PATIENCE, mill.next_completed()).await else {
            break;
        };
        let settled = settled?;
        let timing = settled.timing.context("a completed task has its times")?;
        let leased = u64::try_from(timing.leased.as_micros())?;
        starts.push((timing.at.0.saturating_sub(leased), settled.task.id.block));
        progress.set(starts.len());
    }
    drop(progress);
    mill.finish().await?;
    let lost = args.tasks as usize - starts.len();
    let inversions = inversions(starts, args.workers);
    let load = FifoLoad {
        tasks: args.tasks,
        workers: args.workers,
        proof: Duration::from_millis(args.ms.into()),
    };
    let (consumer, fifo) = match disk.bus(&disk.state("fifo")) {
        Some(bus) => (
            "a FIFO JetStream consumer",
            load.over_jetstream(&bus).await?,
        ),
        None => ("a FIFO queue in this process", load.in_process().await?),
    };
    let fifo_lost = (args.tasks as usize).saturating_sub(fifo.len());
    let fifo_inversions = self::inversions(fifo, args.workers);
    let mut report = Report::new(
        &format!(
            "Priority: {} tasks newest first, {} workers, {} ms",
            args.tasks, args.workers, args.ms
        ),
        &disk,
    );
    report.must_be("accepted", accepted, args.tasks as usize);
    report.must_be_zero("lost", "lost", lost);
    report.must_be_zero("inversions", "inversions", inversions);
    report.must_be_zero("fifo_lost", &format!("{consumer}: lost"), fifo_lost);
    report.figure(
        &format!("{consumer}: inversions"),
        fifo_inversions as f64,
        "",
        Target::None,
        "",
    );
    report.put("fifo_inversions", fifo_inversions);
    report.note(&format!(
        "inversion: a task begun right before one of a lower block; the first {} tasks are not \
         counted, since they may begin before all tasks have arrived",
        uncounted_tasks(args.workers)
    ));
    report.finish(&args.common)
}

/// Number of tasks at the beginning that are not counted. They may start before all tasks have arrived, when an older
/// block may be missing from the queue without any fault.
fn uncounted_tasks(workers: u32) -> usize {
    2 * workers as usize
}

/// Number of tasks that started right before a task of a lower block, without the [`uncounted_tasks`].
fn inversions(mut starts: Vec<TaskStart>, workers: u32) -> usize {
    starts.sort_unstable();
    let counted = starts.get(uncounted_tasks(workers)..).unwrap_or_default();
    counted
        .windows(2)
        .filter(|pair| pair[1].1 < pair[0].1 && pair[1].0 > pair[0].0)
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_inversion_is_a_lower_block_that_starts_later() {
        let newest_first = (0..10).map(|at| (at, 9 - at)).collect();
        assert_eq!(inversions(newest_first, 1), 7, "the first two do not count");
        let oldest_first = (0..10).map(|at| (at, at)).collect();
        assert_eq!(inversions(oldest_first, 1), 0);
        assert_eq!(inversions(vec![(0, 3), (0, 2), (0, 1), (0, 0)], 1), 0);
        assert_eq!(inversions(vec![(0, 1), (1, 0)], 1), 0, "too few to count");
    }
}
