//! Chain order of emissions, with proofs of random duration.

use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use anyhow::Context;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use serde::Deserialize;
use tokio::time::timeout;

use crate::harness::{
    Common, Progress, Report, RunningMill, StateDisk, Target, json_message, parse, registry, round,
    sequenced_stage,
};

/// Longest pause between two events, beyond the longest proof. After it, the rest counts as lost.
const PATIENCE: Duration = Duration::from_secs(30);

/// Arguments of `proofmill-bench ordering`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Blocks are submitted in random order, and each proof takes a random time. Counted are emissions that
do not follow the one before: in the library's stream, and in the sequencer's directory by the
times of its files.

  proofmill-bench ordering
  proofmill-bench ordering --blocks 1000 --workers 64 --seed 7")]
pub(crate) struct Args {
    #[command(flatten)]
    common: Common,
    /// Blocks
    #[arg(long, default_value_t = 100)]
    blocks: u64,
    /// Dispatchers
    #[arg(long, default_value_t = 16)]
    workers: u32,
    /// Shortest proof, milliseconds
    #[arg(long, default_value_t = 100)]
    min_ms: u64,
    /// Longest proof, milliseconds
    #[arg(long, default_value_t = 2000)]
    max_ms: u64,
    /// Makes the times and the order of submission the same again
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

#[derive(Deserialize)]
struct Payload {
    block: u64,
}

/// Measures and reports.
pub(crate) async fn run(args: &Args) -> anyhow::Result<()> {
    anyhow::ensure!(args.min_ms <= args.max_ms, "--min-ms is above --max-ms");
    let disk = StateDisk::fresh(&args.common)?;
    let executor = r#"{ kind = "native", prover = "sleep" }"#;
    let text = format!(
        "{}directory = \"emitted\"\n",
        sequenced_stage("ordering", args.workers, executor)
    );
    let registry = registry();
    let workflow = parse(&text, &registry)?;
    let state = disk.state("ordering");
    let mut mill = RunningMill::start(&workflow, registry, &disk, &state).await?;
    let queue = mill.queue("tasks")?;

    let mut random = StdRng::seed_from_u64(args.seed);
    let mut blocks: Vec<u64> = (0..args.blocks).collect();
    blocks.shuffle(&mut random);
    let began = Instant::now();
    for block in blocks {
        let ms = random.random_range(args.min_ms..=args.max_ms);
        let payload = format!("{{\"block\":{block},\"ms\":{ms}}}");
        // The reply is not awaited, as the emission is counted.
        drop(
            mill.source
                .submit_later(json_message(queue, block, payload))
                .await?,
        );
    }

    let progress = Progress::new("ordering: blocks emitted", args.blocks as usize);
    let (mut completions, mut overtakes) = (0, 0);
    let mut highest: Option<u64> = None;
    let mut stream: Vec<u64> = Vec::new();
    let patience = PATIENCE + Duration::from_millis(args.max_ms);
    while (stream.len() as u64) < args.blocks {
        let step = async {
            tokio::select! {
                settled = mill.settled.recv() => {
                    let settled = settled.context("the mill has stopped")?;
                    if settled.completed {
                        completions += 1;
                        overtakes += usize::from(highest.is_some_and(|high| settled.task.id.block < high));
                        highest = highest.max(Some(settled.task.id.block));
                    }
                }
                block = mill.emitted.recv() => {
                    let block = block.context("the mill has stopped")?;
                    let payload: Payload = serde_json::from_slice(&block.bytes)
                        .context("an emitted payload is not what was submitted")?;
                    anyhow::ensure!(payload.block == block.first, "a block left with another's payload");
                    stream.push(block.first);
                }
            }
            anyhow::Ok(())
        };
        match timeout(patience, step).await {
            Ok(result) => result?,
            Err(_) => break,
        }
        progress.set(stream.len());
    }
    let wall = began.elapsed().as_secs_f64();
    drop(progress);
    mill.finish().await?;
    let files = blocks_by_file_time(&state.join("emitted"))?;

    let title = format!(
        "Ordering: {} blocks, proofs of {} to {} ms, {} workers, seed {}",
        args.blocks, args.min_ms, args.max_ms, args.workers, args.seed
    );
    let mut report = Report::new(&title, &disk);
    report.figure("wall", wall, "s", Target::None, "");
    report.figure(
        "proofs that were overtaken",
        overtakes as f64,
        "",
        Target::None,
        "",
    );
    let (in_stream, in_files) = (out_of_order(&stream), out_of_order(&files));
    report.must_be("out of order in the stream", in_stream, 0);
    report.must_be("out of order in the directory", in_files, 0);
    report.must_be("files", files.len(), args.blocks as usize);
    report.put("out_of_order", in_stream + in_files);
    report.put("overtaken", overtakes);
    report.put("wall_s", round(wall));
    let mut distinct = stream.clone();
    distinct.sort_unstable();
    distinct.dedup();
    report.must_be_zero("lost", "lost", args.blocks as usize - distinct.len());
    report.must_be_zero("duplicated", "duplicated", stream.len() - distinct.len());
    report.must_be(
        "completions",
        completions.min(args.blocks as usize),
        args.blocks as usize,
    );
    report.finish(&args.common)
}

/// Number of blocks that do not follow the one before, counting from 0.
fn out_of_order(blocks: &[u64]) -> usize {
    let mut next = 0;
    let follows = |block: &&u64| std::mem::replace(&mut next, **block + 1) != **block;
    blocks.iter().filter(follows).count()
}

/// The blocks of the emitted files in the order of the files' last changes. Files with the same time
/// are ordered by name.
fn blocks_by_file_time(directory: &Path) -> anyhow::Result<Vec<u64>> {
    let shown = || format!("cannot read {}", directory.display());
    let mut files: Vec<(SystemTime, String)> = Vec::new();
    for entry in std::fs::read_dir(directory).with_context(shown)? {
        let entry = entry.with_context(shown)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        files.push((
            entry
                .metadata()
                .and_then(|data| data.modified())
                .with_context(shown)?,
            name,
        ));
    }
    files.sort();
    let block = |name: &str| name.split('-').next()?.parse().ok();
    files
        .iter()
        .map(|(_, name)| block(name).with_context(|| format!("{name:?} is no emitted block")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::out_of_order;

    #[test]
    fn gaps_repeats_and_swaps_are_counted() {
        assert_eq!(out_of_order(&[0, 1, 2, 3]), 0);
        assert_eq!(out_of_order(&[0, 2, 3]), 1);
        assert_eq!(out_of_order(&[0, 1, 1, 2]), 1);
        assert_eq!(out_of_order(&[0, 2, 1, 3]), 3);
    }
}
