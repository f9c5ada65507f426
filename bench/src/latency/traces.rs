//! The cost of traces: runs that export every trace, in turn with runs that export none.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::Ordering;

use anyhow::Context;
use proofmill_api::traces::{self, Settings};
use proofmill_trace::{Counts, pause};

use super::{Args, native};
use crate::harness::{Report, StateDisk, Target, round};

/// Pairs of runs for each rate; the first of a pair takes turns.
const PAIRS: usize = 7;

/// Largest ratio of the P50s, with and without traces.
const RATIO_MAX: f64 = 1.02;

/// Measures and reports. `tasks` is the number of tasks of each run.
pub(super) async fn run(args: &Args, disk: &StateDisk, tasks: usize) -> anyhow::Result<()> {
    let collector = discard()?;
    let lookup = |name: &str| match name {
        "OTEL_EXPORTER_OTLP_ENDPOINT" => Some(collector.clone()),
        "OTEL_BSP_SCHEDULE_DELAY" => Some("1000".to_owned()),
        _ => None,
    };
    let settings = Settings::from_variables(lookup)?.context("an endpoint is set")?;
    let exporting = traces::start(settings)?;
    let mut report = Report::new("Latency with every trace exported, and with none", disk);
    let (mut lost, mut duplicated) = (0, 0);
    let mut rates = Vec::new();
    for rate in &args.rate {
        let mut ratios = Vec::with_capacity(PAIRS);
        let mut p50s = Vec::with_capacity(PAIRS);
        for pair in 0..PAIRS {
            let mut p50 = [0.0; 2];
            for turn in 0..2 {
                let traced = (pair + turn) % 2;
                pause(traced == 0);
                let name = format!("traces-{pair}-{traced}");
                let run = native::measure(args, disk, *rate, tasks, &name).await?;
                p50[traced] = run.overhead.p50();
                lost += run.lost;
                duplicated += run.duplicated;
            }
            ratios.push(p50[1] / p50[0]);
            p50s.push(p50);
        }
        let ratio = median(&mut ratios);
        let label = format!("P50 with traces / without, at {rate}/s");
        report.figure(&label, ratio, "", Target::AtMost(RATIO_MAX), "");
        let mut of = |traced: usize| {
            let mut p50s: Vec<f64> = p50s.iter().map(|pair| pair[traced]).collect();
            let p50 = median(&mut p50s);
            let with = ["without", "with"][traced];
            let label = format!("P50 {with} traces, at {rate}/s");
            report.figure(&label, p50, "ms", Target::None, "");
            p50
        };
        let (without, with) = (of(0), of(1));
        rates.push(serde_json::json!({
            "rate": rate,
            "tasks": tasks,
            "pairs": PAIRS,
            "ratio": round(ratio),
            "p50_without_ms": round(without),
            "p50_with_ms": round(with),
        }));
    }
    pause(false);
    exporting.finish();
    let counts = Counts::of_process();
    let exported = counts.exported.load(Ordering::Relaxed);
    let dropped = counts.dropped.load(Ordering::Relaxed) + counts.failed.load(Ordering::Relaxed);
    anyhow::ensure!(exported > 0, "no span was exported");
    report.note(&format!(
        "medians of {PAIRS} pairs of runs; {exported} spans exported, to a collector in this process"
    ));
    report.put("rates", rates);
    report.put("spans_exported", exported);
    report.must_be_zero("lost", "lost", lost);
    report.must_be_zero("duplicated", "duplicated", duplicated);
    report.must_be_zero("spans_dropped", "spans dropped", usize::try_from(dropped)?);
    report.finish(&args.common)
}

/// The median of an odd number of figures.
fn median(figures: &mut [f64]) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

/// Starts a server that takes every POST and keeps nothing; returns its URL.
fn discard() -> anyhow::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            // The exporter counts what was not taken.
            let _ = take(stream);
        }
    });
    Ok(format!("http://{address}"))
}

fn take(mut stream: TcpStream) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let line = line.trim().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    std::io::copy(&mut reader.take(length), &mut std::io::sink())?;
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
}
