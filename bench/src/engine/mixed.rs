//! Ten circuits in an engine with memory for three of their keys: jobs of all priorities, of which some are
//! cancelled.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use futures_util::StreamExt;
use proofmill_api::engine::Client;
use proofmill_api::engine::proto::{JobState, Priority, SubmitRequest, Tier};
use proofmill_groth16::Curve;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::circuits::{EngineCircuit, arguments};
use super::process::EngineConfig;
use crate::circom::CircuitArgs;
use crate::groth16::Sized;
use crate::harness::{Common, Report, StateDisk, Target, memory, peak, round};

/// Bytes that each of the circuits by circom hashes.
const CIRCOM_BYTES: [usize; 2] = [200, 512];

/// Circuits of the Groth16 benchmark.
const OWN_CIRCUITS: [(Curve, Sized); 8] = [
    (Curve::Bn254, chain(1_000)),
    (Curve::Bls12_381, chain(2_000)),
    (Curve::Bls12_381, Sized::Sha256 { blocks: 1 }),
    (Curve::Bls12_381, Sized::Sha256 { blocks: 8 }),
    (Curve::Bls12_381, chain(250_000)),
    (Curve::Bls12_381, chain(500_000)),
    (Curve::Bn254, chain(700_000)),
    (Curve::Bn254, chain(1_000_000)),
];

/// Fewest jobs of each circuit.
const JOBS_PER_CIRCUIT_MIN: usize = 3;
/// The share of cancelled jobs: one in this many, chosen at random.
const CANCELLED_ONE_IN: u32 = 10;
/// Longest time from a job's submission to its cancellation, in milliseconds.
const CANCEL_AFTER_MAX_MS: u64 = 2_000;
/// Time after which an unfinished job counts as stuck.
const JOB_TIME_MAX: Duration = Duration::from_secs(600);
/// Interval between samples of the process's memory.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(50);

/// Arguments of `proofmill-bench engine mixed`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    circuits: CircuitArgs,
    /// Jobs
    #[arg(long, default_value_t = 1000)]
    jobs: usize,
    /// Jobs at once
    #[arg(long, default_value_t = 12)]
    at_once: usize,
    /// Only circuits of at most so many constraints
    #[arg(long, value_name = "CONSTRAINTS", default_value_t = usize::MAX, hide_default_value = true)]
    largest: usize,
    /// Most times that a proof may be overtaken by others whose keys are in memory
    #[arg(long, default_value_t = 0)]
    batch: u32,
    /// Seed of the random jobs
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

const fn chain(constraints: usize) -> Sized {
    Sized::Chain { constraints }
}

/// A job that is to be submitted.
#[derive(Clone, Copy, Debug)]
struct PlannedJob {
    number: usize,
    circuit: usize,
    priority: Priority,
    cancel_after: Option<Duration>,
}

/// Counts of jobs by their end state.
#[derive(Debug, Default)]
struct JobCounts {
    proven: AtomicUsize,
    cancelled: AtomicUsize,
    wrong: AtomicUsize,
    stuck: AtomicUsize,
}

/// Peak memory of the process.
#[derive(Debug, Default)]
struct PeakMemory {
    anonymous: AtomicU64,
    keys: AtomicUsize,
}

/// Measures and reports.
pub(crate) async fn run(args: &Args) -> anyhow::Result<()> {
    let disk = StateDisk::fresh(&args.common)?;
    let folder = args.circuits.folder()?;
    let mut circuits = Vec::new();
    for (curve, circuit) in OWN_CIRCUITS {
        if circuit.constraints() <= args.largest {
            circuits.push(EngineCircuit::synthesized(&folder, curve, circuit)?);
        }
    }
    for bytes in CIRCOM_BYTES {
        let made = EngineCircuit::from_circom(&args.circuits.prepare(bytes)?)?;
        if made.constraints <= args.largest {
            circuits.push(made);
        }
    }
    let program = args.circuits.program()?;
    let state = disk.state("engine");
    let config = EngineConfig::new(&program, &state, arguments(&circuits));
    let process = config.start_with(circuits.len()).await?;
    let keys = keys(&config.client().await?).await?;
    process.kill().await?;
    let (budget, all) = (budget(&keys), keys.iter().map(|key| key.bytes).sum());
    if budget >= all {
        eprintln!("the budget holds all keys: none has to be evicted");
    }

    let serve = [
        "--budget".to_owned(),
        format!("{budget}B"),
        "--batch".to_owned(),
        args.batch.to_string(),
    ];
    let config = EngineConfig::new(&program, &state, serve.into());
    let process = config.start_with(circuits.len()).await?;
    let id = process.id()?;
    let (peaks, counts) = (Arc::new(PeakMemory::default()), JobCounts::default());
    let sampler = tokio::spawn(sample_memory(config.clone(), id, peaks.clone()));
    let began = Instant::now();
    let jobs = plan_jobs(args, &circuits);
    futures_util::stream::iter(jobs.clone())
        .map(|job| run_job(&config, &circuits, job, &counts))
        .buffer_unordered(args.at_once)
        .collect::<Vec<anyhow::Result<()>>>()
        .await
        .into_iter()
        .collect::<anyhow::Result<()>>()?;
    let took = began.elapsed().as_secs_f64();
    sampler.abort();
    let most = peak(id).context("the system does not say what memory the engine had")?;
    let client = config.client().await?;
    let status = client.status().await?;
    let held = status
        .budget
        .context("the engine does not say what it holds")?;
    process.kill().await?;

    let mb = |bytes: u64| bytes as f64 / 1e6;
    let mut report = Report::new("Engine: ten circuits, memory for three", &disk);
    let limit = Target::AtMost(mb(budget) * 1.05);
    let anonymous = peaks.anonymous.load(Ordering::Relaxed);
    let keys = peaks.keys.load(Ordering::Relaxed);
    report.figure("all keys", mb(all), "MB", Target::None, "");
    report.figure("budget", mb(budget), "MB", Target::None, "");
    report.figure("most memory of the process", mb(most), "MB", limit, "");
    report.figure("of it not of files", mb(anonymous), "MB", limit, "");
    report.figure("most reserved", mb(held.peak), "MB", Target::None, "");
    report.figure("keys in memory, at most", keys as f64, "", Target::None, "");
    report.figure(
        "keys evicted",
        held.evictions as f64,
        "",
        Target::AtLeast(1.0),
        "",
    );
    report.figure("jobs", jobs.len() as f64, "", Target::None, "");
    report.figure("over", took, "s", Target::None, "");
    report.put("all_keys_bytes", all);
    report.put("budget_bytes", budget);
    report.put("peak_bytes", most);
    report.put("peak_anonymous_bytes", anonymous);
    report.put("reserved_bytes", held.peak);
    report.put("keys_at_most", keys);
    report.put("evictions", held.evictions);
    report.put("batch", args.batch);
    report.put("jobs", jobs.len());
    report.put("seconds", round(took));
    for (key, name, count) in [
        ("proven", "proven", &counts.proven),
        ("cancelled", "cancelled", &counts.cancelled),
    ] {
        let count = count.load(Ordering::Relaxed);
        report.put(key, count);
        report.figure(name, count as f64, "", Target::None, "");
    }
    report.must_be_zero("wrong", "without a right proof", counts.wrong.into_inner());
    report.must_be_zero("stuck", "not at an end in time", counts.stuck.into_inner());
    for circuit in &status.circuits {
        report.note(&format!(
            "{}: {} proofs, loaded {} times, evicted {} times, {:.0} MB",
            circuit.name,
            circuit.proofs,
            circuit.loads,
            circuit.evictions,
            mb(circuit.hot_bytes)
        ));
    }
    report.finish(&args.common)
}

/// Memory of a key, in bytes.
#[derive(Clone, Copy, Debug)]
struct KeyMemory {
    bytes: u64,
    /// The least budget with which the engine loads the key and proves with it.
    needed: u64,
}

/// Loads each key, and evicts it again.
async fn keys(client: &Client) -> anyhow::Result<Vec<KeyMemory>> {
    let mut keys = Vec::new();
    for circuit in client.circuits().await? {
        let needed = circuit.needed_bytes;
        let bytes = client.preload(&circuit.name, Tier::Hot).await?.bytes;
        client.evict(&circuit.name).await?;
        keys.push(KeyMemory { bytes, needed });
    }
    Ok(keys)
}

/// The budget in bytes: the memory of the three largest keys, or, if that is more, the least budget with
/// which every circuit can be proved.
fn budget(keys: &[KeyMemory]) -> u64 {
    let mut bytes: Vec<u64> = keys.iter().map(|key| key.bytes).collect();
    bytes.sort_unstable();
    let three = bytes.iter().rev().take(3).sum();
    let needed = keys.iter().map(|key| key.needed).max();
    needed.unwrap_or(0).max(three)
}

/// The jobs in the order of their submission: of every circuit some, and fewer of the larger ones.
fn plan_jobs(args: &Args, circuits: &[EngineCircuit]) -> Vec<PlannedJob> {
    let mut random = StdRng::seed_from_u64(args.seed);
    // With these weights, the large circuits take most of the time, but not all of it.
    let weights: Vec<f64> = circuits
        .iter()
        .map(|it| (it.constraints as f64).powf(-0.5))
        .collect();
    let all: f64 = weights.iter().sum();
    let jobs = (0..args.jobs).map(|number| {
        let mut at = random.random_range(0.0..all);
        let drawn = weights.iter().position(|weight| {
            at -= weight;
            at < 0.0
        });
        let is_drawn = number >= JOBS_PER_CIRCUIT_MIN * circuits.len();
        let circuit = match drawn {
            Some(drawn) if is_drawn => drawn,
            _ => number % circuits.len(),
        };
        let priorities = [
            Priority::Low,
            Priority::Normal,
            Priority::High,
            Priority::Critical,
        ];
        let cancel = random.random_ratio(1, CANCELLED_ONE_IN);
        let after = Duration::from_millis(random.random_range(0..CANCEL_AFTER_MAX_MS));
        PlannedJob {
            number,
            circuit,
            priority: priorities[random.random_range(0..priorities.len())],
            cancel_after: cancel.then_some(after),
        }
    });
    jobs.collect()
}

/// Submits a job, cancels it if that is planned, waits for its end and counts it.
async fn run_job(
    config: &EngineConfig,
    circuits: &[EngineCircuit],
    job: PlannedJob,
    counts: &JobCounts,
) -> anyhow::Result<()> {
    let circuit = &circuits[job.circuit];
    let client = config.client().await?;
    let request = SubmitRequest {
        request_id: job.number.to_string(),
        priority: job.priority.into(),
        partitions: vec![circuit.partition()],
        ..SubmitRequest::default()
    };
    let accepted = client.submit(request).await?.job;
    if let Some(after) = job.cancel_after {
        tokio::time::sleep(after).await;
        client.cancel(&accepted).await?;
    }
    let Ok(result) = tokio::time::timeout(JOB_TIME_MAX, client.await_result(&accepted)).await
    else {
        counts.stuck.fetch_add(1, Ordering::Relaxed);
        return Ok(());
    };
    let result = result?;
    let counted = match (result.state(), &result.proofs[..]) {
        (JobState::Done, [proof]) => match circuit.check(proof) {
            Ok(()) => &counts.proven,
            Err(error) => {
                eprintln!("job {}: {error:#}", job.number);
                &counts.wrong
            }
        },
        (JobState::Cancelled, []) if job.cancel_after.is_some() => &counts.cancelled,
        (state, _) => {
            eprintln!("job {}: {state:?} {}", job.number, result.failure);
            &counts.wrong
        }
    };
    counted.fetch_add(1, Ordering::Relaxed);
    Ok(())
}

/// Samples the memory and the number of loaded keys of the process, until the task is aborted.
async fn sample_memory(config: EngineConfig, id: u32, peaks: Arc<PeakMemory>) {
    let Ok(client) = config.client().await else {
        return;
    };
    loop {
        if let Some(now) = memory(id) {
            peaks.anonymous.fetch_max(now.anonymous, Ordering::Relaxed);
        }
        if let Ok(circuits) = client.circuits().await {
            let keys = circuits.iter().filter(|it| it.bytes > 0).count();
            peaks.keys.fetch_max(keys, Ordering::Relaxed);
        }
        tokio::time::sleep(SAMPLE_INTERVAL).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_is_for_three_keys_or_for_the_largest_with_a_proof() {
        let key = |bytes, needed| KeyMemory { bytes, needed };
        let mut keys = vec![key(1, 2), key(5, 7), key(3, 4), key(2, 3)];
        assert_eq!(budget(&keys), 10);
        keys.push(key(20, 35));
        assert_eq!(budget(&keys), 35);
    }
}
