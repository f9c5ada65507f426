//! Latency with a program for each task, in turn with bare starts of the same program.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use tokio::time::{sleep_until, timeout};

use super::{Args, Run, ms};
use crate::harness::{
    Figures, Progress, RunningMill, StateDisk, json_message, one_stage, parse, registry,
};

/// The hidden first argument with which this program copies its input to its output.
const ECHO: &str = "__echo";

/// Number of tasks at the beginning that are not counted.
const WARM_UP: usize = 20;
/// Longest wait for a completion, after which the task counts as lost.
const PATIENCE: Duration = Duration::from_secs(30);

/// Copies `--input-path` to `--output-path` if this process was started with [`ECHO`]. Returns whether
/// it was.
pub(crate) fn echo() -> anyhow::Result<bool> {
    let mut args = std::env::args_os().skip(1);
    if args.next().is_none_or(|first| first != ECHO) {
        return Ok(false);
    }
    let paths: Vec<PathBuf> = args.skip(1).step_by(2).map(PathBuf::from).collect();
    let [input, output] = &paths[..] else {
        anyhow::bail!("expected an input and an output path")
    };
    std::fs::copy(input, output).context("cannot copy the input to the output")?;
    Ok(true)
}

pub(super) async fn measure(
    args: &Args,
    disk: &StateDisk,
    rate: f64,
    tasks: usize,
) -> anyhow::Result<Run> {
    let program = std::env::current_exe().context("cannot find this program's own file")?;
    let path = program
        .to_str()
        .context("this program's path is not UTF-8")?;
    let executor = format!(r#"{{ kind = "process", program = {path:?}, args = [{ECHO:?}] }}"#);
    let text = one_stage("latency", args.dispatchers, &executor);
    let registry = registry();
    let workflow = parse(&text, &registry)?;
    let state = disk.state(&format!("process-{rate}"));
    let mut mill = RunningMill::start(&workflow, registry, disk, &state).await?;
    let queue = mill.queue("tasks")?;
    let (input, output) = (state.join("bare-in"), state.join("bare-out"));
    std::fs::write(&input, b"{}").context("cannot write the bare program's input")?;

    let progress = Progress::new(&format!("process latency at {rate}/s"), tasks);
    let (mut overhead, mut total_ms, mut bare, mut executor_ms) = (vec![], vec![], vec![], vec![]);
    let (mut lost, mut duplicated) = (0, 0);
    let period = Duration::from_secs_f64(1.0 / rate);
    let mut next = tokio::time::Instant::now();
    for block in 0..WARM_UP + tasks {
        sleep_until(next).await;
        next = (next + period).max(tokio::time::Instant::now());
        // The first run of a pair finds colder caches, so the bare start is first in every second pair.
        let mut bare_time = Duration::ZERO;
        if block % 2 == 0 {
            bare_time = start_bare(&program, &input, &output).await?;
        }
        let request = json_message(queue, block as u64, format!("{{\"block\":{block}}}"));
        let began = Instant::now();
        // The reply is not awaited, as the completion comes after it.
        drop(mill.source.submit_later(request).await?);
        let Ok(settled) = timeout(PATIENCE, mill.next_completed()).await else {
            lost += 1;
            continue;
        };
        let (settled, took) = (settled?, began.elapsed());
        duplicated += usize::from(settled.task.id.block != block as u64);
        if block % 2 == 1 {
            bare_time = start_bare(&program, &input, &output).await?;
        }
        if block >= WARM_UP {
            overhead.push(ms(took) - ms(bare_time));
            total_ms.push(ms(took));
            bare.push(ms(bare_time));
            executor_ms.extend(settled.timing.map(|timing| ms(timing.ran)));
            progress.set(overhead.len());
        }
    }
    drop(progress);
    mill.finish().await?;
    Ok(Run {
        overhead: Figures::of(overhead),
        bare: None,
        parts: vec![
            ("publish → completion recorded", Figures::of(total_ms)),
            ("of that the executor", Figures::of(executor_ms)),
            ("bare start of the same program", Figures::of(bare)),
        ],
        lost,
        duplicated,
    })
}

async fn start_bare(program: &Path, input: &Path, output: &Path) -> anyhow::Result<Duration> {
    let began = Instant::now();
    let mut command = tokio::process::Command::new(program);
    command
        .arg(ECHO)
        .arg("--input-path")
        .arg(input)
        .arg("--output-path")
        .arg(output);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let status = command
        .status()
        .await
        .context("cannot start this program")?;
    let took = began.elapsed();
    ensure!(status.success(), "the program alone ended with {status}");
    Ok(took)
}
