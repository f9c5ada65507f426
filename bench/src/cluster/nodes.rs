//! Servers are killed under load, one after the other, and started again.

use std::time::Duration;

use anyhow::Context;

use crate::harness::{
    Common, EmissionCounter, Load, Report, RunningMill, StateDisk, Target, is_block, json_message,
    parse, registry, round, sequenced_stage, sleep,
};

/// Longest time to finish the remaining blocks after the last submission.
const PATIENCE: Duration = Duration::from_secs(60);

/// Arguments of `proofmill-bench cluster nodes`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    common: Common,
    /// Seconds that each server is away, and then is back
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Blocks submitted a second
    #[arg(long, default_value_t = 50.0)]
    rate: f64,
    /// Milliseconds of a proof
    #[arg(long, default_value_t = 20)]
    proof_ms: u32,
}

/// Measures and reports.
pub(crate) async fn run(args: &Args) -> anyhow::Result<()> {
    let mut disk = StateDisk::fresh(&args.common)?;
    let count = disk
        .servers
        .as_ref()
        .map_or(0, |servers| servers.servers.len());
    anyhow::ensure!(
        count == 3,
        "a server that others stand in for needs --bus jetstream --servers 3"
    );
    let registry = registry();
    let workflow = parse(
        &sequenced_stage("nodes", 4, &sleep(f64::from(args.proof_ms))),
        &registry,
    )?;
    let mut mill = RunningMill::start(&workflow, registry, &disk, &disk.state("nodes")).await?;
    let queue = mill.queue("tasks")?;
    let emissions = EmissionCounter::count(mill.take_emitted(), is_block);
    let load = Load::start(mill.source.clone(), args.rate, move |block| {
        vec![json_message(queue, block, format!("{{\"block\":{block}}}"))]
    });
    let phase_time = Duration::from_secs(args.seconds);
    let undisturbed = emissions.pause_within(phase_time).await;
    let mut rows = Vec::new();
    for at in 0..count {
        let mut servers = disk.servers.take().context("it was there")?;
        // Killing and starting block this thread, and the emissions are counted meanwhile.
        servers = tokio::task::spawn_blocking(move || {
            servers.servers[at].kill();
            servers
        })
        .await?;
        let away = emissions.pause_within(phase_time).await;
        let starting = tokio::task::spawn_blocking(move || {
            servers.servers[at].restart();
            servers
        });
        let (servers, back) = tokio::join!(starting, emissions.pause_within(phase_time));
        disk.servers = Some(servers?);
        eprintln!("server {at}: longest pause away {away:.3?}, back {back:.3?}");
        rows.push((away.as_secs_f64(), back.as_secs_f64()));
    }
    let submitted = load.end().await?;
    emissions.reaches(submitted, PATIENCE).await;
    mill.abandon();
    let mut report = Report::new(
        &format!(
            "Nodes: each of 3 servers killed and started again, {} blocks a second",
            args.rate
        ),
        &disk,
    );
    let name = "longest pause before";
    report.figure(name, undisturbed.as_secs_f64(), "s", Target::None, "");
    for (number, (away, back)) in (1..).zip(&rows) {
        let name = format!("server {number} killed: longest pause");
        report.figure(&name, *away, "s", Target::None, "");
        let name = format!("server {number} started again: longest pause");
        report.figure(&name, *back, "s", Target::None, "");
    }
    let longest = rows
        .iter()
        .map(|(away, back)| away.max(*back))
        .fold(0.0, f64::max);
    report.put("longest_pause_s", round(longest));
    report.put("blocks", submitted);
    report.emissions(&emissions, submitted);
    report.finish(&args.common)
}
