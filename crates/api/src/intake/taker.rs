//! Submission of messages from outside, with limits on their number and their waiting time.

use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use proofmill_orchestrator::plan::QueueIx;
use proofmill_orchestrator::source::SourceMessage;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};

use crate::bodies::{BodyMemory, Room};
use crate::body_timeout::Pressure;
use crate::control::BODY_MAX;
use crate::refused::Refused;
use crate::submissions::Submissions;
use crate::types::SubmitAnswer;

/// Most messages without an answer. A message whose producer has disconnected still counts, since it keeps
/// its place at its queue.
const UNANSWERED_MAX: usize = 4096;

/// Most messages of one request or stream in progress.
pub(super) const AT_ONCE: usize = 64;

/// Number of requests of the largest size that fit into memory at a time.
const BODIES_AT_ONCE: usize = 4;

/// Submits messages of admitted callers, and answers in time.
pub(super) struct Taker {
    pub(super) submissions: Submissions,
    /// Longest time until a message has an answer.
    patience: Duration,
    /// Whether a duplicate with other content is refused.
    exact: bool,
    /// A permit for each message without an answer.
    waiting: Arc<Semaphore>,
    /// Memory for the bodies of requests.
    pub(super) bodies: BodyMemory,
}

/// The answer to a message: its status, and the outcome.
pub(super) type TakeResult = Result<(StatusCode, SubmitAnswer), Refused>;

// === impl Taker ===

impl Taker {
    pub(super) fn new(
        submissions: Submissions,
        patience: Duration,
        exact: bool,
        pressure: Pressure,
    ) -> Self {
        Self {
            submissions,
            patience,
            exact,
            waiting: Arc::new(Semaphore::new(UNANSWERED_MAX)),
            bodies: BodyMemory::new(BODY_MAX, BODIES_AT_ONCE, patience, pressure),
        }
    }

    /// Time limit of messages that come now.
    pub(super) fn until(&self) -> Instant {
        Instant::now() + self.patience
    }

    /// Takes one message for a queue, and waits until it is durable. If that takes too long an error is
    /// returned, but the message keeps its place and may be recorded later.
    pub(super) async fn take(
        &self,
        queue: QueueIx,
        message: SourceMessage,
        room: Room,
        until: Instant,
    ) -> TakeResult {
        if Instant::now() >= until {
            return Err(Refused::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "not taken: the messages before this one in the request took too long",
            ));
        }
        let permit = timeout_at(until, self.waiting.clone().acquire_owned()).await;
        let Ok(Ok(permit)) = permit else {
            return Err(self.late_answer().await);
        };
        let (submissions, exact) = (self.submissions.clone(), self.exact);
        let submitting = tokio::spawn(async move {
            let answer = submit_to_queue(&submissions, queue, message, exact).await;
            drop((permit, room));
            answer
        });
        match timeout_at(until, submitting).await {
            Ok(Ok(result)) => result,
            Ok(Err(error)) => Err(Refused::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                error.to_string(),
            )),
            Err(_) => Err(self.late_answer().await),
        }
    }

    /// The error for a message that has no answer in time.
    async fn late_answer(&self) -> Refused {
        let until = Instant::now() + Duration::from_secs(2);
        match timeout_at(until, self.submissions.status()).await {
            Ok(Ok(status)) if status.producers_waiting > 0 => Refused::new(
                StatusCode::TOO_MANY_REQUESTS,
                "the queue is full; sending the same message again is safe",
            ),
            _ => Refused::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "it is not known whether the message is recorded; sending the same message again \
                 is safe",
            ),
        }
    }
}

async fn submit_to_queue(
    submissions: &Submissions,
    queue: QueueIx,
    message: SourceMessage,
    exact: bool,
) -> TakeResult {
    let answer = submissions.submit_to_queue(queue, message).await?;
    let status = match &answer {
        SubmitAnswer::Accepted => StatusCode::CREATED,
        SubmitAnswer::Duplicate { same: Some(false) } if exact => {
            return Err(Refused::new(
                StatusCode::CONFLICT,
                "its blocks are finished, and their message carried something else: use another \
                 part, or another block",
            ));
        }
        SubmitAnswer::Duplicate { .. } => StatusCode::OK,
        SubmitAnswer::Rejected { .. } => StatusCode::UNPROCESSABLE_ENTITY,
        SubmitAnswer::Dead { .. } => StatusCode::CONFLICT,
    };
    Ok((status, answer))
}
