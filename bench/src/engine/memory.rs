//! The most memory with several partitions under way, beside the documented formula.

use anyhow::Context;
use proofmill_engine::{KeyForm, Options, Priority};

use super::{BYTES, Running};
use crate::circom::CircuitArgs;
use crate::harness::{Common, Place, Report, Target, memory, peak, reset_peak, round};

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

/// Measures and reports.
pub(crate) async fn run(args: &Args) -> anyhow::Result<()> {
    let place = Place::fresh(&args.common)?;
    let circuit = args.circuit.prepare(BYTES)?;
    let mut report = Report::new("Engine: the most memory, and the formula", &place);
    let mb = |bytes: u64| bytes as f64 / 1e6;
    let mut runs = Vec::new();
    for workers in &args.partition_workers {
        let options = Options {
            partition_workers: *workers,
            key_form: if args.plain {
                KeyForm::Plain
            } else {
                KeyForm::Prepared { percent: 100 }
            },
            ..Options::default()
        };
        let unknown = "the system does not say what memory this process has";
        let before = memory(std::process::id()).context(unknown)?.anonymous;
        let engine = Running::start(options, &circuit).await?;
        let key = engine.load().await?.bytes;
        let together = engine.together_bytes()?;
        reset_peak().context(unknown)?;
        let now = memory(std::process::id()).context(unknown)?;
        let job = engine
            .submit("memory", 3 * workers, Priority::Normal)
            .await?;
        engine.finished(job).await?;
        // The pages of files are not the engine's doing.
        let most =
            peak(std::process::id()).context(unknown)? - (now.resident - now.anonymous) - before;
        let budget = engine.handle.status().await?.budget;
        engine.finish().await?;
        let formula = key + together;
        let off = 100.0 * (most as f64 / formula as f64 - 1.0);
        let name = format!("{workers} at once: most memory");
        report.figure(&name, mb(most), "MB", Target::Open, "");
        report.figure("the formula", mb(formula), "MB", Target::Open, "");
        report.figure("off the formula", off.abs(), "%", Target::Most(10.0), "");
        report.figure("most reserved", mb(budget.peak), "MB", Target::Open, "");
        runs.push(serde_json::json!({
            "partition_workers": workers,
            "peak_bytes": most,
            "formula_bytes": formula,
            "off_percent": round(off),
            "reserved_bytes": budget.peak,
        }));
    }
    report.put("runs", runs);
    report.note("formula: the key, and the most that so many partitions take together (documentation of proofmill-engine)");
    report.finish(&args.common)
}
