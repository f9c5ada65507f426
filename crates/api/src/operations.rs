//! The operations on an open mill.

use std::sync::Arc;

use bytes::Bytes;
use proofmill_bus::{BlobStore, with_sources};
use proofmill_orchestrator::bundle::{self, BuildOptions, BundleError, LETTERS_MAX};
use proofmill_orchestrator::conversation::{DeadRow, QueueRow, Reply, Target, TaskSelection};
use proofmill_orchestrator::coordinator::CoordinatorGone;
use proofmill_orchestrator::core::{Status, TaskPhase};
use proofmill_orchestrator::executor::Resolved;
use proofmill_orchestrator::id::TaskId;
use proofmill_orchestrator::payload::Encoding;
use proofmill_orchestrator::plan::Plan;
use proofmill_orchestrator::port::{OperatorPort, SourcePort};
use proofmill_orchestrator::record::{Attempt, DeadRecord};
use proofmill_workflow::{SourceKind, Workflow};

use crate::audit::AuditLog;
use crate::engine::WatchedEngine;
use crate::over_bus::{LedWorkflow, WorkerSummary};
use crate::submissions::Submissions;
use crate::types::{
    BundleQuery, Cancellation, DeadLetter, DeadSummary, Dropped, FailedAttempt, Gap, QueueStatus,
    Submission, SubmitAnswer, TaskSummary, TasksQuery,
};

/// Most bytes of a dead letter's payload that are shown.
const SHOWN_PAYLOAD_BYTES_MAX: usize = 64 * 1024;

/// Most engines that are watched.
const ENGINES_MAX: usize = 64;

/// Number of tasks listed when no limit is given.
const LISTED_TASKS_DEFAULT: usize = 1000;

/// The reason that an operation was not carried out.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum OperationError {
    /// The object of the request does not exist.
    #[error("{0}")]
    NotFound(String),
    /// The request is invalid.
    #[error("{0}")]
    Invalid(String),
    /// The request contradicts what is recorded.
    #[error("{0}")]
    Conflict(String),
    /// The request cannot be carried out now.
    #[error("{0}")]
    Unavailable(String),
}

/// The operations on one open mill.
#[derive(Clone)]
pub struct Operations {
    port: OperatorPort,
    submissions: Submissions,
    blobs: Arc<BlobStore>,
    audit: Option<AuditLog>,
    workflow: Option<Arc<Workflow>>,
    engines: Arc<[Arc<WatchedEngine>]>,
}

// === impl Operations ===

impl Operations {
    /// The operations on a mill: `operator` is its port for operations, `source` its port for submissions.
    pub fn new(operator: OperatorPort, source: SourcePort, blobs: Arc<BlobStore>) -> Self {
        Self {
            port: operator,
            submissions: Submissions::new(source, blobs.clone()),
            blobs,
            audit: None,
            workflow: None,
            engines: Arc::default(),
        }
    }

    /// The same operations, and bundles of the workflow's dead letters.
    #[must_use]
    pub fn with_workflow(self, workflow: Arc<Workflow>) -> Self {
        Self {
            workflow: Some(workflow),
            ..self
        }
    }

    /// The same operations, with an audit log of the changes that [`Operations::act`] makes.
    #[must_use]
    pub fn with_audit(self, audit: AuditLog) -> Self {
        Self {
            audit: Some(audit),
            ..self
        }
    }

    /// The same operations, with the engines that the mill's stages use, for its console. Engines beyond the first
    /// 64 are left out.
    #[must_use]
    pub fn with_engines(self, engines: Vec<WatchedEngine>) -> Self {
        let engines = engines.into_iter().take(ENGINES_MAX).map(Arc::new);
        Self {
            engines: engines.collect(),
            ..self
        }
    }

    pub(crate) fn engines(&self) -> &[Arc<WatchedEngine>] {
        &self.engines
    }

    pub(crate) fn audit(&self) -> Option<&AuditLog> {
        self.audit.as_ref()
    }

    /// The current state of the mill.
    pub async fn status(&self) -> Result<Status, OperationError> {
        Ok(self.port.status().await?)
    }

    /// Whether a source's position is the next block that it brings. That of a file of messages is its number of lines.
    pub(crate) fn counts_blocks(&self, source: &str) -> bool {
        let sources = self.workflow.iter().flat_map(|workflow| &workflow.sources);
        let mut own = sources.filter(|it| it.name == source);
        own.all(|it| !matches!(it.kind, SourceKind::Jsonl { .. }))
    }

    /// A summary of the workflow with up to `named_max` of its workers by name. `leader` is the name of this process.
    pub(crate) async fn led_workflow(
        &self,
        leader: String,
        named_max: usize,
    ) -> Result<LedWorkflow, OperationError> {
        let status = self.port.status().await?;
        let workers = self.port.workers(None, named_max).await?;
        let named = workers.rows.iter().map(|worker| WorkerSummary {
            worker: worker.worker.to_string(),
            group: worker.group.to_string(),
            tasks: worker.leases,
        });
        Ok(LedWorkflow {
            workflow: status.workflow.to_string(),
            leader,
            live: status.live,
            dead: status.dead,
            next_block: status.next_block,
            worker_count: status.workers,
            workers: named.collect(),
            collectors: status
                .hosts
                .iter()
                .map(|host| host.host.to_string())
                .collect(),
        })
    }

    /// The current state of each queue.
    pub async fn queues(&self) -> Result<Vec<QueueStatus>, OperationError> {
        let plan = self.port.plan();
        let rows = self.port.queues().await?;
        let status = |row: QueueRow| {
            let queue = plan.queue(plan.queue_named(&row.queue)?);
            let readers = queue.readers.iter();
            Some(QueueStatus {
                queue: row.queue.to_string(),
                readers: readers.map(|ix| plan.stage(*ix).name.to_string()).collect(),
                waiting: row.waiting,
                leased: row.leased,
                held: row.held,
                dead: row.dead,
                lowest: row.lowest,
                q_max: queue.q_max,
            })
        };
        Ok(rows.into_iter().filter_map(status).collect())
    }

    /// The live tasks that `query` selects.
    pub async fn tasks(&self, query: TasksQuery) -> Result<Vec<TaskSummary>, OperationError> {
        let limit = query.limit.unwrap_or(LISTED_TASKS_DEFAULT);
        let selection = TaskSelection {
            stage: query.stage.map(Arc::from),
            block: query.block,
            phase: None,
        };
        let rows = self.port.tasks_up_to(selection, limit).await?.into_iter();
        let summaries = rows.map(|row| TaskSummary {
            task: row.task.to_string(),
            last: row.last,
            queue: row.queue.to_string(),
            phase: phase_name(&row.phase).to_owned(),
            worker: row.worker.map(|worker| worker.to_string()),
            failed_attempts: row.failed_attempts,
            payload_bytes: row.payload_bytes,
            at_ms: row.at_ms,
        });
        Ok(summaries.collect())
    }

    /// The dead letters.
    pub async fn dead_letters(&self) -> Result<Vec<DeadSummary>, OperationError> {
        let rows = self.port.all_dead_letters().await?.into_iter();
        Ok(rows.map(summary_of).collect())
    }

    /// The first dead letters, at most `limit` of them.
    pub(crate) async fn first_dead_letters(
        &self,
        limit: usize,
    ) -> Result<Vec<DeadSummary>, OperationError> {
        let rows = self.port.dead_letters(None, limit).await?.rows.into_iter();
        Ok(rows.map(summary_of).collect())
    }

    /// A dead letter in full.
    pub async fn dead_letter(&self, task: &str) -> Result<DeadLetter, OperationError> {
        let id = parse_task_id(task)?;
        let dead = self.port.dead_letter(id).await?;
        let dead = dead.ok_or_else(|| no_such_letter(task))?;
        let payload_bytes = dead.task.payload.len();
        let (payload, payload_is_json) =
            match Resolved::fetch(&dead.task.payload, &self.blobs).await {
                Ok(resolved) => payload_text(&resolved),
                Err(error) => (format!("({error})"), false),
            };
        Ok(DeadLetter {
            summary: dead_summary(&dead),
            queue: dead.task.queue.to_string(),
            last: dead.task.last,
            attempts: dead.attempts.iter().map(failed_attempt).collect(),
            payload,
            payload_is_json,
            payload_bytes,
        })
    }

    /// A bundle of dead letters, as a file: their inputs, their attempts, and the settings of their stages.
    pub async fn bundle(&self, wanted: &BundleQuery) -> Result<Bytes, OperationError> {
        let workflow = self.workflow.as_ref();
        let workflow = workflow.ok_or_else(|| {
            OperationError::Unavailable("this process does not know the workflow file".to_owned())
        })?;
        let ids: Vec<TaskId> = match wanted.task.as_deref() {
            Some(task) => vec![parse_task_id(task)?],
            None => {
                // One more than fits is refused with the number of letters.
                let page = self.port.dead_letters(None, LETTERS_MAX).await?;
                if page.next.is_some() {
                    let dead = self.port.status().await?.dead;
                    return Err(OperationError::Invalid(format!(
                        "{dead} dead letters, over the limit of {LETTERS_MAX} for one bundle: name single tasks"
                    )));
                }
                page.rows.into_iter().map(|row| row.task).collect()
            }
        };
        let mut letters = Vec::with_capacity(ids.len());
        for id in ids {
            match (self.port.dead_letter(id.clone()).await?, &wanted.task) {
                (Some(letter), _) => letters.push(letter),
                (None, Some(task)) => return Err(no_such_letter(task)),
                // Retried or dropped meanwhile.
                (None, None) => {}
            }
        }
        let options = BuildOptions {
            with_programs: wanted.with_programs,
        };
        let bundle = bundle::build(workflow, letters, &self.blobs, options).await;
        let file = bundle.and_then(|bundle| bundle.encode());
        file.map_err(|error| match error {
            BundleError::Empty => OperationError::NotFound(error.to_string()),
            error => OperationError::Invalid(with_sources(&error)),
        })
    }

    /// Puts a dead letter back into its queue, without its earlier attempts.
    pub async fn retry(&self, task: &str) -> Result<(), OperationError> {
        let reply = self.port.retry_dead(parse_task_id(task)?).await?;
        check_dead_reply(reply, task)
    }

    /// Drops a dead letter for good.
    pub async fn drop_dead(&self, task: &str) -> Result<Dropped, OperationError> {
        let id = parse_task_id(task)?;
        let gap = self.gap_without(&id).await?;
        check_dead_reply(self.port.drop_dead(id).await?, task)?;
        let task = task.to_owned();
        Ok(Dropped { task, gap })
    }

    /// The gap in front of the sequencer if this dead letter is dropped.
    async fn gap_without(&self, id: &TaskId) -> Result<Option<Gap>, OperationError> {
        let dead = self.port.dead_letter(id.clone()).await?;
        let next = self.port.status().await?.next_block;
        let dead = dead.filter(|dead| !dead.late);
        Ok(dead
            .zip(next)
            .and_then(|(dead, next)| gap_at(self.port.plan(), &dead, next)))
    }

    /// The port that the operations go through.
    pub(crate) fn port(&self) -> &OperatorPort {
        &self.port
    }

    /// Stops live tasks in any phase and moves them to the dead-letter queue. Programs that work on them
    /// are killed.
    pub async fn cancel(&self, cancellation: &Cancellation) -> Result<(), OperationError> {
        let target = match cancellation {
            Cancellation::Task(task) => Target::Task(parse_task_id(task)?),
            Cancellation::Block(block) => Target::Block(*block),
            Cancellation::All => Target::All,
        };
        let reply = self.port.cancel(target).await?;
        match (reply, cancellation) {
            (Reply::NotFound, Cancellation::Task(task)) => Err(OperationError::NotFound(format!(
                "no live task {task}; `proofmill tasks` lists the live tasks"
            ))),
            (Reply::NotFound, Cancellation::Block(block)) => {
                Err(OperationError::NotFound(format!(
                    "no live task is about block {block}; `proofmill tasks` lists the live tasks"
                )))
            }
            _ => Ok(()),
        }
    }

    /// Submits a message; waits while its queue is full.
    pub async fn submit(&self, submission: Submission) -> Result<SubmitAnswer, OperationError> {
        self.submissions.submit(submission).await
    }
}

pub(crate) fn parse_task_id(task: &str) -> Result<TaskId, OperationError> {
    task.parse()
        .map_err(|error| OperationError::Invalid(format!("{error}")))
}

fn no_such_letter(task: &str) -> OperationError {
    OperationError::NotFound(format!(
        "no dead letter {task}; `proofmill dlq list` lists the dead letters"
    ))
}

fn check_dead_reply(reply: Reply, task: &str) -> Result<(), OperationError> {
    match reply {
        Reply::NotFound => Err(no_such_letter(task)),
        Reply::Draining => Err(OperationError::Unavailable("the mill drains".to_owned())),
        Reply::Invalid { why } => Err(OperationError::Conflict(why)),
        _ => Ok(()),
    }
}

/// The gap in front of the sequencer, which emits block `next` next, if the dead letter is dropped.
fn gap_at(plan: &Plan, dead: &DeadRecord, next: u64) -> Option<Gap> {
    let id = &dead.task.id;
    let stage = plan.stage_named(&id.stage)?;
    let (sequencer, _) = plan.sequencer()?;
    let last = dead.task.last;
    if !plan.leads_to_sequencer()[stage.0] || last < next {
        return None;
    }
    let read = plan.stage(sequencer).inputs.first()?;
    Some(Gap {
        first: id.block.max(next),
        last,
        queue: dead.task.queue.to_string(),
        sequencer_queue: plan.queue(*read).name.to_string(),
    })
}

pub(crate) fn phase_name(phase: &TaskPhase) -> &'static str {
    match phase {
        TaskPhase::Waiting => "waiting",
        TaskPhase::Delayed => "delayed",
        TaskPhase::Leased => "leased",
        TaskPhase::Held => "held",
        TaskPhase::Queued => "queued",
        TaskPhase::Recording => "recording",
    }
}

fn summary_of(row: DeadRow) -> DeadSummary {
    DeadSummary {
        task: row.task.to_string(),
        reason: row.reason,
        attempts: row.attempts,
        at_ms: row.at_ms,
    }
}

fn dead_summary(dead: &DeadRecord) -> DeadSummary {
    DeadSummary {
        task: dead.task.id.to_string(),
        reason: dead.reason.clone(),
        attempts: dead.attempts.len(),
        at_ms: dead.at_ms,
    }
}

pub(crate) fn failed_attempt(attempt: &Attempt) -> FailedAttempt {
    let failure = &attempt.failure;
    FailedAttempt {
        number: attempt.number,
        worker: attempt.worker.to_string(),
        at_ms: attempt.at_ms,
        reason: failure.reason.clone(),
        permanent: failure.permanent,
        exit: failure.exit,
        stdout: failure.stdout.clone(),
        stderr: failure.stderr.clone(),
        wall_ms: failure.wall_ms,
    }
}

fn payload_text(payload: &Resolved) -> (String, bool) {
    let (is_json, bytes) = match payload {
        Resolved::One(Encoding::Binary, bytes) => (false, bytes.clone()),
        json => match json.to_program_input() {
            Ok(bytes) => (true, bytes),
            Err(why) => return (format!("({why})"), false),
        },
    };
    let shown = &bytes[..bytes.len().min(SHOWN_PAYLOAD_BYTES_MAX)];
    if is_json {
        (String::from_utf8_lossy(shown).into_owned(), true)
    } else {
        (hex::encode(shown), false)
    }
}

impl From<CoordinatorGone> for OperationError {
    fn from(gone: CoordinatorGone) -> Self {
        Self::Unavailable(gone.to_string())
    }
}
