//! The port of operators.

use std::ops::RangeInclusive;
use std::sync::Arc;

use super::line::CoordinatorLink;
use crate::conversation::{
    DeadRow, Page, Query, QueryAnswer, QueueRow, Reply, Request, Target, TaskRow, TaskSelection,
    WorkerRow,
};
use crate::coordinator::CoordinatorGone;
use crate::core::{BlockSummary, BlockView, Measures, Status, StepsView};
use crate::id::{TaskId, WorkerId};
use crate::plan::Plan;
use crate::record::{DeadRecord, PauseKind};

/// The connection of an operator to the coordinator; cheap to clone.
#[derive(Clone)]
pub struct OperatorPort {
    link: CoordinatorLink,
    plan: Arc<Plan>,
}

/// Sends a query and unwraps the answer of its kind; a leader returns no other.
macro_rules! ask {
    ($port:expr, $query:expr, $answer:path) => {
        match $port.link.query($query).await? {
            $answer(answer) => Ok(answer),
            _ => Err(CoordinatorGone),
        }
    };
}

// === impl OperatorPort ===

impl OperatorPort {
    pub(super) fn new(link: CoordinatorLink, plan: Arc<Plan>) -> Self {
        Self { link, plan }
    }

    /// The plan of the workflow.
    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// Puts a dead letter back into its queue.
    pub async fn retry_dead(&self, task: TaskId) -> Result<Reply, CoordinatorGone> {
        self.link.request(Request::RetryDead(task)).await
    }

    /// Removes a dead letter for good.
    pub async fn drop_dead(&self, task: TaskId) -> Result<Reply, CoordinatorGone> {
        self.link.request(Request::DropDead(task)).await
    }

    /// Stops live tasks and moves them to the dead-letter queue; [`OperatorPort::retry_dead`]
    /// brings them back. Returns [`Reply::Accepted`] once that is durable, [`Reply::NotFound`] if
    /// there is no such live task.
    pub async fn cancel(&self, target: Target) -> Result<Reply, CoordinatorGone> {
        self.link.request(Request::Cancel(target)).await
    }

    /// Has a task run that waits for its next attempt. Returns [`Reply::Invalid`] if it does not.
    pub async fn run_now(&self, task: TaskId) -> Result<Reply, CoordinatorGone> {
        self.link.request(Request::RunNow(task)).await
    }

    /// Pauses a stage or a source, or drains a worker; `by` is the name that is shown with the pause.
    pub async fn pause(
        &self,
        kind: PauseKind,
        name: Arc<str>,
        by: Arc<str>,
    ) -> Result<Reply, CoordinatorGone> {
        self.link.request(Request::Pause { kind, name, by }).await
    }

    /// Ends a pause.
    pub async fn resume(&self, kind: PauseKind, name: Arc<str>) -> Result<Reply, CoordinatorGone> {
        self.link.request(Request::Resume { kind, name }).await
    }

    /// The status of the workflow at this moment.
    pub async fn status(&self) -> Result<Status, CoordinatorGone> {
        let status: Result<_, CoordinatorGone> = ask!(self, Query::Status, QueryAnswer::Status);
        status.map(|status| *status)
    }

    /// Numbers for monitoring.
    pub async fn measures(&self) -> Result<Measures, CoordinatorGone> {
        let measures: Result<_, CoordinatorGone> =
            ask!(self, Query::Measures, QueryAnswer::Measures);
        measures.map(|measures| *measures)
    }

    /// The queues, in the order of the plan.
    pub async fn queues(&self) -> Result<Vec<QueueRow>, CoordinatorGone> {
        ask!(self, Query::Queues, QueryAnswer::Queues)
    }

    /// Workers that have joined, in order of their names, starting after `after`; at most `limit`
    /// and [`PAGE_MAX`](crate::conversation::PAGE_MAX) of them.
    pub async fn workers(
        &self,
        after: Option<WorkerId>,
        limit: usize,
    ) -> Result<Page<WorkerRow, WorkerId>, CoordinatorGone> {
        let query = Query::Workers { after, limit };
        ask!(self, query, QueryAnswer::Workers)
    }

    /// Live tasks in order of stage, block and part, starting after `after`; at most `limit` and
    /// [`PAGE_MAX`](crate::conversation::PAGE_MAX) of them.
    pub async fn tasks(
        &self,
        of: TaskSelection,
        after: Option<TaskId>,
        limit: usize,
    ) -> Result<Page<TaskRow, TaskId>, CoordinatorGone> {
        let query = Query::Tasks { of, after, limit };
        ask!(self, query, QueryAnswer::Tasks)
    }

    /// Up to `limit` live tasks in order of stage, block and part. They are fetched page by page,
    /// so tasks may end and others appear between two pages.
    pub async fn tasks_up_to(
        &self,
        of: TaskSelection,
        limit: usize,
    ) -> Result<Vec<TaskRow>, CoordinatorGone> {
        let (mut rows, mut after) = (Vec::new(), None);
        loop {
            let page = self.tasks(of.clone(), after, limit - rows.len()).await?;
            rows.extend(page.rows);
            after = page.next;
            if after.is_none() || rows.len() >= limit {
                return Ok(rows);
            }
        }
    }

    /// Dead letters in order of stage, block and part, starting after `after`; at most `limit` and
    /// [`PAGE_MAX`](crate::conversation::PAGE_MAX) of them.
    pub async fn dead_letters(
        &self,
        after: Option<TaskId>,
        limit: usize,
    ) -> Result<Page<DeadRow, TaskId>, CoordinatorGone> {
        let query = Query::DeadLetters { after, limit };
        ask!(self, query, QueryAnswer::DeadLetters)
    }

    /// Every dead letter. They are fetched page by page, so letters may go and others appear
    /// between two pages.
    pub async fn all_dead_letters(&self) -> Result<Vec<DeadRow>, CoordinatorGone> {
        let (mut rows, mut after) = (Vec::new(), None);
        loop {
            let page = self.dead_letters(after, usize::MAX).await?;
            rows.extend(page.rows);
            after = page.next;
            if after.is_none() {
                return Ok(rows);
            }
        }
    }

    /// The dead letter of a task; `None` if there is none.
    pub async fn dead_letter(&self, task: TaskId) -> Result<Option<DeadRecord>, CoordinatorGone> {
        let letter: Result<_, CoordinatorGone> =
            ask!(self, Query::DeadLetter(task), QueryAnswer::DeadLetter);
        letter.map(|letter| letter.map(|letter| *letter))
    }

    /// The state of a block, with at most [`PAGE_MAX`](crate::conversation::PAGE_MAX) each of its
    /// live tasks, its dead letters and the latest entries of its history.
    pub async fn block(&self, block: u64) -> Result<BlockView, CoordinatorGone> {
        let view: Result<_, CoordinatorGone> = ask!(self, Query::Block(block), QueryAnswer::Block);
        view.map(|view| *view)
    }

    /// Steps of the lowest blocks in work, of a plan that cuts blocks into parts.
    pub async fn steps(&self) -> Result<StepsView, CoordinatorGone> {
        let steps: Result<_, CoordinatorGone> = ask!(self, Query::Steps, QueryAnswer::Steps);
        steps.map(|steps| *steps)
    }

    /// Summaries of the states of these blocks, at most [`BLOCKS_MAX`](crate::core::BLOCKS_MAX) of
    /// them.
    pub async fn blocks(
        &self,
        blocks: RangeInclusive<u64>,
    ) -> Result<Vec<BlockSummary>, CoordinatorGone> {
        let (first, last) = blocks.into_inner();
        ask!(self, Query::Blocks { first, last }, QueryAnswer::Blocks)
    }
}
