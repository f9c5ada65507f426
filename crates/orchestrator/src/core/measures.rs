//! Numbers for monitoring, beyond those of [`Status`](super::Status).

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Numbers about a workflow for monitoring. They come from counts and indices: taking them does not visit every task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measures {
    /// Worker groups, by name.
    pub groups: Vec<GroupMeasure>,
    /// Tasks that no worker has, by stage and by reason, without zeros.
    pub waiting: Vec<WaitMeasure>,
    /// Stages that have live tasks, in the order of the workflow file.
    pub oldest: Vec<OldestMeasure>,
}

/// Workers of a group. Each counts in one state only, the first of these that applies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupMeasure {
    /// Name of the group.
    pub group: Arc<str>,
    /// Dispatcher stages that the group runs, in the order of the workflow file.
    pub stages: Vec<Arc<str>>,
    /// Workers whose user has sent a false result.
    pub distrusted: usize,
    /// Workers that take no new task because they end.
    pub leaving: usize,
    /// Workers that were not heard of for longer than a lease lasts.
    pub silent: usize,
    /// Workers that take no task because their machine lacks a resource, or because an operator drains them.
    pub paused: usize,
    /// Workers that have an assignment.
    pub working: usize,
    /// Workers that have none.
    pub idle: usize,
    /// Assignments that the group's workers take at once (F_max, summed), the first three states left out.
    pub slots: usize,
    /// Assignments that they have.
    pub slots_busy: usize,
}

/// Tasks of a stage that no worker has, and that wait for the same kind of event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitMeasure {
    /// Name of the stage.
    pub stage: Arc<str>,
    /// Kind of event: a [name](super::WaitReason::name) of a reason, `retry`, or `other`.
    pub reason: Cow<'static, str>,
    /// Number of tasks.
    pub tasks: usize,
}

/// The oldest work of a stage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OldestMeasure {
    /// Name of the stage.
    pub stage: Arc<str>,
    /// Lowest first block of a live task.
    pub lowest_block: u64,
    /// First block of the task that was accepted first.
    pub oldest_block: u64,
    /// Time since that task was accepted, milliseconds.
    pub oldest_age_ms: u64,
}

// === impl GroupMeasure ===

impl GroupMeasure {
    /// A group without workers.
    pub(super) fn new(group: Arc<str>, stages: Vec<Arc<str>>) -> Self {
        Self {
            group,
            stages,
            distrusted: 0,
            leaving: 0,
            silent: 0,
            paused: 0,
            working: 0,
            idle: 0,
            slots: 0,
            slots_busy: 0,
        }
    }

    /// Each state with its number of workers.
    pub fn states(&self) -> [(&'static str, usize); 6] {
        [
            ("idle", self.idle),
            ("working", self.working),
            ("paused", self.paused),
            ("silent", self.silent),
            ("leaving", self.leaving),
            ("distrusted", self.distrusted),
        ]
    }

    /// All workers of the group.
    pub fn workers(&self) -> usize {
        self.states().iter().map(|(_, count)| count).sum()
    }
}
