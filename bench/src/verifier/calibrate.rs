//! This machine's constants for the simulator page.

use std::hint::black_box;
use std::time::Instant;

use proofmill_verifier::{Kind, ProofInput};
use serde_json::{Value, json};

use super::Args;
use super::proofs::Subject;
use super::running::Running;
use super::shares;
use crate::harness::{Figures, describe, round};

/// Batches whose sums are timed.
const SIZES: [usize; 7] = [1, 2, 4, 8, 16, 32, 64];
/// Runs of each; the median counts.
const RUNS: usize = 15;

/// Times of a kind's work on so many threads, in milliseconds.
struct Constants {
    threads: usize,
    check_one: f64,
    refuse_one: f64,
    /// Of so many valid claims each for itself.
    each: Vec<(usize, f64)>,
    /// Of the sum over so many claims.
    sums: Vec<(usize, f64)>,
}

/// Measures, and prints one JSON object.
pub(super) async fn run<K: Kind>(args: &Args, subject: &Subject<K>) -> anyhow::Result<()> {
    let mut args = args.clone();
    let most = args.thread_counts().into_iter().max().unwrap_or(1);
    args.threads = (1..=most as u16).collect();
    let claims = claims(subject)?;
    let mut constants = Vec::new();
    for threads in 1..=most {
        constants.push(Constants::measure(threads, subject, &claims)?.to_json());
    }
    let rows = shares::rows(&args, subject).await?;
    let rows: Vec<_> = rows.iter().map(|row| row.to_json(&args)).collect();
    let has_screen = |claim: &&K::Claim| subject.kind.screen(claim).is_some();
    let screen = claims.valid.first().filter(has_screen).map(|claim| {
        milliseconds(|_| {
            black_box(subject.kind.screen(claim));
        })
    });
    let (costs, alone) = (subject.kind.costs(), subject.kind.costs_alone());
    let object = json!({
        "kind": Kind::name(&subject.kind),
        "machine": describe(),
        "instruction_set": proofmill_kernels::InstructionSet::current().to_string(),
        "reductions_ms": reductions(subject)?,
        "screen_ms": screen.map(digits),
        "overhead_ms": digits(overhead(&args, subject).await?),
        "costs": {
            "fixed": costs.fixed, "each": costs.each,
            "alone": { "one": alone.one, "lanes": alone.lanes, "of_lanes": alone.of_lanes },
        },
        "threads": constants,
        "measured": rows,
    });
    println!("{object}");
    Ok(())
}

/// Reduced proofs.
struct Claims<C> {
    valid: Vec<C>,
    false_ones: Vec<C>,
}

fn claims<K: Kind>(subject: &Subject<K>) -> anyhow::Result<Claims<K::Claim>> {
    let [mut valid, mut false_ones] = [Vec::new(), Vec::new()];
    let most = SIZES.into_iter().max().unwrap_or(1);
    for item in subject.mix(2 * most, most, 0) {
        let key = subject.key_of(&item);
        let claim = subject.kind.reduce(key, &item.statement, &item.proof);
        let claim = claim.map_err(|reason| anyhow::anyhow!("a proof is not reduced: {reason}"))?;
        match item.is_valid {
            true => valid.push(claim),
            false => false_ones.push(claim),
        }
    }
    Ok(Claims { valid, false_ones })
}

// === impl Constants ===

impl Constants {
    fn measure<K: Kind>(
        threads: usize,
        subject: &Subject<K>,
        claims: &Claims<K::Claim>,
    ) -> anyhow::Result<Self> {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()?;
        let kind = &subject.kind;
        // One after the other, as in a stream: what one check leaves in the caches is little use to the next.
        let check = |claims: &[K::Claim]| {
            let one = |run: usize| _ = black_box(kind.check(&claims[run % claims.len()]));
            pool.install(|| milliseconds(one))
        };
        let references: Vec<_> = claims.valid.iter().collect();
        let mut each = Vec::new();
        for size in SIZES {
            let groups: Vec<_> = references.chunks_exact(size).collect();
            let one = |run: usize| _ = black_box(kind.check_each(groups[run % groups.len()]));
            each.push((size, pool.install(|| milliseconds(one))));
        }
        let mut sums = Vec::new();
        for size in SIZES {
            // A sum is the first one under its weights: later ones may take less.
            let mut batches = Vec::new();
            for run in 0..=RUNS {
                let batch = references.chunks_exact(size).cycle().nth(run);
                let weights = kind.draw_weights(size)?;
                let batch = batch.into_iter().flatten().copied();
                batches.push(batch.zip(weights).collect::<Vec<_>>());
            }
            let one = |run: usize| _ = black_box(kind.value(&batches[run]));
            let ms = pool.install(|| milliseconds(one));
            sums.push((size, ms));
        }
        Ok(Self {
            threads,
            check_one: check(&claims.valid),
            refuse_one: check(&claims.false_ones),
            each,
            sums,
        })
    }

    fn to_json(&self) -> Value {
        let of_sizes = |times: &[(usize, f64)]| -> Vec<Value> {
            let times = times.iter();
            times.map(|(size, ms)| json!([size, digits(*ms)])).collect()
        };
        json!({
            "threads": self.threads,
            "check_one_ms": digits(self.check_one),
            "refuse_one_ms": digits(self.refuse_one),
            "each_ms": of_sizes(&self.each),
            "sums_ms": of_sizes(&self.sums),
        })
    }
}

/// Milliseconds in which one thread decodes and reduces so many proofs together, up to as many as the kind wants.
fn reductions<K: Kind>(subject: &Subject<K>) -> anyhow::Result<Vec<Value>> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
    let most = subject.kind.reduced_together();
    let items = subject.mix(8 * most, 0, 0);
    let proofs: Vec<_> = items
        .iter()
        .map(|item| ProofInput {
            key: subject.key_of(item).cloned(),
            statement: &item.statement,
            proof: &item.proof,
        })
        .collect();
    let reduction = |size: usize| {
        let groups: Vec<_> = proofs.chunks_exact(size).collect();
        let one = |run: usize| _ = black_box(subject.kind.reduce_each(groups[run % groups.len()]));
        json!([size, digits(pool.install(|| milliseconds(one)))])
    };
    Ok((1..=most).map(reduction).collect())
}

/// Milliseconds of the service for a proof beside its reduction and its share of checks, on one thread,
/// where nothing of it is hidden behind other work.
async fn overhead<K: Kind>(args: &Args, subject: &Subject<K>) -> anyhow::Result<f64> {
    let items = subject.mix(args.proofs as usize, 0, 0);
    let mut overheads = Vec::new();
    for _ in 0..args.rounds {
        let running = Running::open(subject, 1, usize::from(args.batch), &["a source"]).await?;
        let streamed = running.stream("a source", &items).await?;
        let work = (streamed.figures.reduce_us + streamed.figures.check_us) as f64 / 1e3;
        overheads.push((streamed.wall.as_secs_f64() * 1e3 - work) / items.len() as f64);
    }
    Ok(Figures::of(overheads).p50())
}

/// The median of some runs, each of which is told its number, the first left out.
fn milliseconds(mut work: impl FnMut(usize)) -> f64 {
    work(0);
    let runs = (1..=RUNS).map(|run| {
        let began = Instant::now();
        work(run);
        began.elapsed().as_secs_f64() * 1e3
    });
    Figures::of(runs.collect()).p50()
}

/// To a tenth of a microsecond: constants are small.
fn digits(ms: f64) -> f64 {
    round(ms * 10.0) / 10.0
}
