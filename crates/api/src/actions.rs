//! Changes that an operator asks for, in the console or on the command line. Each has an entry in the audit log, where the
//! mill has one.

use bytes::Bytes;
use proofmill_orchestrator::conversation::Reply;
use proofmill_orchestrator::record::PauseKind;
use serde::{Deserialize, Serialize};

use crate::audit::Actor;
use crate::operations::{OperationError, Operations};
use crate::types::{BundleQuery, Cancellation, DeadSummary, Gap};

/// Most dead letters that one action retries.
const RETRIED_MAX: usize = 10_000;

/// Most bytes of a filter.
const FILTER_BYTES_MAX: usize = 256;

/// A change that an operator asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case", deny_unknown_fields)]
pub enum Action {
    /// Puts a dead letter back into its queue, without its earlier attempts.
    Retry {
        /// The task's id, `STAGE/BLOCK/PART`.
        task: String,
    },
    /// Retries every dead letter that the filter selects.
    RetryAll {
        /// The filter.
        filter: DeadFilter,
    },
    /// Drops a dead letter for good.
    Drop {
        /// The task's id, `STAGE/BLOCK/PART`.
        task: String,
    },
    /// Has a task run that waits for its next attempt.
    RunNow {
        /// The task's id, `STAGE/BLOCK/PART`.
        task: String,
    },
    /// Stops live tasks and moves them to the dead-letter queue.
    Cancel {
        /// The tasks.
        target: Cancellation,
    },
    /// Pauses a stage or a source, or drains a worker.
    Pause {
        /// Kind of what is paused.
        kind: PauseKind,
        /// Its name.
        name: String,
    },
    /// Ends a pause.
    Resume {
        /// Kind of what is paused.
        kind: PauseKind,
        /// Its name.
        name: String,
    },
}

/// A selection of dead letters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeadFilter {
    /// Text in the task's id or in the reason, at most 256 bytes; all dead letters if it is empty.
    #[serde(default)]
    pub text: String,
}

/// The result of an action that was carried out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActionResult {
    /// The result, in words.
    pub done: String,
    /// The blocks for which the sequencer now waits, if a dead letter of theirs was dropped.
    pub gap: Option<Gap>,
}

// === impl DeadFilter ===

impl DeadFilter {
    fn matches(&self, letter: &DeadSummary) -> bool {
        letter.task.contains(&self.text) || letter.reason.contains(&self.text)
    }

    fn describe(&self) -> String {
        match &*self.text {
            "" => "all dead letters".to_owned(),
            text => format!("dead letters with {text:?}"),
        }
    }
}

// === impl Action ===

impl Action {
    /// Name of the action, and its object, in words.
    fn describe(&self) -> (&'static str, String) {
        match self {
            Self::Retry { task } => ("retry", task.clone()),
            Self::RetryAll { filter } => ("retry all", filter.describe()),
            Self::Drop { task } => ("drop", task.clone()),
            Self::RunNow { task } => ("run now", task.clone()),
            Self::Cancel { target } => ("cancel", tasks_of(target)),
            Self::Pause { kind, name } => (pause_verb(*kind), format!("{kind} {name}")),
            Self::Resume { kind, name } => ("resume", format!("{kind} {name}")),
        }
    }
}

/// Carries out work to its end, even if whoever waits for it goes away: an action is neither left half done nor without
/// its result in the audit log because a page was closed.
async fn to_the_end<T: Send + 'static>(
    work: impl Future<Output = Result<T, OperationError>> + Send + 'static,
) -> Result<T, OperationError> {
    let ended = tokio::spawn(work).await;
    ended.unwrap_or_else(|error| Err(OperationError::Unavailable(error.to_string())))
}

fn pause_verb(kind: PauseKind) -> &'static str {
    match kind {
        PauseKind::Stage | PauseKind::Source => "pause",
        PauseKind::Worker => "drain",
    }
}

fn tasks_of(target: &Cancellation) -> String {
    match target {
        Cancellation::Task(task) => format!("task {task}"),
        Cancellation::Block(block) => format!("the live tasks of block {block}"),
        Cancellation::All => "all live tasks".to_owned(),
    }
}

impl ActionResult {
    fn of(done: impl Into<String>) -> Self {
        Self {
            done: done.into(),
            gap: None,
        }
    }
}

// === impl Operations ===

impl Operations {
    /// Carries out an action, with an entry in the audit log.
    ///
    /// # Errors
    /// The action was not carried out; or its entry could not be written, and it was not begun.
    pub async fn act(&self, by: &Actor, action: &Action) -> Result<ActionResult, OperationError> {
        let (own, by, action) = (self.clone(), by.clone(), action.clone());
        to_the_end(async move {
            let carried_out = own.carry_out(&by, &action);
            own.audited(&by, action.describe(), carried_out, |result| {
                result.done.clone()
            })
            .await
        })
        .await
    }

    /// A bundle of dead letters for a client, with an entry in the audit log: bundles hold inputs, which may be witnesses.
    ///
    /// # Errors
    /// There is none; or its entry could not be written.
    pub async fn bundle_for(
        &self,
        by: &Actor,
        wanted: &BundleQuery,
    ) -> Result<Bytes, OperationError> {
        let mut target = wanted
            .task
            .as_deref()
            .unwrap_or("all dead letters")
            .to_owned();
        if wanted.with_programs {
            target.push_str(", with programs");
        }
        let (own, by, wanted) = (self.clone(), by.clone(), wanted.clone());
        to_the_end(async move {
            let bundled = own.bundle(&wanted);
            own.audited(&by, ("bundle", target), bundled, |bundle| {
                format!("a bundle of {} bytes", bundle.len())
            })
            .await
        })
        .await
    }

    /// Does something for a client, with an entry in the audit log before it and one after it.
    async fn audited<T>(
        &self,
        by: &Actor,
        (name, target): (&str, String),
        work: impl Future<Output = Result<T, OperationError>>,
        done: impl FnOnce(&T) -> String,
    ) -> Result<T, OperationError> {
        tracing::info!(who = %by.name, via = by.via, action = name, target, "an operator asks");
        let Some(audit) = self.audit() else {
            return work.await;
        };
        let begun = audit.begin(by, name, &target).await.map_err(|error| {
            OperationError::Unavailable(format!(
                "nothing was done, since the audit log cannot be written: {error}"
            ))
        })?;
        let result = work.await;
        let noted = match &result {
            Ok(result) => Ok(done(result)),
            Err(error) => Err(error.to_string()),
        };
        if let Err(error) = audit.end(begun, noted).await {
            tracing::warn!(%error, "the result of an action is not in the audit log");
        }
        result
    }

    async fn carry_out(&self, by: &Actor, action: &Action) -> Result<ActionResult, OperationError> {
        match action {
            Action::Retry { task } => {
                self.retry(task).await?;
                Ok(ActionResult::of(format!("{task} is back in its queue")))
            }
            Action::RetryAll { filter } => self.retry_all(filter).await,
            Action::Drop { task } => {
                let gap = self.drop_dead(task).await?.gap;
                let done = format!("{task} is dropped");
                Ok(ActionResult { done, gap })
            }
            Action::RunNow { task } => {
                self.run_now(task).await?;
                Ok(ActionResult::of(format!(
                    "{task} runs as soon as a worker is free"
                )))
            }
            Action::Cancel { target } => {
                self.cancel(target).await?;
                let tasks = tasks_of(target);
                Ok(ActionResult::of(format!(
                    "{tasks}: stopped, and in the dead-letter queue"
                )))
            }
            Action::Pause { kind, name } => {
                self.pause(*kind, name, &by.name).await?;
                Ok(ActionResult::of(match kind {
                    PauseKind::Stage => {
                        format!("stage {name} is paused; work that has begun goes on")
                    }
                    PauseKind::Source => format!("source {name} is paused"),
                    PauseKind::Worker => format!("worker {name} drains: it gets no further task"),
                }))
            }
            Action::Resume { kind, name } => {
                self.resume(*kind, name).await?;
                Ok(ActionResult::of(format!("{kind} {name} goes on")))
            }
        }
    }

    /// The dead letters that a filter selects.
    pub(crate) async fn dead_letters_matching(
        &self,
        filter: &DeadFilter,
    ) -> Result<Vec<DeadSummary>, OperationError> {
        if filter.text.len() > FILTER_BYTES_MAX {
            return Err(OperationError::Invalid(format!(
                "a filter has at most {FILTER_BYTES_MAX} bytes"
            )));
        }
        let mut letters = self.dead_letters().await?;
        letters.retain(|letter| filter.matches(letter));
        Ok(letters)
    }

    async fn retry_all(&self, filter: &DeadFilter) -> Result<ActionResult, OperationError> {
        let letters = self.dead_letters_matching(filter).await?;
        if letters.is_empty() {
            let what = filter.describe();
            return Err(OperationError::NotFound(format!("there are no {what}")));
        }
        let (mut retried, mut failed, mut first) = (0, 0, None);
        for letter in letters.iter().take(RETRIED_MAX) {
            match self.retry(&letter.task).await {
                Ok(()) => retried += 1,
                Err(error) => {
                    failed += 1;
                    first.get_or_insert(error);
                }
            }
        }
        let left = letters.len().saturating_sub(RETRIED_MAX);
        let mut done = match retried {
            1 => "1 dead letter is back in its queue".to_owned(),
            _ => format!("{retried} dead letters are back in their queues"),
        };
        match first {
            Some(error) if retried == 0 => return Err(error),
            Some(error) => done.push_str(&format!("; {failed} are not: {error}")),
            None => {}
        }
        if left > 0 {
            done.push_str(&format!("; {left} are left for another time"));
        }
        Ok(ActionResult::of(done))
    }

    async fn run_now(&self, task: &str) -> Result<(), OperationError> {
        let id = crate::operations::parse_task_id(task)?;
        match self.port().run_now(id).await? {
            Reply::NotFound => Err(OperationError::NotFound(format!(
                "no live task {task}; `proofmill tasks` lists the live tasks"
            ))),
            Reply::Invalid { why } => Err(OperationError::Conflict(why)),
            _ => Ok(()),
        }
    }

    async fn pause(&self, kind: PauseKind, name: &str, by: &str) -> Result<(), OperationError> {
        match self.port().pause(kind, name.into(), by.into()).await? {
            Reply::NotFound => Err(self.nothing_of_this_name(kind, name)),
            Reply::Invalid { why } => Err(OperationError::Conflict(why)),
            _ => Ok(()),
        }
    }

    async fn resume(&self, kind: PauseKind, name: &str) -> Result<(), OperationError> {
        match self.port().resume(kind, name.into()).await? {
            Reply::NotFound => Err(OperationError::NotFound(format!(
                "{kind} {name} is not paused"
            ))),
            Reply::Invalid { why } => Err(OperationError::Conflict(why)),
            _ => Ok(()),
        }
    }

    fn nothing_of_this_name(&self, kind: PauseKind, name: &str) -> OperationError {
        let plan = self.port().plan();
        let known: Vec<&str> = match kind {
            PauseKind::Stage => plan.stages.iter().map(|stage| &*stage.name).collect(),
            PauseKind::Source => plan.sources.iter().map(|source| &*source.name).collect(),
            PauseKind::Worker => {
                return OperationError::NotFound(format!("no worker {name} has joined"));
            }
        };
        let workflow = &plan.workflow;
        OperationError::NotFound(match known[..] {
            [] => format!("workflow {workflow} has no {kind}"),
            _ => format!(
                "no {kind} {name}; workflow {workflow} has {}",
                known.join(", ")
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_says_how_many_dead_letters_one_action_retries() {
        let page = include_str!("../../../web/console/actions.js");
        let line = page.lines().find(|line| line.contains("RETRIED_MAX ="));
        let digits = line.expect("a constant").chars();
        let digits: String = digits.filter(char::is_ascii_digit).collect();
        assert_eq!(digits, RETRIED_MAX.to_string());
    }
}
