//! `proofmill engine job`, `wait` and `get`

use std::time::Duration;

use proofmill_api::engine::proto::{Job, JobResult, JobState, Priority, Proof};
use proofmill_api::engine::{Client, ClientError};
use serde_json::json;

use super::{bytes, connect, refused};
use crate::args::engine::{GetProof, JobArgs, WaitJob};
use crate::commands::inspect::ago;
use crate::failure::Failure;
use crate::files::FilePlan;
use crate::output;
use crate::progress::{counted, span};

pub(crate) async fn show(args: &JobArgs) -> Result<(), Failure> {
    let client = connect(&args.query.engine).await?;
    let job = look_up(&client, &args.job).await?;
    if args.query.json {
        return output::line(serde_json::to_string(&job)?);
    }
    for (name, value) in job_lines(&job) {
        output::line(output::plain(&format!("{name:<10} {value}")))?;
    }
    if !job.failure.is_empty() {
        output::line(output::plain(&format!("\n{}", job.failure)))?;
    }
    Ok(())
}

/// Labels and values that describe a job, without its failure.
fn job_lines(job: &Job) -> Vec<(&'static str, String)> {
    let mut lines = vec![
        ("job", job.id.clone()),
        ("request", format!("{}/{}", job.client, job.request_id)),
        ("state", JobState::short_name(job.state).to_owned()),
        ("priority", Priority::short_name(job.priority).to_owned()),
        ("circuits", job.circuits.join(", ")),
        (
            "proofs",
            format!(
                "{} of {}; {} under way, {} tried again",
                job.proven, job.partitions, job.running, job.retries
            ),
        ),
        ("accepted", ago(job.submitted_ms)),
    ];
    if let Some(from) = job.started_ms {
        let waited = Duration::from_millis(from.saturating_sub(job.submitted_ms));
        lines.push(("began", format!("{} later", span(waited))));
    }
    if let Some(to) = job.ended_ms {
        let from = job.started_ms.unwrap_or(job.submitted_ms);
        let took = Duration::from_millis(to.saturating_sub(from));
        lines.push(("took", span(took)));
    }
    if job.bytes > 0 {
        lines.push(("holds", bytes(job.bytes)));
    }
    lines
}

pub(crate) async fn wait(args: &WaitJob) -> Result<(), Failure> {
    let client = connect(&args.query.engine).await?;
    let ended = client.await_result(&args.job);
    let ended = match args.timeout {
        None => ended.await,
        Some(seconds) => {
            let limit = Duration::from_secs(seconds.into());
            tokio::time::timeout(limit, ended).await.map_err(|_| {
                Failure::new(format!("job {} has not ended after {seconds} s", args.job)).help(
                    format!("`proofmill engine job {}` shows its progress", args.job),
                )
            })?
        }
    };
    let result = ended.map_err(|error| connection_lost(&error, "wait", &args.job))?;
    if args.query.json {
        let job = look_up(&client, &args.job).await?;
        output::line(serde_json::to_string(&job)?)?;
        return require_done(&result);
    }
    require_done(&result)?;
    output::line(format!(
        "job {}: done, {}; `proofmill engine get {} -o PROOF` writes it",
        result.job,
        counted(result.proofs.len(), "proof"),
        result.job
    ))
}

pub(crate) async fn get(args: &GetProof) -> Result<(), Failure> {
    args.files.check(FilePlan::default())?;
    let key = args.files.key()?;
    let client = connect(&args.query.engine).await?;
    let job = look_up(&client, &args.job).await?;
    if matches!(job.state(), JobState::Queued | JobState::Running) {
        return Err(Failure::new(format!(
            "job {} is {}: {} of {} proven",
            job.id,
            JobState::short_name(job.state),
            job.proven,
            job.partitions
        ))
        .help(format!(
            "`proofmill engine wait {}` waits for its end",
            job.id
        )));
    }
    let result = client.await_result(&args.job).await;
    let proof = proof_of_partition(result.map_err(|error| refused(&error))?, args.partition)?;
    args.files.write(&proof, None, key.as_ref())?;
    if args.query.json {
        let summary = json!({
            "job": job.id,
            "circuit_id": proof.circuit_id,
            "curve": proof.curve,
            "public_signals": proof.public_inputs.len(),
        });
        return output::line(summary.to_string());
    }
    args.files.tell(&job.id)
}

async fn look_up(client: &Client, job: &str) -> Result<Job, Failure> {
    client.job(job).await.map_err(|error| refused(&error))
}

/// The failure for a connection lost while waiting for a job; `again` is the command that continues.
fn connection_lost(error: &ClientError, again: &str, job: &str) -> Failure {
    let failure = refused(error);
    match error {
        ClientError::Unreachable { .. } => failure.help(format!(
            "accepted jobs continue when the engine is started again; then run `proofmill engine \
             {again} {job}`"
        )),
        _ => failure,
    }
}

/// Fails unless a job is done.
fn require_done(result: &JobResult) -> Result<(), Failure> {
    let job = &result.job;
    match result.state() {
        JobState::Done => Ok(()),
        JobState::Failed => Err(Failure::new(format!(
            "job {job} failed: {}",
            result.failure
        ))),
        _ => {
            let state = JobState::short_name(result.state);
            Err(Failure::new(format!("job {job}: {state}")))
        }
    }
}

/// The proof of a job of one partition.
pub(super) fn one_proof(result: JobResult) -> Result<Proof, Failure> {
    proof_of_partition(result, Some(0))
}

/// The proof of a partition. `None` selects the only one, and is an error if there are several.
fn proof_of_partition(result: JobResult, partition: Option<usize>) -> Result<Proof, Failure> {
    require_done(&result)?;
    let (job, count) = (result.job, result.proofs.len());
    let number = match partition {
        Some(number) => number,
        None if count <= 1 => 0,
        None => {
            return Err(
                Failure::usage(format!("job {job} has {count} proofs")).help(format!(
                    "name one with --partition, from 0 to {}",
                    count - 1
                )),
            );
        }
    };
    let none = || {
        Failure::new(format!(
            "job {job} has {}, and no proof {number}",
            counted(count, "proof")
        ))
    };
    result.proofs.into_iter().nth(number).ok_or_else(none)
}
