//! The reason why a live task does not move on, typed for programs and in words for people.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The reason why a live task does not move on: the event that it waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitReason {
    /// A record about the task is being written to the log.
    Recording,
    /// Workers have the task.
    Running {
        /// The workers, in the order in which they were given it.
        workers: Vec<Arc<str>>,
        /// Results that have come.
        results: usize,
        /// Results that complete the task.
        required: usize,
    },
    /// An attempt has failed, and the next is not due yet.
    Backoff {
        /// Failed attempts.
        failed: usize,
        /// Time until the next attempt, milliseconds.
        left_ms: u64,
        /// Time of the next attempt, milliseconds since 1970-01-01 UTC.
        at_ms: u64,
        /// Reason of the last failure.
        last: String,
    },
    /// A collector's strategy has put the message off.
    PutOff {
        /// Time until it is offered again, milliseconds.
        left_ms: u64,
    },
    /// The group that the message belongs to is not complete.
    Group {
        /// Key of the group.
        key: Arc<str>,
        /// Messages of the group that have come.
        has: usize,
        /// The missing messages, as the strategy says it; `None` if it does not say.
        lacks: Option<String>,
    },
    /// A host has not sent its verdict about the message.
    Verdict,
    /// Blocks are emitted in order, and a lower one is next.
    LowerBlock {
        /// The next block to be emitted.
        next: u64,
        /// The state of that block.
        state: LowerBlock,
    },
    /// Some sinks have not confirmed the message.
    Sinks,
    /// The mill drains: it leases nothing more.
    Draining,
    /// After a restart, workers may still hold leases of before.
    Restarting {
        /// Time until all that are not heard of have lost them, milliseconds.
        left_ms: u64,
    },
    /// An operator has paused the stage.
    StagePaused {
        /// The stage.
        stage: Arc<str>,
        /// Name of the operator.
        by: Arc<str>,
        /// Time of the pause, milliseconds since 1970-01-01 UTC.
        at_ms: u64,
        /// Time since then, milliseconds.
        for_ms: u64,
    },
    /// A queue that the stage writes is full.
    QueueFull {
        /// The queue.
        queue: Arc<str>,
        /// Messages that the queue holds at most (Q_max).
        limit: usize,
    },
    /// No worker is free for it.
    Worker {
        /// The worker group that runs the stage.
        group: Arc<str>,
        /// The lack of a worker in that group.
        lack: WorkerLack,
    },
    /// A worker is free: the task is leased in a moment.
    Turn,
}

/// The state of the next block to be emitted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LowerBlock {
    /// One of its tasks is in the dead-letter queue: it moves when an operator retries or drops it.
    Dead {
        /// The task.
        task: Arc<str>,
    },
    /// It is in work.
    Live {
        /// The task that is furthest behind: that of the first stage in the workflow file.
        task: Arc<str>,
    },
    /// Nothing about it is known: no source has submitted it.
    NotSubmitted,
    /// Nothing about it is known, and an operator has paused a source.
    SourcePaused {
        /// The source.
        source: Arc<str>,
        /// Name of the operator.
        by: Arc<str>,
    },
}

/// The lack of a worker for a task in a group. Of several, the one that is likely to pass first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkerLack {
    /// The group has no worker.
    NoneJoined,
    /// No worker of the group has all labels that the task needs.
    Labels {
        /// Labels that the task needs and that no worker of the group has; all that it needs if each is there, but on no
        /// worker together.
        labels: Vec<String>,
        /// Workers of the group.
        workers: usize,
    },
    /// No worker with the labels offers the memory that the task needs.
    Memory {
        /// Bytes that it needs.
        needs: u64,
        /// Most bytes that a worker with its labels offers.
        most: u64,
    },
    /// All workers that may run it have as many assignments as they take.
    Busy {
        /// Workers that may run it.
        workers: usize,
    },
    /// The workers that may run it have paused.
    Paused {
        /// One of them.
        worker: Arc<str>,
        /// The resource that its machine lacks, as it says.
        reason: Arc<str>,
    },
    /// An operator has drained the workers that may run it.
    Drained {
        /// One of them.
        worker: Arc<str>,
        /// Name of the operator.
        by: Arc<str>,
    },
    /// The workers that may run it have not been heard of for longer than a lease lasts.
    Silent {
        /// The one that was heard of last.
        worker: Arc<str>,
        /// Time since then, milliseconds.
        for_ms: u64,
    },
    /// The workers that may run it are leaving.
    Leaving {
        /// Workers that could run it otherwise.
        workers: usize,
    },
    /// Each worker that could run it has failed it for good, or has it or a result of it already: the results must come from
    /// different workers.
    Excluded {
        /// One of them.
        worker: Arc<str>,
        /// Whether it failed the task for good.
        failed: bool,
    },
    /// The workers that could run it belong to users that have sent a false result.
    Distrusted {
        /// One of them.
        worker: Arc<str>,
    },
}

// === impl WaitReason ===

impl WaitReason {
    /// Name of the kind of event, for programs: of this reason, or of the lack of a worker.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Recording => "recording",
            Self::Running { .. } => "running",
            Self::Backoff { .. } => "backoff",
            Self::PutOff { .. } => "put_off",
            Self::Group { .. } => "group",
            Self::Verdict => "verdict",
            Self::LowerBlock { .. } => "lower_block",
            Self::Sinks => "sinks",
            Self::Draining => "draining",
            Self::Restarting { .. } => "restarting",
            Self::StagePaused { .. } => "stage_paused",
            Self::QueueFull { .. } => "queue_full",
            Self::Worker { lack, .. } => lack.name(),
            Self::Turn => "turn",
        }
    }
}

/// The event, to be read after "waits for".
impl fmt::Display for WaitReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Recording => f.write_str("its record in the log"),
            Self::Running {
                workers,
                results,
                required,
            } => {
                write!(f, "its result, from {}", workers.join(", "))?;
                match required {
                    0 | 1 => Ok(()),
                    _ => write!(f, "; {results} of {required} have come"),
                }
            }
            Self::Backoff {
                failed,
                left_ms,
                last,
                ..
            } => {
                let left = seconds(*left_ms);
                write!(
                    f,
                    "its next attempt, in {left}, after {failed} failed; the last: {last}"
                )
            }
            Self::PutOff { left_ms } => write!(f, "its turn, in {}", seconds(*left_ms)),
            Self::Group { key, has, lacks } => match lacks {
                Some(lacks) => write!(f, "the other messages of group {key:?}: {lacks}"),
                None => write!(f, "the other messages of group {key:?}, beside {has}"),
            },
            Self::Verdict => f.write_str("its collector's word"),
            Self::LowerBlock { next, state } => {
                write!(f, "block {next}, the next to be emitted: {state}")
            }
            Self::Sinks => f.write_str("the sinks, which have not all confirmed it"),
            Self::Draining => f.write_str("the mill to run on: it drains"),
            Self::Restarting { left_ms } => {
                let left = seconds(*left_ms);
                write!(f, "the workers of before the restart, for {left} at most")
            }
            Self::StagePaused {
                stage, by, for_ms, ..
            } => write!(
                f,
                "stage {stage:?} to be resumed: {by} paused it {} ago",
                seconds(*for_ms)
            ),
            Self::QueueFull { queue, limit } => {
                write!(f, "room in queue {queue:?}, which holds {limit} messages")
            }
            Self::Worker { group, lack } => lack.write(f, group),
            Self::Turn => f.write_str("its turn"),
        }
    }
}

impl fmt::Display for LowerBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dead { task } => write!(f, "{task} is in the dead-letter queue"),
            Self::Live { task } => write!(f, "{task} is not done"),
            Self::NotSubmitted => f.write_str("no source has submitted it"),
            Self::SourcePaused { source, by } => write!(
                f,
                "no source has submitted it, and {by} has paused source {source:?}"
            ),
        }
    }
}

// === impl WorkerLack ===

impl WorkerLack {
    fn name(&self) -> &'static str {
        match self {
            Self::NoneJoined => "none_joined",
            Self::Labels { .. } => "labels",
            Self::Memory { .. } => "memory",
            Self::Busy { .. } => "busy",
            Self::Paused { .. } => "paused",
            Self::Silent { .. } => "silent",
            Self::Leaving { .. } => "leaving",
            Self::Excluded { .. } => "excluded",
            Self::Distrusted { .. } => "distrusted",
            Self::Drained { .. } => "drained",
        }
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, group: &str) -> fmt::Result {
        match self {
            Self::NoneJoined => write!(f, "a worker of group {group:?}: none has joined"),
            Self::Labels { labels, workers } => write!(
                f,
                "a worker of group {group:?} with {}: none of {workers} has that",
                labels.join(" and ")
            ),
            Self::Memory { needs, most } => write!(
                f,
                "a worker of group {group:?} with {} of memory: the most that one offers is {}",
                gibibytes(*needs),
                gibibytes(*most)
            ),
            Self::Busy { workers } => {
                write!(
                    f,
                    "a free worker of group {group:?}: {workers} may run it, all busy"
                )
            }
            Self::Paused { worker, reason } => {
                write!(
                    f,
                    "worker {worker} of group {group:?}, which has paused: {reason}"
                )
            }
            Self::Drained { worker, by } => {
                write!(f, "another worker of group {group:?}: {by} drains {worker}")
            }
            Self::Silent { worker, for_ms } => write!(
                f,
                "worker {worker} of group {group:?}, last heard of {} ago",
                seconds(*for_ms)
            ),
            Self::Leaving { workers } => write!(
                f,
                "another worker of group {group:?}: the {workers} that could run it are leaving"
            ),
            Self::Excluded { worker, failed } => {
                write!(f, "another worker of group {group:?}: {worker} ")?;
                f.write_str(match failed {
                    true => "has failed it for good",
                    false => "has it or a result of it, and another is wanted",
                })
            }
            Self::Distrusted { worker } => write!(
                f,
                "another worker of group {group:?}: the user of {worker} has sent a false result"
            ),
        }
    }
}

fn seconds(ms: u64) -> String {
    format!("{:.1} s", ms as f64 / 1e3)
}

fn gibibytes(bytes: u64) -> String {
    format!("{:.1} GiB", bytes as f64 / (1 << 30) as f64)
}
