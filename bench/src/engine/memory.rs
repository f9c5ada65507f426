//! The most memory with several partitions under way, beside the documented formula.

use anyhow::Context;
use proofmill_api::engine::proto::partition::Input;
use proofmill_api::engine::proto::{JobState, Partition, SubmitRequest, Tier};
use proofmill_engine::{KeyForm, Options};

use super::process::Site;
use super::running::NAME;
use super::{BYTES, Running};
use crate::circom::{Circuit, CircuitArgs};
use crate::harness::{Common, Report, StateDisk, Target, memory, mib, peak, reset_peak, round};

/// Partitions of the job for each that is under way at once.
const ROUNDS: usize = 3;

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
    /// The most, of what is not of files and was not there before the key.
    most: u64,
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
        // A process for each: what one run leaves to the allocator is not the next one's.
        let site = Site::new(&program, &disk.state(&format!("{workers}")), serve);
        let measured = measure(&site, &circuit, ROUNDS * workers).await?;
        let formula = measured.key + together;
        let off = 100.0 * (measured.most as f64 / formula as f64 - 1.0);
        let name = format!("{workers} at once: most memory");
        report.figure(&name, mib(measured.most), "MiB", Target::Open, "");
        report.figure("the formula", mib(formula), "MiB", Target::Open, "");
        report.figure("off the formula", off.abs(), "%", Target::Most(10.0), "");
        let reserved = mib(measured.reserved);
        report.figure("most reserved", reserved, "MiB", Target::Open, "");
        runs.push(serde_json::json!({
            "partition_workers": workers,
            "key_bytes": measured.key,
            "peak_bytes": measured.most,
            "formula_bytes": formula,
            "off_percent": round(off),
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

/// Memory of `workers` partitions together, by the engine's formula.
async fn formula(circuit: &Circuit, workers: usize, form: KeyForm) -> anyhow::Result<u64> {
    let options = Options {
        partition_workers: workers,
        key_form: form,
        ..Options::default()
    };
    let engine = Running::start(options, circuit).await?;
    let together = engine.together_bytes();
    engine.finish().await?;
    together
}

/// Has an engine prove so many partitions.
async fn measure(site: &Site, circuit: &Circuit, partitions: usize) -> anyhow::Result<Measured> {
    let unknown = "the system does not say what memory the engine has";
    let witness = std::fs::read(&circuit.witness).context("reading the witness")?;
    let process = site.start_with(1).await?;
    let (id, client) = (process.id()?, site.client().await?);
    let before = memory(id).context(unknown)?.anonymous;
    let key = client.preload(NAME, Tier::Hot).await?.bytes;
    reset_peak(id).context(unknown)?;
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
    // The pages of files are not the engine's doing.
    let most = peak(id).context(unknown)? - (now.resident - now.anonymous) - before;
    let budget = client.status().await?.budget;
    process.kill().await?;
    Ok(Measured {
        key,
        most,
        reserved: budget
            .context("the engine does not say what it reserves")?
            .peak,
    })
}
