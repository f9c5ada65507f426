//! What the process executor costs beyond the bare start of a program.
//!
//! Runs a program that copies its input file to its output file, in turn: started bare
//! (`tokio::process::Command`, no streams, fixed paths), and through the executor; then once more
//! with much memory in use here, to show that the cost of a start does not grow with it.
//!
//! ```text
//! cargo run --release -p proofmill-orchestrator --example process_overhead [-- PROGRAM ARGS…]
//! ```
//!
//! PROGRAM defaults to this one, which copies when it is given `--input-path`.

use std::future::pending;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use proofmill_process::{ProcessExecutor, ProcessSpec, TaskContext};

const ROUNDS: usize = 1000;
const WARM_UP: usize = 50;
const BALLAST: usize = 4 << 30;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, input, _, output] = &args[..]
        && flag == "--input-path"
    {
        std::fs::copy(input, output)?;
        return Ok(());
    }
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(measure(args))
}

async fn measure(args: Vec<String>) -> Result<(), Failure> {
    let mut args = args.into_iter();
    let program = args
        .next()
        .map_or_else(std::env::current_exe, |program| Ok(program.into()))?;
    let args: Vec<String> = args.collect();
    let root = tempfile::tempdir()?;
    let mut spec = ProcessSpec::new(&program);
    spec.args.clone_from(&args);
    spec.time_limit = Some(Duration::from_secs(60));
    let executor = ProcessExecutor::new(spec, root.path().join("scratch"))?;
    let (input, output) = (root.path().join("in"), root.path().join("out"));
    std::fs::write(&input, b"{}")?;

    println!("{:<28} {:>10} {:>10} {:>10}", "ms", "P50", "P99", "mean");
    let bare = Bare {
        program,
        args,
        input,
        output,
    };
    round(&executor, &bare, "").await?;
    let mut ballast = vec![0u8; BALLAST];
    ballast.iter_mut().step_by(4096).for_each(|page| *page = 1);
    round(&executor, &bare, ", 4 GiB in use").await?;
    drop(std::hint::black_box(ballast));
    Ok(())
}

struct Bare {
    program: PathBuf,
    args: Vec<String>,
    input: PathBuf,
    output: PathBuf,
}

impl Bare {
    async fn run(&self) -> Result<Duration, Failure> {
        let began = Instant::now();
        let mut command = tokio::process::Command::new(&self.program);
        command
            .args(&self.args)
            .arg("--input-path")
            .arg(&self.input)
            .arg("--output-path");
        command
            .arg(&self.output)
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        let status = command.stderr(Stdio::null()).status().await?;
        let took = began.elapsed();
        // The next run makes a new file, as those of the executor do.
        std::fs::remove_file(&self.output)?;
        if !status.success() {
            return Err(format!("the program alone ended with {status}").into());
        }
        Ok(took)
    }
}

async fn round(executor: &ProcessExecutor, bare: &Bare, note: &str) -> Result<(), Failure> {
    let task = TaskContext {
        id: "overhead".into(),
        attempt: 1,
        block: 1,
    };
    let (mut alone, mut with_executor, mut beyond) = (Vec::new(), Vec::new(), Vec::new());
    for turn in 0..WARM_UP + ROUNDS {
        // Each kind is first in every second turn, as a run may influence the one after it.
        let (bare, took) = if turn % 2 == 0 {
            let bare = bare.run().await?;
            (bare, run(executor, &task).await?)
        } else {
            let took = run(executor, &task).await?;
            (bare.run().await?, took)
        };
        if turn >= WARM_UP {
            alone.push(bare.as_secs_f64());
            with_executor.push(took.as_secs_f64());
            beyond.push(took.as_secs_f64() - bare.as_secs_f64());
        }
    }
    row(&format!("bare start{note}"), alone);
    row(&format!("executor{note}"), with_executor);
    row(&format!("beyond{note}"), beyond);
    Ok(())
}

async fn run(executor: &ProcessExecutor, task: &TaskContext) -> Result<Duration, Failure> {
    let began = Instant::now();
    let attempt = executor.run(task, b"{}", pending()).await;
    let took = began.elapsed();
    if !attempt.outcome.is_success() {
        return Err(format!("{}\n{}", attempt.outcome, attempt.stderr).into());
    }
    Ok(took)
}

fn row(name: &str, mut seconds: Vec<f64>) {
    seconds.sort_by(f64::total_cmp);
    let at = |share: f64| seconds[((seconds.len() - 1) as f64 * share) as usize] * 1e3;
    let mean = seconds.iter().sum::<f64>() / seconds.len() as f64 * 1e3;
    println!(
        "{name:<28} {:>10.3} {:>10.3} {:>10.3}",
        at(0.5),
        at(0.99),
        mean
    );
}
