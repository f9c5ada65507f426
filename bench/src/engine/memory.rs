//! Peak memory of an engine with several partitions under way, beside the documented formula.

use anyhow::Context;
use proofmill_api::engine::proto::partition::Input;
use proofmill_api::engine::proto::{JobState, Partition, SubmitRequest, Tier};
use proofmill_engine::{KeyForm, Options};

use super::process::EngineConfig;
use super::running::NAME;
use super::{BYTES, EngineInProcess};
use crate::circom::{Circuit, CircuitArgs};
use crate::harness::{Common, Report, StateDisk, Target, memory, mib, peak, round};

/// Number of partitions of the job for each partition that is under way at once.
const PARTITIONS_PER_WORKER: usize = 3;

/// Arguments of `proofmill-bench engine memory`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    circuit: CircuitArgs,
    /// Partitions under way at once; several runs if several, separated by commas
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2, 4])]
    partition_workers: Vec<usize>,
    /// Keep the key's points as they are in the file
    #[arg(long)]
    plain: bool,
}

/// Measured memory, in bytes.
struct Measured {
    key: u64,
    /// Peak memory, without pages of files and without the memory that the process had before it
    /// loaded the key.
    peak_bytes: u64,
    reserved: u64,
}

// === impl Args ===

impl Args {
    fn form(&self) -> KeyForm {
        if self.plain {
            KeyForm::Plain
        } else {
            KeyForm::Prepared { percent: 100 }
        }
    }
}

/// Measures and reports.
pub(crate) async fn run(args: &Args) -> anyhow::Result<()> {
    let disk = StateDisk::fresh(&args.common)?;
    let circuit = args.circuit.prepare(BYTES)?;
    let program = args.circuit.program()?;
    let mut report = Report::new("Engine: the most memory, and the formula", &disk);
    let mut runs = Vec::new();
    for workers in &args.partition_workers {
        let together = formula(&circuit, *workers, args.form()).await?;
        let mut serve = vec![
            "--circuits".to_owned(),
            format!("{NAME}={}", circuit.zkey.display()),
            "--workers".to_owned(),
            workers.to_string(),
        ];
        if let KeyForm::Prepared { percent } = args.form() {
            serve.extend(["--prepared".to_owned(), percent.to_string()]);
        }
        // Each run has its own process, so that memory which the allocator keeps from one run does not
        // count in the next.
        let config = EngineConfig::new(&program, &disk.state(&format!("{workers}")), serve);
        let measured = measure(&config, &circuit, PARTITIONS_PER_WORKER * workers).await?;
        let formula = measured.key + together;
        let deviation = 100.0 * (measured.peak_bytes as f64 / formula as f64 - 1.0);
        let name = format!("{workers} at once: most memory");
        report.figure(&name, mib(measured.peak_bytes), "MiB", Target::None, "");
        report.figure("the formula", mib(formula), "MiB", Target::None, "");
        report.figure(
            "off the formula",
            deviation.abs(),
            "%",
            Target::AtMost(10.0),
            "",
        );
        let reserved = mib(measured.reserved);
        report.figure("most reserved", reserved, "MiB", Target::None, "");
        runs.push(serde_json::json!({
            "partition_workers": workers,
            "key_bytes": measured.key,
            "peak_bytes": measured.peak_bytes,
            "formula_bytes": formula,
            "off_percent": round(deviation),
            "reserved_bytes": measured.reserved,
        }));
    }
    report.put("runs", runs);
    report.note(
        "formula: the key, and the most that so many partitions take together (documentation of \
         proofmill-engine)",
    );
    report.finish(&args.common)
}

/// Memory of `workers` partitions at once by the engine's formula, in bytes, without the key.
async fn formula(circuit: &Circuit, workers: usize, form: KeyForm) -> anyhow::Result<u64> {
    let options = Options {
        partition_workers: workers,
        key_form: form,
        ..Options::default()
    };
    let engine = EngineInProcess::start(options, circuit).await?;
    let together = engine.together_bytes();
    engine.finish().await?;
    together
}

/// Starts an engine, has it prove a job of `partitions` partitions, and measures its memory.
async fn measure(
    config: &EngineConfig,
    circuit: &Circuit,
    partitions: usize,
) -> anyhow::Result<Measured> {
    let unknown = "the system does not say what memory the engine has";
    let witness = std::fs::read(&circuit.witness).context("reading the witness")?;
    let process = config.start_with(1).await?;
    let (id, client) = (process.id()?, config.client().await?);
    let before = memory(id).context(unknown)?.anonymous;
    let key = client.preload(NAME, Tier::Hot).await?.bytes;
    proofmill_memory::reset_peak(id).context(unknown)?;
    let now = memory(id).context(unknown)?;
    let partition = || Partition {
        circuit: NAME.to_owned(),
        input: Some(Input::Wtns(witness.clone())),
    };
    let request = SubmitRequest {
        request_id: "memory".to_owned(),
        partitions: (0..partitions).map(|_| partition()).collect(),
        ..SubmitRequest::default()
    };
    let job = client.submit(request).await?.job;
    let result = client.await_result(&job).await?;
    anyhow::ensure!(result.state() == JobState::Done, "{}", result.failure);
    // Pages of files do not count.
    let peak_bytes = peak(id).context(unknown)? - (now.resident - now.anonymous) - before;
    let budget = client.status().await?.budget;
    process.kill().await?;
    Ok(Measured {
        key,
        peak_bytes,
        reserved: budget
            .context("the engine does not say what it reserves")?
            .peak,
    })
}
