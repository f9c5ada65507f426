//! Ten circuits, memory for three of their keys, jobs of all priorities, some of them cancelled.

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

use super::circuits::{Ready, arguments};
use super::process::Site;
use crate::circom::CircuitArgs;
use crate::groth16::Sized;
use crate::harness::{Common, Report, StateDisk, Target, memory, peak, round};

/// Bytes that the circuits by circom hash.
const CIRCOM: [usize; 2] = [200, 512];

/// Those of ours.
const OURS: [(Curve, Sized); 8] = [
    (Curve::Bn254, chain(1_000)),
    (Curve::Bls12_381, chain(2_000)),
    (Curve::Bls12_381, Sized::Sha256 { blocks: 1 }),
    (Curve::Bls12_381, Sized::Sha256 { blocks: 8 }),
    (Curve::Bls12_381, chain(250_000)),
    (Curve::Bls12_381, chain(500_000)),
    (Curve::Bn254, chain(700_000)),
    (Curve::Bn254, chain(1_000_000)),
];

/// Jobs of each circuit, at least.
const LEAST: usize = 3;
/// One in this many jobs is cancelled.
const CANCELLED: u32 = 10;
/// Longest time from a job's submission to its cancellation, in milliseconds.
const CANCEL_AFTER: u64 = 2_000;
/// Time after which an unfinished job counts as stuck.
const STUCK: Duration = Duration::from_secs(600);
/// Interval between samples of the process's memory.
const LOOK: Duration = Duration::from_millis(50);

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

/// One job.
#[derive(Clone, Copy, Debug)]
struct PlannedJob {
    number: usize,
    circuit: usize,
    priority: Priority,
    cancel_after: Option<Duration>,
}

/// Counts of jobs by their end state.
#[derive(Debug, Default)]
struct Ends {
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
    for (curve, circuit) in OURS {
        if circuit.constraints() <= args.largest {
            circuits.push(Ready::of_ours(&folder, curve, circuit)?);
        }
    }
    for bytes in CIRCOM {
        let made = Ready::of_circom(&args.circuits.prepare(bytes)?)?;
        if made.constraints <= args.largest {
            circuits.push(made);
        }
    }
    let program = args.circuits.program()?;
    let state = disk.state("engine");
    let site = Site::new(&program, &state, arguments(&circuits));
    let process = site.start_with(circuits.len()).await?;
    let keys = keys(&site.client().await?).await?;
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
    let site = Site::new(&program, &state, serve.into());
    let process = site.start_with(circuits.len()).await?;
    let id = process.id()?;
    let (peaks, ends) = (Arc::new(PeakMemory::default()), Ends::default());
    let looking = tokio::spawn(look(site.clone(), id, peaks.clone()));
    let began = Instant::now();
    let jobs = plan(args, &circuits);
    futures_util::stream::iter(jobs.clone())
        .map(|job| one(&site, &circuits, job, &ends))
        .buffer_unordered(args.at_once)
        .collect::<Vec<anyhow::Result<()>>>()
        .await
        .into_iter()
        .collect::<anyhow::Result<()>>()?;
    let took = began.elapsed().as_secs_f64();
    looking.abort();
    let most = peak(id).context("the system does not say what memory the engine had")?;
    let client = site.client().await?;
    let status = client.status().await?;
    let held = status
        .budget
        .context("the engine does not say what it holds")?;
    process.kill().await?;

    let mb = |bytes: u64| bytes as f64 / 1e6;
    let mut report = Report::new("Engine: ten circuits, memory for three", &disk);
    let limit = Target::Most(mb(budget) * 1.05);
    let anonymous = peaks.anonymous.load(Ordering::Relaxed);
    let keys = peaks.keys.load(Ordering::Relaxed);
    report.figure("all keys", mb(all), "MB", Target::Open, "");
    report.figure("budget", mb(budget), "MB", Target::Open, "");
    report.figure("most memory of the process", mb(most), "MB", limit, "");
    report.figure("of it not of files", mb(anonymous), "MB", limit, "");
    report.figure("most reserved", mb(held.peak), "MB", Target::Open, "");
    report.figure("keys in memory, at most", keys as f64, "", Target::Open, "");
    report.figure(
        "keys evicted",
        held.evictions as f64,
        "",
        Target::Least(1.0),
        "",
    );
    report.figure("jobs", jobs.len() as f64, "", Target::Open, "");
    report.figure("over", took, "s", Target::Open, "");
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
        ("proven", "proven", &ends.proven),
        ("cancelled", "cancelled", &ends.cancelled),
    ] {
        let count = count.load(Ordering::Relaxed);
        report.put(key, count);
        report.figure(name, count as f64, "", Target::Open, "");
    }
    report.must_be_zero("wrong", "without a right proof", ends.wrong.into_inner());
    report.must_be_zero("stuck", "not at an end in time", ends.stuck.into_inner());
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
struct Key {
    bytes: u64,
    /// While it is loaded, and then with a proof: what the engine refuses to have less for.
    least: u64,
}

/// Loads each key, and evicts it again.
async fn keys(client: &Client) -> anyhow::Result<Vec<Key>> {
    let mut keys = Vec::new();
    for circuit in client.circuits().await? {
        let least = circuit.needed_bytes;
        let bytes = client.preload(&circuit.name, Tier::Hot).await?.bytes;
        client.evict(&circuit.name).await?;
        keys.push(Key { bytes, least });
    }
    Ok(keys)
}

/// Budget: the memory of the three largest keys, or the least with which every circuit can be proved if that is more.
fn budget(keys: &[Key]) -> u64 {
    let mut bytes: Vec<u64> = keys.iter().map(|key| key.bytes).collect();
    bytes.sort_unstable();
    let three = bytes.iter().rev().take(3).sum();
    let least = keys.iter().map(|key| key.least).max();
    least.unwrap_or(0).max(three)
}

/// Jobs of every circuit, fewer of larger ones, in random order.
fn plan(args: &Args, circuits: &[Ready]) -> Vec<PlannedJob> {
    let mut random = StdRng::seed_from_u64(args.seed);
    // So that the large ones take most of the time, and not all of it.
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
        let is_drawn = number >= LEAST * circuits.len();
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
        let cancel = random.random_ratio(1, CANCELLED);
        let after = Duration::from_millis(random.random_range(0..CANCEL_AFTER));
        PlannedJob {
            number,
            circuit,
            priority: priorities[random.random_range(0..priorities.len())],
            cancel_after: cancel.then_some(after),
        }
    });
    jobs.collect()
}

/// Has one job done, or cancels it.
async fn one(site: &Site, circuits: &[Ready], job: PlannedJob, ends: &Ends) -> anyhow::Result<()> {
    let circuit = &circuits[job.circuit];
    let client = site.client().await?;
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
    let Ok(result) = tokio::time::timeout(STUCK, client.await_result(&accepted)).await else {
        ends.stuck.fetch_add(1, Ordering::Relaxed);
        return Ok(());
    };
    let result = result?;
    let counted = match (result.state(), &result.proofs[..]) {
        (JobState::Done, [proof]) => match circuit.check(proof) {
            Ok(()) => &ends.proven,
            Err(error) => {
                eprintln!("job {}: {error:#}", job.number);
                &ends.wrong
            }
        },
        (JobState::Cancelled, []) if job.cancel_after.is_some() => &ends.cancelled,
        (state, _) => {
            eprintln!("job {}: {state:?} {}", job.number, result.failure);
            &ends.wrong
        }
    };
    counted.fetch_add(1, Ordering::Relaxed);
    Ok(())
}

/// Looks at the process until it is told not to.
async fn look(site: Site, id: u32, peaks: Arc<PeakMemory>) {
    let Ok(client) = site.client().await else {
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
        tokio::time::sleep(LOOK).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_is_for_three_keys_or_for_the_largest_with_a_proof() {
        let key = |bytes, least| Key { bytes, least };
        let mut keys = vec![key(1, 2), key(5, 7), key(3, 4), key(2, 3)];
        assert_eq!(budget(&keys), 10);
        keys.push(key(20, 35));
        assert_eq!(budget(&keys), 35);
    }
}
