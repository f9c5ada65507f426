//! Checks of results before they count, in the coordinator's process.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use proofmill_bus::{BlobStore, with_sources};
use tokio::sync::mpsc;

use super::result_gate::{CheckId, Verdict};
use crate::conversation::WorkerResult;
use crate::executor::{ProverError, ResolveError, Resolved, failure_of_fetching, in_background};
use crate::payload::Encoding;
use crate::plan::StageIx;
use crate::record::TaskRecord;

/// Maximum number of results in one call of a check.
const BATCH_MAX: usize = 64;

/// Pause before results are checked again that could not be checked.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// A result that a worker has sent, and that does not count yet. Its messages, and the task's payload, may be
/// secret: `Debug` prints the task's identity only.
#[derive(Clone)]
pub struct UncheckedResult {
    /// The task, as recorded by the core.
    pub task: Arc<TaskRecord>,
    /// The task's payload, with the content of every blob.
    pub input: Resolved,
    /// The result's messages.
    pub outputs: Vec<(Encoding, Bytes)>,
}

impl fmt::Debug for UncheckedResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UncheckedResult")
            .field("task", &self.task.id)
            .field("outputs", &self.outputs.len())
            .finish_non_exhaustive()
    }
}

/// The check that the coordinator applies to the results of a stage with `check_results = true`. Register one
/// with [`Registry::checked_prover`](crate::mill::Registry::checked_prover).
///
/// A false result is a failed attempt; its worker, and every other one of the same user, gets no further task.
/// The check runs on a blocking thread, outside the async runtime.
pub trait ResultCheck: Send + Sync + 'static {
    /// Checks a batch of results: one verdict for each, in order. [`ProverError::Permanent`] means that a
    /// result is false, every other error that it could not be checked now.
    fn check_results(&self, results: &[UncheckedResult]) -> Vec<Result<(), ProverError>>;

    /// Loads, before there is a result, what the first check would wait for, such as keys. Called when a coordinator
    /// starts, on a blocking thread; checks may run meanwhile. What fails here fails again in a check, which reports
    /// it.
    fn prepare(&self) {}
}

/// The checks of a workflow's stages.
#[derive(Clone, Default)]
pub struct ResultChecks {
    stages: BTreeMap<StageIx, Arc<dyn ResultCheck>>,
}

/// A result to check.
pub(super) struct CheckJob {
    pub(super) id: CheckId,
    pub(super) stage: StageIx,
    pub(super) task: Arc<TaskRecord>,
    pub(super) result: WorkerResult,
}

/// Channels of the task that runs the checks.
pub(super) struct Checker {
    /// The stages whose results are checked.
    stages: BTreeSet<StageIx>,
    jobs: mpsc::UnboundedSender<CheckJob>,
    verdicts: mpsc::UnboundedReceiver<(CheckId, Verdict)>,
}

/// The work of the task behind a [`Checker`].
struct Checking {
    checks: ResultChecks,
    blobs: Arc<BlobStore>,
    verdicts: mpsc::UnboundedSender<(CheckId, Verdict)>,
}

// === impl ResultChecks ===

impl ResultChecks {
    /// Adds the check of a stage.
    pub fn insert(&mut self, stage: StageIx, check: Arc<dyn ResultCheck>) {
        self.stages.insert(stage, check);
    }
}

impl fmt::Debug for ResultChecks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.stages.keys()).finish()
    }
}

// === impl Checker ===

impl Checker {
    /// Starts the task that runs the checks, if there are any; it ends with this value.
    pub(super) fn start(checks: ResultChecks, blobs: Arc<BlobStore>) -> Option<Self> {
        if checks.stages.is_empty() {
            return None;
        }
        let stages = checks.stages.keys().copied().collect();
        for check in checks.stages.values() {
            let check = check.clone();
            tokio::spawn(in_background(move || check.prepare()));
        }
        let (jobs, waiting) = mpsc::unbounded_channel();
        let (sender, verdicts) = mpsc::unbounded_channel();
        let checking = Checking {
            checks,
            blobs,
            verdicts: sender,
        };
        tokio::spawn(checking.run(waiting));
        Some(Self {
            stages,
            jobs,
            verdicts,
        })
    }

    /// Whether results of this stage are checked.
    pub(super) fn has(&self, stage: StageIx) -> bool {
        self.stages.contains(&stage)
    }

    pub(super) fn begin(&self, job: CheckJob) {
        // The task ends only with this process's runtime.
        let _ = self.jobs.send(job);
    }

    pub(super) async fn verdict(&mut self) -> Option<(CheckId, Verdict)> {
        self.verdicts.recv().await
    }
}

// === impl Checking ===

impl Checking {
    async fn run(self, mut jobs: mpsc::UnboundedReceiver<CheckJob>) {
        let mut taken = Vec::new();
        while jobs.recv_many(&mut taken, BATCH_MAX).await > 0 {
            let mut by_stage: BTreeMap<StageIx, Vec<CheckJob>> = BTreeMap::new();
            for job in taken.drain(..) {
                by_stage.entry(job.stage).or_default().push(job);
            }
            for (stage, mut batch) in by_stage {
                while !batch.is_empty() && !self.verdicts.is_closed() {
                    batch = self.check(stage, batch).await;
                    if !batch.is_empty() {
                        tokio::time::sleep(RETRY_PAUSE).await;
                    }
                }
            }
        }
    }

    fn report(&self, job: &CheckJob, verdict: Verdict) {
        if let Verdict::False(why) = &verdict {
            let (worker, task) = (&job.result.worker, &job.task.id);
            let trace_id = job.task.trace.trace;
            tracing::error!(
                %worker, %task, %trace_id, why,
                "a worker has sent a false result; its user's workers get no further tasks"
            );
        }
        // The coordinator may have ended.
        let _ = self.verdicts.send((job.id, verdict));
    }

    /// Checks results of one stage. Returns those that could not be checked now.
    async fn check(&self, stage: StageIx, batch: Vec<CheckJob>) -> Vec<CheckJob> {
        let Some(check) = self.checks.stages.get(&stage).cloned() else {
            return Vec::new();
        };
        let fetched = join_all(batch.iter().map(|job| fetch(job, &self.blobs))).await;
        let (mut jobs, mut results, mut again) = (Vec::new(), Vec::new(), Vec::new());
        for (job, fetched) in batch.into_iter().zip(fetched) {
            match fetched {
                Ok(result) => {
                    jobs.push(job);
                    results.push(result);
                }
                Err(ProverError::Permanent(why)) => self.report(&job, Verdict::False(why)),
                Err(error) => again.push((job, error)),
            }
        }
        let verdicts = run_check(check, results).await;
        for (job, verdict) in jobs.into_iter().zip(verdicts) {
            match verdict {
                Ok(()) => self.report(&job, Verdict::Valid),
                Err(ProverError::Permanent(why)) => self.report(&job, Verdict::False(why)),
                Err(error) => again.push((job, error)),
            }
        }
        if let Some((job, error)) = again.first() {
            let (task, trace_id, count) = (&job.task.id, job.task.trace.trace, again.len());
            tracing::error!(
                %task, %trace_id, count, %error,
                "results cannot be checked now; they are checked again"
            );
        }
        again.into_iter().map(|(job, _)| job).collect()
    }
}

/// Runs a check on a blocking thread: one verdict for each result.
async fn run_check(
    check: Arc<dyn ResultCheck>,
    results: Vec<UncheckedResult>,
) -> Vec<Result<(), ProverError>> {
    let count = results.len();
    if count == 0 {
        return Vec::new();
    }
    let work = move || {
        let checked = proofmill_panics::catch(|| check.check_results(&results));
        // One of them makes the check panic: each is checked by itself, so that only that one is refused.
        checked.or_else(|panic| match count {
            1 => Err(panic),
            _ => Ok(results
                .iter()
                .map(|result| check_alone(&*check, result))
                .collect()),
        })
    };
    let failed = |error: ProverError| vec![Err(error); count];
    match tokio::task::spawn_blocking(work).await {
        Ok(Ok(verdicts)) if verdicts.len() == count => verdicts,
        Ok(Ok(verdicts)) => {
            let found = verdicts.len();
            let why = format!("the check returned {found} verdicts for {count} results");
            failed(ProverError::Retry(why))
        }
        Ok(Err(panic)) => failed(panicked(&panic)),
        Err(error) => failed(ProverError::Retry(format!(
            "the check's thread ended: {error}"
        ))),
    }
}

fn check_alone(check: &dyn ResultCheck, result: &UncheckedResult) -> Result<(), ProverError> {
    let result = std::slice::from_ref(result);
    let checked = proofmill_panics::catch(|| check.check_results(result));
    let verdicts = checked.map_err(|panic| panicked(&panic))?;
    let missing = || ProverError::Retry("the check returned no verdict".to_owned());
    verdicts
        .into_iter()
        .next()
        .unwrap_or_else(|| Err(missing()))
}

fn panicked(panic: &impl fmt::Display) -> ProverError {
    ProverError::Permanent(format!("its check panicked: {panic}"))
}

/// Fetches the blobs of a task and its result.
async fn fetch(job: &CheckJob, blobs: &BlobStore) -> Result<UncheckedResult, ProverError> {
    let input = Resolved::fetch(&job.task.payload, blobs).await;
    let input = input.map_err(|error| ProverError::Retry(with_sources(&error)))?;
    let mut outputs = Vec::with_capacity(job.result.outputs.len());
    for output in &job.result.outputs {
        match Resolved::fetch(&output.payload, blobs).await {
            Ok(Resolved::One(encoding, bytes)) => outputs.push((encoding, bytes)),
            Ok(Resolved::Group { .. }) => {
                let why = "it is a group, which only collectors make";
                return Err(ProverError::Permanent(why.to_owned()));
            }
            Err(error) => return Err(of_output(&error)),
        }
    }
    Ok(UncheckedResult {
        task: job.task.clone(),
        input,
        outputs,
    })
}

/// A result without its content is the worker's fault, a store that does not answer is not.
fn of_output(error: &ResolveError) -> ProverError {
    match failure_of_fetching(error) {
        Some(failure) => ProverError::Machine(failure),
        None => ProverError::Permanent(with_sources(error)),
    }
}
