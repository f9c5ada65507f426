//! Comparison of embedded stores for the log: redb, fjall and SQLite under the log's own load.
//!
//! Every store holds records by sequence number. The log has its index of keys in memory, so that no
//! store needs a second tree. Every commit ends in one fsync.

mod backend;
mod experiment;
mod log;

use std::path::PathBuf;

use anyhow::Context;

use backend::{Fjall, Redb, Sqlite};
use experiment::{Figures, measure};

/// Arguments of `proofmill-bench stores`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Where to make the stores: the file system to measure
    #[arg(long, default_value = ".")]
    dir: PathBuf,
    /// Batches of the latency run, at 100 a second
    #[arg(long, default_value_t = 1000)]
    batches: usize,
    /// Tasks of the throughput run, three puts and two deletes each
    #[arg(long, default_value_t = 1_000_000)]
    tasks: u64,
    /// Torn commits to recover from
    #[arg(long, default_value_t = 200)]
    torn: usize,
    /// Only these stores: redb, fjall, sqlite
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// End with one line of JSON
    #[arg(long)]
    json: bool,
}

/// Measures each store and prints the table.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let mut results: Vec<(&str, Figures)> = Vec::new();
    let wanted = |name: &str| args.only.is_empty() || args.only.iter().any(|only| only == name);
    if wanted("redb") {
        results.push(("redb", measure::<Redb>(args).context("redb")?));
    }
    if wanted("fjall") {
        results.push(("fjall", measure::<Fjall>(args).context("fjall")?));
    }
    if wanted("sqlite") {
        results.push(("sqlite", measure::<Sqlite>(args).context("sqlite")?));
    }

    println!(
        "{:<8} {:>8} {:>8} {:>8} {:>10} {:>10} {:>9} {:>9} {:>9} {:>9} {:>6} {:>6} {:>6}",
        "store",
        "p50 ms",
        "p99 ms",
        "max ms",
        "tasks/s@32",
        "tasks/s@512",
        "peak MB",
        "end MB",
        "open ms",
        "scan ms",
        "whole",
        "lost",
        "broken",
    );
    for (name, f) in &results {
        println!(
            "{:<8} {:>8.3} {:>8.3} {:>8.3} {:>10.0} {:>11.0} {:>9.1} {:>9.1} {:>9.1} {:>9.1} {:>6} {:>6} {:>6}",
            name,
            f.p50_ms,
            f.p99_ms,
            f.max_ms,
            f.tasks_per_s_small,
            f.tasks_per_s_large,
            f.peak_mb,
            f.end_mb,
            f.open_ms,
            f.scan_ms,
            f.torn_whole,
            f.torn_lost,
            f.torn_broken,
        );
    }
    println!("whole/lost: torn commits after which the last batch was there/not there, all before");
    println!("it intact; broken: the store did not open, or lost an earlier batch or part of one");
    let log = log::measure(args).context("the embedded log")?;
    println!("{log}");
    if args.json {
        let mut object: serde_json::Map<String, serde_json::Value> = results
            .iter()
            .map(|(name, f)| ((*name).to_owned(), f.to_json()))
            .collect();
        object.insert("embedded_log".to_owned(), log.to_json());
        println!("{}", serde_json::Value::Object(object));
    }
    Ok(())
}
