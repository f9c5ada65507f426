//! Measurement of a machine's constants, which the simulator page takes as its input.

use std::hint::black_box;
use std::time::Instant;

use proofmill_verifier::{Kind, ProofInput};
use serde_json::{Value, json};

use super::Args;
use super::proofs::Subject;
use super::running::RunningService;
use super::shares;
use crate::harness::{Figures, describe, round};

/// Sizes of the batches whose sums are measured.
const BATCH_SIZES: [usize; 7] = [1, 2, 4, 8, 16, 32, 64];
/// Number of runs for each constant, which is their median.
const RUNS_PER_CONSTANT: usize = 15;

/// Times of a kind's work, in milliseconds.
struct Constants {
    threads: usize,
    check_one: f64,
    refuse_one: f64,
    /// Times of checking a number of valid claims, each for itself.
    each: Vec<(usize, f64)>,
    /// Times of the sum over a number of claims.
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
        median_ms(|_| {
            black_box(subject.kind.screen(claim));
        })
    });
    let (costs, alone) = (subject.kind.costs(), subject.kind.costs_alone());
    let object = json!({
        "kind": Kind::name(&subject.kind),
        "machine": describe(),
        "instruction_set": proofmill_kernels::InstructionSet::current().to_string(),
        "reductions_ms": reductions(subject)?,
        "screen_ms": screen.map(round_ms),
        "overhead_ms": round_ms(overhead(&args, subject).await?),
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

/// Claims of valid and of false proofs, which reduction made.
struct Claims<C> {
    valid: Vec<C>,
    false_ones: Vec<C>,
}

fn claims<K: Kind>(subject: &Subject<K>) -> anyhow::Result<Claims<K::Claim>> {
    let [mut valid, mut false_ones] = [Vec::new(), Vec::new()];
    let most = BATCH_SIZES.into_iter().max().unwrap_or(1);
    for item in subject.shuffled(2 * most, most, 0) {
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
        // The runs take different claims, as a stream does, so that a check finds little of use in the
        // caches.
        let check = |claims: &[K::Claim]| {
            let one = |run: usize| _ = black_box(kind.check(&claims[run % claims.len()]));
            pool.install(|| median_ms(one))
        };
        let references: Vec<_> = claims.valid.iter().collect();
        let mut each = Vec::new();
        for size in BATCH_SIZES {
            let groups: Vec<_> = references.chunks_exact(size).collect();
            let one = |run: usize| _ = black_box(kind.check_each(groups[run % groups.len()]));
            each.push((size, pool.install(|| median_ms(one))));
        }
        let mut sums = Vec::new();
        for size in BATCH_SIZES {
            // Each run has its own batch and weights, as a second sum with the same ones may take less time.
            let mut batches = Vec::new();
            for run in 0..=RUNS_PER_CONSTANT {
                let batch = references.chunks_exact(size).cycle().nth(run);
                let weights = kind.draw_weights(size)?;
                let batch = batch.into_iter().flatten().copied();
                batches.push(batch.zip(weights).collect::<Vec<_>>());
            }
            let one = |run: usize| _ = black_box(kind.value(&batches[run]));
            let ms = pool.install(|| median_ms(one));
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
            times
                .map(|(size, ms)| json!([size, round_ms(*ms)]))
                .collect()
        };
        json!({
            "threads": self.threads,
            "check_one_ms": round_ms(self.check_one),
            "refuse_one_ms": round_ms(self.refuse_one),
            "each_ms": of_sizes(&self.each),
            "sums_ms": of_sizes(&self.sums),
        })
    }
}

/// Milliseconds in which one thread decodes and reduces a number of proofs together, for each number up to the
/// most that the kind reduces at once.
fn reductions<K: Kind>(subject: &Subject<K>) -> anyhow::Result<Vec<Value>> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
    let most = subject.kind.reduced_together();
    let items = subject.shuffled(8 * most, 0, 0);
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
        json!([size, round_ms(pool.install(|| median_ms(one)))])
    };
    Ok((1..=most).map(reduction).collect())
}

/// Milliseconds that the service takes for a proof beside its reduction and its share of the checks. It is
/// measured on one thread, where other work cannot hide a part of that time.
async fn overhead<K: Kind>(args: &Args, subject: &Subject<K>) -> anyhow::Result<f64> {
    let items = subject.shuffled(args.proofs as usize, 0, 0);
    let mut overheads = Vec::new();
    for _ in 0..args.rounds {
        let running =
            RunningService::open(subject, 1, usize::from(args.batch), &["a source"]).await?;
        let streamed = running.stream("a source", &items).await?;
        let work = (streamed.figures.reduce_us + streamed.figures.check_us) as f64 / 1e3;
        overheads.push((streamed.wall.as_secs_f64() * 1e3 - work) / items.len() as f64);
    }
    Ok(Figures::of(overheads).p50())
}

/// The median time of [`RUNS_PER_CONSTANT`] runs in milliseconds, after one that is not measured. `work` gets
/// the number of the run.
fn median_ms(mut work: impl FnMut(usize)) -> f64 {
    work(0);
    let runs = (1..=RUNS_PER_CONSTANT).map(|run| {
        let began = Instant::now();
        work(run);
        began.elapsed().as_secs_f64() * 1e3
    });
    Figures::of(runs.collect()).p50()
}

/// Rounds milliseconds to a tenth of a microsecond, as some constants are small.
fn round_ms(ms: f64) -> f64 {
    round(ms * 10.0) / 10.0
}
