//! Sources that send valid proofs at a steady rate, alone and beside one that floods.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use futures_util::stream::{FuturesUnordered, StreamExt};
use proofmill_verifier::Kind;
use serde_json::json;
use tokio::task::spawn_blocking;

use super::Args;
use super::proofs::{Item, Subject};
use super::running::{RunningService, require};
use crate::harness::{Figures, describe, round};

/// Sources that send valid proofs.
const STEADY_SOURCES: [&str; 3] = ["one", "two", "three"];
/// The source that floods. Half of its proofs are false.
const FLOODER: &str = "flooder";
/// Number of requests that the flooder keeps unanswered, unless the service makes it wait.
const FLOODER_REQUESTS: usize = 512;
/// Rate of the steady sources together, as a share of the rate at which the machine could verify one by one.
const STEADY_LOAD_SHARE: f64 = 0.25;
/// Target of the ratio of the steady sources' P99 with the flood to that without: at most this.
const P99_RATIO_MAX: f64 = 1.2;

/// Latencies of the steady sources, and the number of verdicts that the flooder got.
#[derive(Default)]
struct Stretches {
    all_ms: Vec<f64>,
    p99s_ms: Vec<f64>,
    flooded: usize,
}

/// Stretches with and without the flooder, in turns, each on a new service.
pub(super) async fn run<K: Kind>(args: &Args, subject: &Subject<K>) -> anyhow::Result<()> {
    let threads = args.thread_counts()[0];
    let shuffled = subject.shuffled(1024, 512, 1);
    let valid: Vec<_> = shuffled
        .iter()
        .filter(|item| item.is_valid)
        .cloned()
        .collect();
    let rate = STEADY_LOAD_SHARE * threads as f64 / seconds_alone(subject, &valid);
    let mut with = Stretches::default();
    let mut without = Stretches::default();
    for number in 0..args.rounds {
        for turn in 0..2 {
            let is_flooded = (number + turn) % 2 == 1;
            let flood = is_flooded.then_some(&shuffled[..]);
            let stretch = stretch(args, subject, threads, rate, &valid, flood).await?;
            let to = if is_flooded { &mut with } else { &mut without };
            to.add(stretch);
        }
    }
    print(args, subject, threads, rate, &with, &without);
    Ok(())
}

/// Seconds that a proof takes on one thread, alone.
fn seconds_alone<K: Kind>(subject: &Subject<K>, items: &[Item]) -> f64 {
    let items = &items[..items.len().min(32)];
    let began = Instant::now();
    for item in items {
        subject.verify(item);
    }
    began.elapsed().as_secs_f64() / items.len() as f64
}

/// Measures one stretch. Returns the latencies of the steady sources in milliseconds, and the number of
/// verdicts that the flooder got.
async fn stretch<K: Kind>(
    args: &Args,
    subject: &Subject<K>,
    threads: usize,
    rate: f64,
    valid: &[Item],
    flood: Option<&[Item]>,
) -> anyhow::Result<(Vec<f64>, usize)> {
    let mut sources = STEADY_SOURCES.to_vec();
    sources.push(FLOODER);
    let running = RunningService::open(subject, threads, usize::from(args.batch), &sources).await?;
    let running = Arc::new(running);
    let is_over = Arc::new(AtomicBool::new(false));
    // The flooder has its own thread, as a connection to the service would.
    let flooder = flood.map(|items| {
        let (running, is_over, items) = (running.clone(), is_over.clone(), items.to_vec());
        thread::spawn(move || super::runtime()?.block_on(flood_until(&running, &items, &is_over)))
    });
    let latencies = send_steadily(&running, rate, args.seconds, valid).await;
    is_over.store(true, Ordering::Relaxed);
    let flooded = match flooder {
        // Joining on this thread would block the service, which runs on it.
        Some(flooder) => match spawn_blocking(|| flooder.join()).await? {
            Ok(flooded) => flooded?,
            Err(_) => anyhow::bail!("the flooder panicked"),
        },
        None => 0,
    };
    Ok((latencies?, flooded))
}

/// Sends proofs of all steady sources in turn, at `rate` a second for `seconds`, without waiting for verdicts.
/// Returns the milliseconds from the submission of each proof to its verdict.
async fn send_steadily(
    running: &RunningService,
    rate: f64,
    seconds: u16,
    valid: &[Item],
) -> anyhow::Result<Vec<f64>> {
    let began = tokio::time::Instant::now();
    let count = (rate * f64::from(seconds)).ceil().max(1.0) as usize;
    let one = |number: usize| async move {
        let due = Duration::from_secs_f64(number as f64 / rate);
        tokio::time::sleep_until(began + due).await;
        let item = &valid[number % valid.len()];
        let source = STEADY_SOURCES[number % STEADY_SOURCES.len()];
        let request = running.request(source, &number.to_string(), item);
        let handed_over = Instant::now();
        let verdict = running.handle.verify(request).await?;
        require(number, item, &verdict.status)?;
        anyhow::Ok(handed_over.elapsed().as_secs_f64() * 1e3)
    };
    try_join_all((0..count).map(one)).await
}

/// Sends proofs as fast as the service takes them until `is_over` is set. Returns the number of verdicts.
async fn flood_until(
    running: &RunningService,
    items: &[Item],
    is_over: &AtomicBool,
) -> anyhow::Result<usize> {
    let mut pending = FuturesUnordered::new();
    let (mut sent, mut answered) = (0, 0);
    while !is_over.load(Ordering::Relaxed) {
        while pending.len() < FLOODER_REQUESTS {
            let item = &items[sent % items.len()];
            let request = running.request(FLOODER, &sent.to_string(), item);
            pending.push(running.handle.submit(request).await?);
            sent += 1;
        }
        pending.next().await;
        answered += 1;
    }
    Ok(answered)
}

// === impl Stretches ===

impl Stretches {
    fn add(&mut self, (latencies, flooded): (Vec<f64>, usize)) {
        self.p99s_ms.push(Figures::of(latencies.clone()).p99());
        self.all_ms.extend(latencies);
        self.flooded += flooded;
    }
}

fn print<K: Kind>(
    args: &Args,
    subject: &Subject<K>,
    threads: usize,
    rate: f64,
    with: &Stretches,
    without: &Stretches,
) {
    let kind = Kind::name(&subject.kind);
    let stretches = [("without", without), ("with", with)];
    let of_all = stretches.map(|(_, stretches)| Figures::of(stretches.all_ms.clone()));
    let ratio = of_all[1].p99() / of_all[0].p99();
    let flooded = with.flooded as f64 / (f64::from(args.rounds) * f64::from(args.seconds));
    println!(
        "{kind} on {threads} threads: {} sources send {rate:.0} valid proofs a second in all",
        STEADY_SOURCES.len()
    );
    for ((name, stretches), figures) in stretches.iter().zip(&of_all) {
        let medians = Figures::of(stretches.p99s_ms.clone());
        println!(
            "{name:>8} the flood: P50 {:.2} ms, P99 {:.2} ms of {} proofs; P99 of a stretch: median {:.2} ms",
            figures.p50(),
            figures.p99(),
            figures.len(),
            medians.p50()
        );
    }
    println!(
        "  P99 with the flood is {ratio:.3} of that without; the target is at most {P99_RATIO_MAX}"
    );
    println!("  the flooder, half of whose proofs are false, was served {flooded:.0} a second");
    println!(
        "  {} stretches of {} s of each in turns; {}",
        args.rounds,
        args.seconds,
        describe()
    );
    if args.json {
        println!(
            "{}",
            json!({
                "kind": kind, "machine": describe(), "threads": threads, "rate": round(rate),
                "p99_without_ms": round(of_all[0].p99()), "p99_with_ms": round(of_all[1].p99()),
                "p50_without_ms": round(of_all[0].p50()), "p50_with_ms": round(of_all[1].p50()),
                "ratio": round(ratio), "flooder_per_second": round(flooded),
            })
        );
    }
}
