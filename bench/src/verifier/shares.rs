//! Streams of one source with shares of false proofs, beside verifying one by one.

use std::time::Instant;

use proofmill_verifier::{Kind, KindFigures};
use rayon::prelude::*;
use serde_json::{Value, json};

use super::Args;
use super::proofs::{Item, Reference, Subject};
use super::running::RunningService;
use crate::harness::{Figures, describe, round};

/// A row of the table: a number of false proofs on a number of threads.
pub(super) struct Row {
    threads: usize,
    bad: usize,
    service_ms: Vec<f64>,
    single_ms: Vec<f64>,
    reference_ms: Vec<f64>,
    latencies_ms: Vec<f64>,
    counted: Vec<KindFigures>,
    /// The false proofs of each round, as [`placement`] writes them.
    placements: Vec<String>,
}

/// Measures all rows in turns.
pub(super) async fn rows<K: Kind>(args: &Args, subject: &Subject<K>) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for threads in args.thread_counts() {
        let rows_of_threads = args
            .bad_counts()
            .into_iter()
            .map(|bad| Row::new(threads, bad));
        rows.extend(rows_of_threads);
    }
    for number in 0..args.rounds {
        for row in &mut rows {
            row.measure(args, subject, number).await?;
        }
    }
    Ok(rows)
}

/// Measures and reports.
pub(super) async fn run<K: Kind>(args: &Args, subject: &Subject<K>) -> anyhow::Result<()> {
    let rows = rows(args, subject).await?;
    print(args, subject, &rows);
    if args.json {
        let rows: Vec<_> = rows.iter().map(|row| row.to_json(args)).collect();
        let kind = Kind::name(&subject.kind);
        println!(
            "{}",
            json!({ "kind": kind, "machine": describe(), "rows": rows })
        );
    }
    Ok(())
}

// === impl Row ===

impl Row {
    fn new(threads: usize, bad: usize) -> Self {
        Self {
            threads,
            bad,
            service_ms: Vec::new(),
            single_ms: Vec::new(),
            reference_ms: Vec::new(),
            latencies_ms: Vec::new(),
            counted: Vec::new(),
            placements: Vec::new(),
        }
    }

    /// Measures one round: the service, the kind's own verifier and the reference. The service comes first
    /// in every second round, and last in the others.
    async fn measure<K: Kind>(
        &mut self,
        args: &Args,
        subject: &Subject<K>,
        number: u16,
    ) -> anyhow::Result<()> {
        let items = subject.shuffled(args.proofs as usize, self.bad, u64::from(number));
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(self.threads)
            .build()?;
        self.placements.push(placement(&items));
        if number.is_multiple_of(2) {
            self.measure_service(args, subject, &items).await?;
        }
        let single = |item: &Item| Ok(subject.verify(item));
        self.single_ms.push(one_by_one(&pool, &items, single)?);
        if let Some(Reference { verify, .. }) = &subject.reference {
            self.reference_ms.push(one_by_one(&pool, &items, verify)?);
        }
        if number % 2 == 1 {
            self.measure_service(args, subject, &items).await?;
        }
        Ok(())
    }

    async fn measure_service<K: Kind>(
        &mut self,
        args: &Args,
        subject: &Subject<K>,
        items: &[Item],
    ) -> anyhow::Result<()> {
        let batch = usize::from(args.batch);
        let running = RunningService::open(subject, self.threads, batch, &["a source"]).await?;
        let streamed = running.stream("a source", items).await?;
        self.service_ms.push(streamed.wall.as_secs_f64() * 1e3);
        self.latencies_ms.extend(streamed.latencies_ms);
        self.counted.push(streamed.figures);
        Ok(())
    }

    /// The mean of a count over the rounds.
    fn mean(&self, count: impl Fn(&KindFigures) -> u64) -> f64 {
        let sum: u64 = self.counted.iter().map(count).sum();
        sum as f64 / self.counted.len() as f64
    }

    /// The median of the service's times divided by the median of `others_ms`.
    fn ratio(&self, others_ms: &[f64]) -> f64 {
        median(&self.service_ms) / median(others_ms)
    }

    pub(super) fn to_json(&self, args: &Args) -> Value {
        let latencies = Figures::of(self.latencies_ms.clone());
        let mut object = json!({
            "threads": self.threads,
            "batch": args.batch,
            "proofs": args.proofs,
            "bad": self.bad,
            "rounds": args.rounds,
            "wall_ms": round(median(&self.service_ms)),
            "one_by_one_ms": round(median(&self.single_ms)),
            "ratio": round(self.ratio(&self.single_ms)),
            "latency_p50_ms": round(latencies.p50()),
            "latency_p99_ms": round(latencies.p99()),
            "batches": self.mean(|figures| figures.batches),
            "together": self.mean(|figures| figures.checks.together),
            "alone": self.mean(|figures| figures.checks.alone),
            "screens": self.mean(|figures| figures.checks.screens),
            "placements": self.placements,
        });
        if !self.reference_ms.is_empty() {
            object["reference_ms"] = round(median(&self.reference_ms)).into();
        }
        object
    }
}

/// The places of the false proofs, as hexadecimal digits of four bits: a bit for each proof in order, the highest
/// one first, set if the proof is false.
fn placement(items: &[Item]) -> String {
    let digit = |four: &[Item]| {
        let bit = |(index, item): (usize, &Item)| u32::from(!item.is_valid) << (3 - index);
        let bits: u32 = four.iter().enumerate().map(bit).sum();
        char::from_digit(bits, 16).expect("four bits")
    };
    items.chunks(4).map(digit).collect()
}

fn median(ms: &[f64]) -> f64 {
    Figures::of(ms.to_vec()).p50()
}

/// Verifies each proof for itself on the threads of a pool, each of which takes the next proof. Returns the
/// milliseconds. Fails if a verdict is not the expected one.
fn one_by_one(
    pool: &rayon::ThreadPool,
    items: &[Item],
    verify: impl Fn(&Item) -> anyhow::Result<bool> + Sync,
) -> anyhow::Result<f64> {
    let began = Instant::now();
    let verdicts: Vec<_> = pool.install(|| {
        let items = items.par_iter().with_max_len(1);
        items.map(&verify).collect()
    });
    let elapsed_ms = began.elapsed().as_secs_f64() * 1e3;
    for (number, (item, verdict)) in items.iter().zip(verdicts).enumerate() {
        anyhow::ensure!(verdict? == item.is_valid, "proof {number}, alone");
    }
    Ok(elapsed_ms)
}

fn print<K: Kind>(args: &Args, subject: &Subject<K>, rows: &[Row]) {
    println!(
        "{} proofs of kind {}, from one source, in batches of at most {}",
        args.proofs,
        Kind::name(&subject.kind),
        args.batch
    );
    let reference = subject.reference.as_ref().map(|reference| reference.name);
    let against = reference.map(|name| format!("  {name:>12}  faster"));
    println!(
        "{:>7}  {:>6}  {:>10}  {:>9}  {:>9} {:>7} {:>8}  {:>10}  {:>6}  {:>9}  {:>9}{}",
        "threads",
        "false",
        "wall",
        "proofs/s",
        "together",
        "alone",
        "screens",
        "one by one",
        "ratio",
        "P50",
        "P99",
        against.unwrap_or_default()
    );
    for row in rows {
        let wall = median(&row.service_ms);
        let latencies = Figures::of(row.latencies_ms.clone());
        let against = match reference {
            Some(_) => format!(
                "  {:>9.2} ms  {:>5.2}×",
                median(&row.reference_ms),
                1.0 / row.ratio(&row.reference_ms)
            ),
            None => String::new(),
        };
        println!(
            "{:>7}  {:>6}  {:>7.2} ms  {:>9.1}  {:>9.1} {:>7.1} {:>8.1}  {:>7.2} ms  {:>6.3}  {:>6.2} ms  {:>6.2} ms{against}",
            row.threads,
            row.bad,
            wall,
            f64::from(args.proofs) / wall * 1e3,
            row.mean(|figures| figures.checks.together),
            row.mean(|figures| figures.checks.alone),
            row.mean(|figures| figures.checks.screens),
            median(&row.single_ms),
            row.ratio(&row.single_ms),
            latencies.p50(),
            latencies.p99(),
        );
    }
    println!("  {}", describe());
    println!(
        "  medians of {} rounds in turns; the ratio is the service's time to one by one's",
        args.rounds
    );
}
