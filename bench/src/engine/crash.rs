//! The engine's process is killed at random moments, again and again.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use proofmill_api::engine::ClientError;
use proofmill_api::engine::proto::{JobState, Proof, SubmitRequest};
use proofmill_groth16::Curve;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::task::JoinSet;
use tonic::Code;

use super::circuits::{EngineCircuit, arguments};
use super::process::EngineConfig;
use crate::circom::folder;
use crate::groth16::Sized;
use crate::harness::{Common, Program, Report, StateDisk, Target, round};

/// Range of the time between two kills, in milliseconds.
const KILL_INTERVAL_MS: std::ops::Range<u64> = 300..2500;

/// Arguments of `proofmill-bench engine crash`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    program: Program,
    /// Number of kills
    #[arg(long, default_value_t = 20)]
    kills: usize,
    /// Clients that submit at once
    #[arg(long, default_value_t = 8)]
    clients: usize,
    /// Seed of the random moments
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Where the circuits' keys are kept
    #[arg(long, value_name = "DIR", default_value = "target/bench-engine")]
    circuits: PathBuf,
}

/// A client's record of one of its requests.
#[derive(Clone, Debug, Default)]
struct RequestRecord {
    circuit: usize,
    job: String,
    /// The proof of the first answer, encoded.
    proof: Vec<u8>,
}

/// Counts of faults.
#[derive(Clone, Copy, Debug, Default)]
struct FaultCounts {
    /// Jobs accepted but unknown afterwards, or ended without proofs.
    lost: usize,
    /// Jobs whose result differs from an earlier one.
    differing: usize,
    /// Jobs with an invalid proof.
    invalid: usize,
}

/// Kills the engine under load, and reports.
pub(crate) async fn run(args: &Args) -> anyhow::Result<()> {
    let disk = StateDisk::fresh(&args.common)?;
    let program = args.program.find()?.canonicalize()?;
    let folder = folder(&args.circuits)?;
    let circuits: Arc<[EngineCircuit]> = [
        (Curve::Bn254, Sized::Chain { constraints: 1_000 }),
        (Curve::Bls12_381, Sized::Chain { constraints: 4_000 }),
        (Curve::Bn254, Sized::Sha256 { blocks: 1 }),
    ]
    .into_iter()
    .map(|(curve, circuit)| EngineCircuit::synthesized(&folder, curve, circuit))
    .collect::<anyhow::Result<_>>()?;
    let mut serve: Vec<String> = ["--budget", "1GiB"].map(str::to_owned).into();
    serve.extend(arguments(&circuits));
    let config = EngineConfig::new(&program, &disk.state("engine"), serve);
    let mut process = config.start_with(circuits.len()).await?;

    let stop = Arc::new(AtomicBool::new(false));
    let mut clients = JoinSet::new();
    for number in 0..args.clients {
        let (config, circuits, stop) = (config.clone(), circuits.clone(), stop.clone());
        clients.spawn(async move { client(&config, &circuits, number, &stop).await });
    }
    let mut random = StdRng::seed_from_u64(args.seed);
    let began = Instant::now();
    for _ in 0..args.kills {
        tokio::time::sleep(Duration::from_millis(random.random_range(KILL_INTERVAL_MS))).await;
        process.kill().await?;
        process = config.start()?;
    }
    stop.store(true, Ordering::Relaxed);
    let (mut records, mut faults) = (BTreeMap::new(), FaultCounts::default());
    while let Some(ended) = clients.join_next().await {
        let (client_records, client_faults) = ended.context("a client panicked")??;
        records.extend(client_records);
        faults = faults.plus(client_faults);
    }
    let took = began.elapsed();
    // Every request is repeated once more, after the load has ended.
    process.kill().await?;
    let process = config.start()?;
    for ((client, request), before) in &records {
        faults = faults.plus(resubmit(&config, &circuits, *client, *request, before).await?);
    }
    process.kill().await?;

    let mut report = Report::new("Engine: killed at random moments under load", &disk);
    report.figure("killed", args.kills as f64, "times", Target::None, "");
    report.figure("jobs accepted", records.len() as f64, "", Target::None, "");
    report.figure("over", took.as_secs_f64(), "s", Target::None, "");
    report.put("kills", args.kills);
    report.put("accepted", records.len());
    report.put("seconds", round(took.as_secs_f64()));
    report.must_be_zero("lost", "lost", faults.lost);
    report.must_be_zero("differing", "with two results", faults.differing);
    report.must_be_zero("invalid", "with an invalid proof", faults.invalid);
    report.note(&format!(
        "{} clients, each with one request at a time; each result is requested three times: when \
         it is ready, at once again, and after the last restart",
        args.clients
    ));
    report.finish(&args.common)
}

// === impl FaultCounts ===

impl FaultCounts {
    fn plus(self, other: Self) -> Self {
        Self {
            lost: self.lost + other.lost,
            differing: self.differing + other.differing,
            invalid: self.invalid + other.invalid,
        }
    }
}

/// Submits one request after the other and waits for each result, until `stop` is set.
async fn client(
    config: &EngineConfig,
    circuits: &[EngineCircuit],
    number: usize,
    stop: &AtomicBool,
) -> anyhow::Result<(Vec<((usize, usize), RequestRecord)>, FaultCounts)> {
    let (mut records, mut faults) = (Vec::new(), FaultCounts::default());
    for request in 0.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let circuit = (number + request) % circuits.len();
        let submission = submission(circuits, circuit, number, request);
        let accepted = config.retry_until_answered(|engine| {
            let submission = submission.clone();
            async move { engine.submit(submission).await }
        });
        let mut record = RequestRecord {
            circuit,
            job: accepted.await?.job,
            proof: Vec::new(),
        };
        match proof(config, &record.job).await? {
            None => faults.lost += 1,
            Some(given) => {
                if circuits[circuit].check(&given).is_err() {
                    faults.invalid += 1;
                }
                record.proof = given.proof;
                faults = faults.plus(resubmit(config, circuits, number, request, &record).await?);
            }
        }
        records.push(((number, request), record));
    }
    Ok((records, faults))
}

/// Submits an accepted request again, and compares the result with that of the first submission.
async fn resubmit(
    config: &EngineConfig,
    circuits: &[EngineCircuit],
    client: usize,
    request: usize,
    record: &RequestRecord,
) -> anyhow::Result<FaultCounts> {
    let mut faults = FaultCounts::default();
    let submission = submission(circuits, record.circuit, client, request);
    let accepted = config.retry_until_answered(|engine| {
        let submission = submission.clone();
        async move { engine.submit(submission).await }
    });
    let accepted = accepted.await?;
    if !accepted.existing {
        faults.lost += 1;
    }
    match proof(config, &accepted.job).await? {
        None => faults.lost += 1,
        Some(now) if accepted.job == record.job && now.proof == record.proof => {}
        Some(_) => faults.differing += 1,
    }
    Ok(faults)
}

fn submission(
    circuits: &[EngineCircuit],
    circuit: usize,
    client: usize,
    request: usize,
) -> SubmitRequest {
    SubmitRequest {
        client: format!("client-{client}"),
        request_id: request.to_string(),
        partitions: vec![circuits[circuit].partition()],
        ..SubmitRequest::default()
    }
}

/// The proof of an accepted job; `None` if the engine does not know the job, or it ended without a proof.
async fn proof(config: &EngineConfig, job: &str) -> anyhow::Result<Option<Proof>> {
    let result =
        config.retry_until_answered(|engine| async move { engine.await_result(job).await });
    match result.await {
        Ok(result) if result.state() == JobState::Done => Ok(result.proofs.into_iter().next()),
        Ok(_) => Ok(None),
        Err(ClientError::Refused {
            code: Code::NotFound,
            ..
        }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
