//! The port of sources, and of producers that submit messages.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::line::CoordinatorLink;
use crate::conversation::{Query, QueryAnswer, Reply, Request, Rewind, Submit};
use crate::coordinator::CoordinatorGone;
use crate::core::Status;
use crate::plan::{Plan, QueueIx};

/// The connection of a source to the coordinator; cheap to clone.
#[derive(Clone)]
pub struct SourcePort {
    link: CoordinatorLink,
    plan: Arc<Plan>,
}

// === impl SourcePort ===

impl SourcePort {
    pub(super) fn new(link: CoordinatorLink, plan: Arc<Plan>) -> Self {
        Self { link, plan }
    }

    /// The plan of the workflow.
    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// Submits a message. Returns once it is durable, or once it is known that there is nothing to
    /// record; waits while the queue is full (Q_max).
    pub async fn submit(&self, submit: Submit) -> Result<Reply, CoordinatorGone> {
        self.link.request(Request::Submit(submit)).await
    }

    /// As [`SourcePort::submit`], but returns as soon as the message is sent; messages of one
    /// caller are processed in order.
    pub async fn submit_later(
        &self,
        submit: Submit,
    ) -> Result<oneshot::Receiver<Reply>, CoordinatorGone> {
        self.link.request_later(Request::Submit(submit)).await
    }

    /// Withdraws a source's messages to `queues` about the blocks from `from` on: see [`Rewind`].
    pub async fn rewind(
        &self,
        source: &Arc<str>,
        queues: &[QueueIx],
        from: u64,
    ) -> Result<Reply, CoordinatorGone> {
        let rewind = Rewind {
            source: source.clone(),
            queues: queues.to_vec(),
            from,
        };
        self.link.request(Request::Rewind(rewind)).await
    }

    /// Position at which a source continues, as recorded by an earlier run; `None` if there is no
    /// record.
    pub async fn next_of(&self, source: &Arc<str>) -> Result<Option<u64>, CoordinatorGone> {
        match self.link.query(Query::SourceNext(source.clone())).await? {
            QueryAnswer::SourceNext(next) => Ok(next),
            _ => Err(CoordinatorGone),
        }
    }

    /// The status of the workflow at this moment, including whether it drains and whether producers
    /// wait.
    pub async fn status(&self) -> Result<Status, CoordinatorGone> {
        match self.link.query(Query::Status).await? {
            QueryAnswer::Status(status) => Ok(*status),
            _ => Err(CoordinatorGone),
        }
    }
}
