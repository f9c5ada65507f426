//! A simulation of proofs in parts on many workers: no part is proved.
//!
//! `constants` has the times that the simulation is given, `simulation` the five steps of a proof, `phase` one step whose
//! parts go to workers, `workers` slow and dying workers, `paper` the statements of the paper.

mod constants;
mod paper;
mod phase;
mod report;
mod simulation;
#[cfg(test)]
mod tests;
mod workers;

use constants::Constants;
use phase::Allocation;
use report::Row;
use simulation::{Job, simulate};
use workers::{Faults, Workers};

/// Arguments of `proofmill-bench partition-scale`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Nothing is proved: the steps of a proof are simulated with the times given by the options. Efficiency is
the time that all parts take to commit to and to prove, over the time of all workers until the end of
the aggregation. A worker is one core, which works on one part at a time. The leader traces the
circuit, hands out tasks, and aggregates; no other step begins before the one before it has ended.

  proofmill-bench partition-scale
  proofmill-bench partition-scale --workers 1024 --parts 65536 --shards 64
  proofmill-bench partition-scale --workers 1024 --parts 16384 --slow 0.05 --slow-factor 3
  proofmill-bench partition-scale --workers 1024 --parts 16384 --deaths 0.01 --json")]
pub(crate) struct Args {
    /// Numbers of workers, separated by commas
    #[arg(long, value_delimiter = ',', default_values_t = [64, 1024, 65536],
          value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    workers: Vec<u32>,
    /// Numbers of parts, separated by commas; the default has those of the paper's table 2 and figure 8, and its largest
    #[arg(long, value_delimiter = ',', default_values_t = [1 << 8, 1 << 11, 1 << 14, 1 << 16, 1 << 18],
          value_parser = clap::value_parser!(u32).range(1..=1 << 24))]
    parts: Vec<u32>,
    #[command(flatten)]
    constants: Constants,
    #[command(flatten)]
    faults: Faults,
    /// Allocation of parts to workers [default: pull, and fixed beside it if workers are slow or die]
    #[arg(long, value_enum)]
    allocation: Option<Allocation>,
    /// Print one line of JSON at the end
    #[arg(long)]
    json: bool,
}

// === impl Args ===

impl Args {
    fn allocations(&self) -> Vec<Allocation> {
        match self.allocation {
            Some(allocation) => vec![allocation],
            None if self.faults.are_none() => vec![Allocation::Pull],
            None => vec![Allocation::Pull, Allocation::Fixed],
        }
    }
}

/// Simulates and reports.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    args.constants.check()?;
    args.faults.check()?;
    let mut rows = Vec::new();
    for parts in &args.parts {
        for workers in &args.workers {
            for allocation in args.allocations() {
                let job = Job {
                    parts: *parts as usize,
                    allocation,
                };
                let among = Workers::new(*workers as usize, &args.faults);
                let outcome = simulate(&args.constants, job, among, args.faults.lease_s);
                rows.push(Row {
                    job,
                    workers: *workers as usize,
                    outcome,
                });
            }
        }
    }
    let statements = paper::compare(&args.constants);
    report::print(&args.constants, &args.faults, &rows, &statements);
    if args.json {
        let json = report::json(&args.constants, &args.faults, &rows, &statements)?;
        println!("{json}");
    }
    Ok(())
}
