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

use super::circuits::{Ready, arguments};
use super::process::Site;
use crate::circom::folder;
use crate::groth16::Sized;
use crate::harness::{Common, Program, Report, StateDisk, Target, round};

/// Range of the time between two kills, in milliseconds.
const LIVES: std::ops::Range<u64> = 300..2500;

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
struct Known {
    circuit: usize,
    job: String,
    /// The proof it was given first.
    proof: Vec<u8>,
}

/// Counts of faults.
#[derive(Clone, Copy, Debug, Default)]
struct Wrong {
    /// Jobs accepted but unknown afterwards, or ended without proofs.
    lost: usize,
    /// Jobs with another result than before.
    differing: usize,
    /// Jobs with an invalid proof.
    invalid: usize,
}

/// Kills it and reports.
pub(crate) async fn run(args: &Args) -> anyhow::Result<()> {
    let disk = StateDisk::fresh(&args.common)?;
    let program = args.program.find()?.canonicalize()?;
    let folder = folder(&args.circuits)?;
    let circuits: Arc<[Ready]> = [
        (Curve::Bn254, Sized::Chain { constraints: 1_000 }),
        (Curve::Bls12_381, Sized::Chain { constraints: 4_000 }),
        (Curve::Bn254, Sized::Sha256 { blocks: 1 }),
    ]
    .into_iter()
    .map(|(curve, circuit)| Ready::of_ours(&folder, curve, circuit))
    .collect::<anyhow::Result<_>>()?;
    let mut serve: Vec<String> = ["--budget", "1GiB"].map(str::to_owned).into();
    serve.extend(arguments(&circuits));
    let site = Site::new(&program, &disk.state("engine"), serve);
    let mut process = site.start_with(circuits.len()).await?;

    let stop = Arc::new(AtomicBool::new(false));
    let mut clients = JoinSet::new();
    for number in 0..args.clients {
        let (site, circuits, stop) = (site.clone(), circuits.clone(), stop.clone());
        clients.spawn(async move { client(&site, &circuits, number, &stop).await });
    }
    let mut random = StdRng::seed_from_u64(args.seed);
    let began = Instant::now();
    for _ in 0..args.kills {
        tokio::time::sleep(Duration::from_millis(random.random_range(LIVES))).await;
        process.kill().await?;
        process = site.start()?;
    }
    stop.store(true, Ordering::Relaxed);
    let (mut known, mut wrong) = (BTreeMap::new(), Wrong::default());
    while let Some(ended) = clients.join_next().await {
        let (theirs, counted) = ended.context("a client panicked")??;
        known.extend(theirs);
        wrong = wrong.and(counted);
    }
    let took = began.elapsed();
    // Once more, when nothing is under way.
    process.kill().await?;
    let process = site.start()?;
    for ((client, request), before) in &known {
        wrong = wrong.and(again(&site, &circuits, *client, *request, before).await?);
    }
    process.kill().await?;

    let mut report = Report::new("Engine: killed at random moments under load", &disk);
    report.figure("killed", args.kills as f64, "times", Target::Open, "");
    report.figure("jobs accepted", known.len() as f64, "", Target::Open, "");
    report.figure("over", took.as_secs_f64(), "s", Target::Open, "");
    report.put("kills", args.kills);
    report.put("accepted", known.len());
    report.put("seconds", round(took.as_secs_f64()));
    report.must_be_zero("lost", "lost", wrong.lost);
    report.must_be_zero("differing", "with two results", wrong.differing);
    report.must_be_zero("invalid", "with an invalid proof", wrong.invalid);
    report.note(&format!(
        "{} clients, each with one request at a time; each result is requested three times: when \
         it is ready, at once again, and after the last restart",
        args.clients
    ));
    report.finish(&args.common)
}

// === impl Wrong ===

impl Wrong {
    fn and(self, other: Self) -> Self {
        Self {
            lost: self.lost + other.lost,
            differing: self.differing + other.differing,
            invalid: self.invalid + other.invalid,
        }
    }
}

/// Submits one request after the other and waits for each result, until it is told to stop.
async fn client(
    site: &Site,
    circuits: &[Ready],
    number: usize,
    stop: &AtomicBool,
) -> anyhow::Result<(Vec<((usize, usize), Known)>, Wrong)> {
    let (mut known, mut wrong) = (Vec::new(), Wrong::default());
    for request in 0.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let circuit = (number + request) % circuits.len();
        let submission = submission(circuits, circuit, number, request);
        let accepted = site.insist(|engine| {
            let submission = submission.clone();
            async move { engine.submit(submission).await }
        });
        let mut now = Known {
            circuit,
            job: accepted.await?.job,
            proof: Vec::new(),
        };
        match proof(site, &now.job).await? {
            None => wrong.lost += 1,
            Some(given) => {
                if circuits[circuit].check(&given).is_err() {
                    wrong.invalid += 1;
                }
                now.proof = given.proof;
                wrong = wrong.and(again(site, circuits, number, request, &now).await?);
            }
        }
        known.push(((number, request), now));
    }
    Ok((known, wrong))
}

/// Submits what was accepted once more, and compares the result.
async fn again(
    site: &Site,
    circuits: &[Ready],
    client: usize,
    request: usize,
    before: &Known,
) -> anyhow::Result<Wrong> {
    let mut wrong = Wrong::default();
    let submission = submission(circuits, before.circuit, client, request);
    let accepted = site.insist(|engine| {
        let submission = submission.clone();
        async move { engine.submit(submission).await }
    });
    let accepted = accepted.await?;
    if !accepted.existing {
        wrong.lost += 1;
    }
    match proof(site, &accepted.job).await? {
        None => wrong.lost += 1,
        Some(now) if accepted.job == before.job && now.proof == before.proof => {}
        Some(_) => wrong.differing += 1,
    }
    Ok(wrong)
}

fn submission(circuits: &[Ready], circuit: usize, client: usize, request: usize) -> SubmitRequest {
    SubmitRequest {
        client: format!("client-{client}"),
        request_id: request.to_string(),
        partitions: vec![circuits[circuit].partition()],
        ..SubmitRequest::default()
    }
}

/// The proof of an accepted job; `None` if the engine does not know the job, or it ended without a proof.
async fn proof(site: &Site, job: &str) -> anyhow::Result<Option<Proof>> {
    let result = site.insist(|engine| async move { engine.await_result(job).await });
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
