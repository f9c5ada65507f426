//! What can be asked of an open mill, and told to it.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use proofmill_bus::BlobStore;
use proofmill_orchestrator::conversation::{Edition, Reply};
use proofmill_orchestrator::coordinator::{CoordinatorGone, Handle};
use proofmill_orchestrator::core::{Core, Status, TaskPhase};
use proofmill_orchestrator::executor::Resolved;
use proofmill_orchestrator::id::TaskId;
use proofmill_orchestrator::payload::Encoding;
use proofmill_orchestrator::plan::{Plan, QueueIx};
use proofmill_orchestrator::record::{Attempt, DeadRecord};
use proofmill_orchestrator::source::{self, SourceMessage, SubmitError};

use crate::over_bus::{LedWorkflow, WorkerSummary};
use crate::types::{
    Cancellation, DeadLetter, DeadSummary, Dropped, FailedAttempt, Gap, QueueStatus, Submission,
    SubmitAnswer, TaskSummary, TasksQuery,
};

/// Bytes of a dead letter's payload that are shown.
const SHOWN_PAYLOAD: usize = 64 * 1024;

/// Tasks listed when no limit is given.
const LISTED_TASKS: usize = 1000;

/// Why an operation was not carried out.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum OperationError {
    /// What was asked for is not there.
    #[error("{0}")]
    NotFound(String),
    /// The request is wrong.
    #[error("{0}")]
    Invalid(String),
    /// The request contradicts what is recorded.
    #[error("{0}")]
    Conflict(String),
    /// Not now.
    #[error("{0}")]
    Unavailable(String),
}

/// The operations on one open mill.
#[derive(Clone)]
pub struct Operations {
    handle: Handle,
    blobs: Arc<BlobStore>,
}

// === impl Operations ===

impl Operations {
    /// The operations on the mill behind `handle`.
    pub fn new(handle: Handle, blobs: Arc<BlobStore>) -> Self {
        Self { handle, blobs }
    }

    /// The whole at this moment.
    pub async fn status(&self) -> Result<Status, OperationError> {
        Ok(self.handle.status().await?)
    }

    /// The workflow in a few words, as `leader` leads it, with up to `named_max` of its workers.
    pub(crate) async fn led_by(
        &self,
        leader: String,
        named_max: usize,
    ) -> Result<LedWorkflow, OperationError> {
        let (status, workers) = self
            .handle
            .inspect(|core| (core.status(), core.workers()))
            .await?;
        let named = workers.iter().take(named_max).map(|worker| WorkerSummary {
            worker: worker.worker.to_string(),
            group: worker.group.to_string(),
            tasks: worker.leases.len(),
        });
        Ok(LedWorkflow {
            workflow: status.workflow.to_string(),
            leader,
            live: status.live,
            dead: status.dead,
            next_block: status.next_block,
            worker_count: workers.len(),
            workers: named.collect(),
            collectors: status
                .hosts
                .iter()
                .map(|host| host.host.to_string())
                .collect(),
        })
    }

    /// Each queue at this moment.
    pub async fn queues(&self) -> Result<Vec<QueueStatus>, OperationError> {
        let queues = self.handle.inspect(|core| {
            let plan = core.plan().clone();
            let mut queues: BTreeMap<Arc<str>, QueueStatus> = BTreeMap::new();
            for queue in &plan.queues {
                let status = QueueStatus {
                    queue: queue.name.to_string(),
                    readers: queue
                        .readers
                        .iter()
                        .map(|ix| plan.stage(*ix).name.to_string())
                        .collect(),
                    waiting: 0,
                    leased: 0,
                    held: 0,
                    dead: 0,
                    lowest: None,
                    q_max: queue.q_max,
                };
                queues.insert(queue.name.clone(), status);
            }
            for task in core.tasks(|_| true) {
                let Some(queue) = queues.get_mut(&task.record.queue) else {
                    continue;
                };
                match task.phase {
                    TaskPhase::Leased => queue.leased += 1,
                    TaskPhase::Held => queue.held += 1,
                    TaskPhase::Waiting
                    | TaskPhase::Delayed
                    | TaskPhase::Queued
                    | TaskPhase::Recording => queue.waiting += 1,
                }
                let block = task.record.id.block;
                queue.lowest = Some(queue.lowest.map_or(block, |lowest| lowest.min(block)));
            }
            for dead in core.dead_letters() {
                if let Some(queue) = queues.get_mut(&dead.task.queue) {
                    queue.dead += 1;
                }
            }
            plan.queues
                .iter()
                .filter_map(|queue| queues.remove(&queue.name))
                .collect()
        });
        Ok(queues.await?)
    }

    /// Live tasks.
    pub async fn tasks(&self, query: TasksQuery) -> Result<Vec<TaskSummary>, OperationError> {
        let limit = query.limit.unwrap_or(LISTED_TASKS);
        let views = self
            .handle
            .inspect(move |core| {
                core.tasks(|task| {
                    query
                        .stage
                        .as_ref()
                        .is_none_or(|stage| **stage == *task.id.stage)
                        && query
                            .block
                            .is_none_or(|block| (task.id.block..=task.last).contains(&block))
                })
            })
            .await?;
        let summaries = views.into_iter().take(limit).map(|view| TaskSummary {
            task: view.record.id.to_string(),
            last: view.record.last,
            queue: view.record.queue.to_string(),
            phase: phase_name(&view.phase).to_owned(),
            worker: view.worker.map(|worker| worker.to_string()),
            failed_attempts: view.attempts.len(),
            payload_bytes: view.record.payload.len(),
            at_ms: view.record.at_ms,
        });
        Ok(summaries.collect())
    }

    /// The dead letters.
    pub async fn dead_letters(&self) -> Result<Vec<DeadSummary>, OperationError> {
        Ok(self
            .handle
            .inspect(|core| core.dead_letters().map(dead_summary).collect())
            .await?)
    }

    /// One dead letter with all that is known of it.
    pub async fn dead_letter(&self, task: &str) -> Result<DeadLetter, OperationError> {
        let id = parse(task)?;
        let dead = self
            .handle
            .inspect(move |core| core.dead_letter(&id).cloned())
            .await?;
        let dead = dead.ok_or_else(|| no_such_letter(task))?;
        let payload_bytes = dead.task.payload.len();
        let (payload, payload_is_json) =
            match Resolved::fetch(&dead.task.payload, &self.blobs).await {
                Ok(resolved) => show(&resolved),
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

    /// Puts a dead letter back into its queue, its attempts forgotten.
    pub async fn retry(&self, task: &str) -> Result<(), OperationError> {
        let reply = self.handle.retry_dead(parse(task)?).await?;
        settle_dead(reply, task)
    }

    /// Gives a dead letter up for good.
    pub async fn drop_dead(&self, task: &str) -> Result<Dropped, OperationError> {
        let id = parse(task)?;
        let of = id.clone();
        let gap = self.handle.inspect(move |core| gap_without(core, &of));
        let gap = gap.await?;
        settle_dead(self.handle.drop_dead(id).await?, task)?;
        let task = task.to_owned();
        Ok(Dropped { task, gap })
    }

    /// Stops live tasks, wherever they are, and moves them to the dead-letter queue: programs that
    /// work on them are killed.
    pub async fn cancel(&self, cancellation: &Cancellation) -> Result<(), OperationError> {
        let reply = match cancellation {
            Cancellation::Task(task) => self.handle.cancel_task(parse(task)?).await?,
            Cancellation::Block(block) => self.handle.cancel_block(*block).await?,
            Cancellation::All => self.handle.cancel_all().await?,
        };
        match (reply, cancellation) {
            (Reply::NotFound, Cancellation::Task(task)) => Err(OperationError::NotFound(format!(
                "no live task {task}; `proofmill tasks` shows those there are"
            ))),
            (Reply::NotFound, Cancellation::Block(block)) => {
                Err(OperationError::NotFound(format!(
                    "no live task is about block {block}; `proofmill tasks` shows those there are"
                )))
            }
            _ => Ok(()),
        }
    }

    /// Brings a message; waits while its queue is full.
    pub async fn submit(&self, submission: Submission) -> Result<SubmitAnswer, OperationError> {
        let queue = self.queue(&submission.queue)?;
        let payload = Bytes::copy_from_slice(submission.payload.get().as_bytes());
        let message = SourceMessage::of_json(
            (submission.first, submission.last),
            submission.part.as_deref(),
            payload,
            submission.requires,
        );
        let message = message.map_err(OperationError::Invalid)?;
        self.bring(queue, message).await
    }

    /// The way to the coordinator.
    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }

    /// The workflow.
    pub(crate) fn plan(&self) -> &Plan {
        self.handle.plan()
    }

    /// The queue of this name.
    pub(crate) fn queue(&self, name: &str) -> Result<QueueIx, OperationError> {
        let plan = self.handle.plan();
        plan.queue_named(name).ok_or_else(|| {
            let known: Vec<&str> = plan.queues.iter().map(|queue| &*queue.name).collect();
            OperationError::NotFound(format!(
                "no queue {name:?} in workflow {:?}; it has {}",
                plan.workflow,
                known.join(", ")
            ))
        })
    }

    /// As [`Operations::submit`].
    pub(crate) async fn bring(
        &self,
        queue: QueueIx,
        message: SourceMessage,
    ) -> Result<SubmitAnswer, OperationError> {
        // Whoever submits a block that was dropped wants it to be done after all.
        let message = SourceMessage {
            edition: Edition::Anew,
            ..message
        };
        let producer = "submit".into();
        let reply = source::submit(&self.handle, &self.blobs, &producer, queue, message);
        match reply.await.map_err(|error| not_recorded(&error))? {
            Reply::Accepted => Ok(SubmitAnswer::Accepted),
            Reply::Duplicate { same } => Ok(SubmitAnswer::Duplicate { same }),
            Reply::Rejected { why } => Ok(SubmitAnswer::Rejected { why }),
            Reply::IsDead { task, why } => Ok(SubmitAnswer::Dead {
                task: task.to_string(),
                why,
            }),
            Reply::Differs { task } => Err(OperationError::Conflict(format!(
                "task {task} is live and carries something else; wait for it, or use another part"
            ))),
            Reply::Invalid { why } => Err(OperationError::Invalid(why)),
            Reply::Draining => Err(OperationError::Unavailable(
                "the mill drains and takes nothing new; submit again when it runs".to_owned(),
            )),
            Reply::NotFound | Reply::Rewound { .. } => Err(OperationError::Unavailable(
                "taken back before it was recorded; submit again".to_owned(),
            )),
        }
    }
}

fn not_recorded(error: &SubmitError) -> OperationError {
    let cause = std::error::Error::source(error);
    let cause = cause.map_or_else(String::new, |cause| format!(": {cause}"));
    OperationError::Unavailable(format!("{error}{cause}"))
}

fn parse(task: &str) -> Result<TaskId, OperationError> {
    task.parse()
        .map_err(|error| OperationError::Invalid(format!("{error}")))
}

fn no_such_letter(task: &str) -> OperationError {
    OperationError::NotFound(format!(
        "no dead letter {task}; `proofmill dlq list` shows those there are"
    ))
}

fn settle_dead(reply: Reply, task: &str) -> Result<(), OperationError> {
    match reply {
        Reply::NotFound => Err(no_such_letter(task)),
        Reply::Draining => Err(OperationError::Unavailable("the mill drains".to_owned())),
        Reply::Invalid { why } => Err(OperationError::Conflict(why)),
        _ => Ok(()),
    }
}

/// What the sequencer waits for when a dead letter is gone.
fn gap_without(core: &Core, id: &TaskId) -> Option<Gap> {
    let plan = core.plan();
    let dead = core.dead_letter(id).filter(|dead| !dead.late)?;
    let stage = plan.stage_named(&id.stage)?;
    let (sequencer, _) = plan.sequencer()?;
    let next = core.status().next_block?;
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

pub(crate) fn dead_summary(dead: &DeadRecord) -> DeadSummary {
    DeadSummary {
        task: dead.task.id.to_string(),
        reason: dead.reason.clone(),
        attempts: dead.attempts.len(),
        at_ms: dead.at_ms,
    }
}

fn failed_attempt(attempt: &Attempt) -> FailedAttempt {
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

fn show(payload: &Resolved) -> (String, bool) {
    let (is_json, bytes) = match payload {
        Resolved::One(Encoding::Binary, bytes) => (false, bytes.clone()),
        json => match json.to_program_input() {
            Ok(bytes) => (true, bytes),
            Err(why) => return (format!("({why})"), false),
        },
    };
    let shown = &bytes[..bytes.len().min(SHOWN_PAYLOAD)];
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
