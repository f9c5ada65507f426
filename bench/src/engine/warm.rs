//! Time saved by an engine that keeps the key in memory, compared with one process for each proof and with
//! snarkjs.

use std::time::Instant;

use proofmill_engine::{KeyForm, Options, Priority};

use super::{BYTES, EngineInProcess};
use crate::circom::CircuitArgs;
use crate::harness::{Common, Figures, Progress, Report, StateDisk, Target, round};

/// Number of our proofs for each proof by snarkjs, which takes many times as long.
const PROOFS_PER_SNARKJS_PROOF: usize = 10;

/// Arguments of `proofmill-bench engine warm`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    circuit: CircuitArgs,
    /// Proofs by the engine, and by a process for each
    #[arg(long, default_value_t = 50)]
    proofs: usize,
    /// Memory for the key's points with their multiples, in percent of what the points alone take
    #[arg(long, default_value_t = 300)]
    key_percent: u32,
    /// Leave snarkjs out
    #[arg(long)]
    no_snarkjs: bool,
}

/// Measures and reports.
pub(crate) async fn run(args: &Args) -> anyhow::Result<()> {
    anyhow::ensure!(args.proofs > 0, "--proofs must be at least 1");
    let disk = StateDisk::fresh(&args.common)?;
    let circuit = args.circuit.prepare(BYTES)?;
    let options = Options {
        state_dir: Some(disk.state("engine")),
        key_form: KeyForm::Prepared {
            percent: args.key_percent,
        },
        ..Options::default()
    };
    let began = Instant::now();
    let engine = EngineInProcess::start(options, &circuit).await?;
    let registered = began.elapsed().as_secs_f64();
    let view = engine.load().await?;
    let loaded = began.elapsed().as_secs_f64();
    let job = engine.submit("first", 1, Priority::Normal).await?;
    engine.wait_for_proofs(job).await?;
    let first = began.elapsed().as_secs_f64();

    // Latency: one proof after the other, in turn with the processes.
    let (mut warm, mut fresh, mut snarkjs) = (Vec::new(), Vec::new(), Vec::new());
    let progress = Progress::new("proofs in turn", args.proofs);
    for number in 0..args.proofs {
        let began = Instant::now();
        let job = engine
            .submit(&format!("one-{number}"), 1, Priority::Normal)
            .await?;
        engine.wait_for_proofs(job).await?;
        warm.push(began.elapsed().as_secs_f64() * 1e3);
        fresh.push(tokio::task::block_in_place(|| circuit.prove(&[]))?.0);
        if !args.no_snarkjs && number % PROOFS_PER_SNARKJS_PROOF == 0 {
            snarkjs.push(tokio::task::block_in_place(|| {
                circuit.prove_with_snarkjs()
            })?);
        }
        progress.set(number + 1);
    }
    drop(progress);
    // Throughput: all jobs are submitted at once.
    let began = Instant::now();
    let mut jobs = Vec::new();
    for number in 0..args.proofs {
        let request = format!("many-{number}");
        jobs.push(engine.submit(&request, 1, Priority::Normal).await?);
    }
    for job in jobs {
        engine.wait_for_proofs(job).await?;
    }
    let together = began.elapsed().as_secs_f64();
    engine.finish().await?;

    let mut report = Report::new("Engine: warm against a process for each proof", &disk);
    let minute = |ms: &[f64]| 60e3 * ms.len() as f64 / ms.iter().sum::<f64>();
    let ours = 60.0 * args.proofs as f64 / together;
    let once = minute(&fresh);
    report.figure("jobs a minute, engine", ours, "", Target::None, "");
    report.figure("jobs a minute, a process each", once, "", Target::None, "");
    let ratio = ours / once;
    report.figure("engine / process", ratio, "", Target::AtLeast(1.6), "");
    report.put("jobs_per_minute", round(ours));
    report.put("jobs_per_minute_fresh", round(once));
    report.put("ratio", round(ratio));
    let mut samples = vec![
        ("engine", Figures::of(warm)),
        ("process", Figures::of(fresh)),
    ];
    if !snarkjs.is_empty() {
        let theirs = minute(&snarkjs);
        report.figure("jobs a minute, snarkjs", theirs, "", Target::None, "");
        report.put("jobs_per_minute_snarkjs", round(theirs));
        samples.push(("snarkjs", Figures::of(snarkjs)));
    }
    for (name, figures) in samples {
        report.figure(
            &format!("{name}, P50"),
            figures.p50(),
            "ms",
            Target::None,
            "",
        );
        report.figure(
            &format!("{name}, P99"),
            figures.p99(),
            "ms",
            Target::None,
            "",
        );
        report.put(&format!("{name}_p50_ms"), round(figures.p50()));
        report.put(&format!("{name}_p99_ms"), round(figures.p99()));
    }
    for (name, seconds) in [
        ("cold start: registered", registered),
        ("the key in memory", loaded),
        ("the first proof", first),
    ] {
        report.figure(name, seconds, "s", Target::None, "");
    }
    report.put("first_proof_s", round(first));
    report.note(&format!(
        "{}: {} variables, domain {}; key {} MB; one after the other, in turn, for the latencies; {} \
         at once for jobs a minute",
        circuit.name(),
        view.variables,
        view.domain,
        view.bytes / 1_000_000,
        args.proofs
    ));
    report.finish(&args.common)
}
