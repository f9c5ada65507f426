//! Cancellation of live tasks by an operator.

use super::{Core, OnAccepted};
use crate::conversation::{Reply, Target};
use crate::core::event::RequestId;
use crate::core::tasks::{Task, TaskNo};
use crate::record::TaskRecord;

/// Reason shown in the dead letter of a cancelled task.
const REASON: &str = "cancelled by an operator";

/// Maximum number of repeated searches. A task that completes while others are cancelled passes messages on,
/// which must be cancelled too.
const ROUNDS: u32 = 8;

impl Core {
    pub(super) fn cancel(&mut self, request: RequestId, target: Target) {
        self.cancel_round(request, target, false, ROUNDS);
    }

    /// Cancels the matching live tasks; once all pending appends have been answered, searches again for tasks
    /// that have followed from them.
    pub(super) fn cancel_round(
        &mut self,
        request: RequestId,
        target: Target,
        found: bool,
        rounds: u32,
    ) {
        let mut chosen: Vec<TaskNo> = match &target {
            Target::Task(id) => self.tasks.no_of(id).into_iter().collect(),
            _ => self.tasks.select(|task| target.matches(task.record())),
        };
        chosen.retain(|no| self.tasks.get(*no).is_some_and(Task::is_cancellable));
        for no in &chosen {
            let stage = self.tasks[*no].stage();
            self.counts.add(stage, |of| &mut of.cancelled);
            self.stop_task(*no, REASON);
        }
        let found = found || !chosen.is_empty();
        if rounds > 0 && !self.appends.is_empty() {
            let rounds = rounds - 1;
            let again = OnAccepted::Cancel {
                request,
                target,
                found,
                rounds,
            };
            self.append(Vec::new(), again);
            return;
        }
        let reply = if found {
            Reply::Accepted
        } else {
            Reply::NotFound
        };
        self.reply(request, self.applied, reply);
    }

    /// Moves a live task to the dead-letter queue, whichever phase it is in.
    pub(super) fn stop_task(&mut self, no: TaskNo, reason: &str) {
        let Some(task) = self.tasks.get(no) else {
            return;
        };
        let attempts = task.attempts().to_vec();
        self.forget_member(no);
        self.dead_letter_task(no, reason.to_owned(), attempts);
    }
}

// === impl Target ===

impl Target {
    fn matches(&self, task: &TaskRecord) -> bool {
        match self {
            Self::Task(id) => task.id == *id,
            Self::Block(block) => (task.id.block..=task.last).contains(block),
            Self::All => true,
        }
    }
}
