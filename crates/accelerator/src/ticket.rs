//! Tickets: handles of jobs that are queued or running.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use crate::device::Outcome;
use crate::error::Error;

/// A job's claim on its outcome: poll it, await it, or [`wait`](Self::wait). A ticket that is dropped
/// cancels its job.
#[derive(Debug)]
pub struct Ticket {
    shared: Arc<Shared>,
}

/// The device's end of a ticket. Dropping it unanswered gives the ticket an error: the device stopped.
#[derive(Debug)]
pub struct Answer {
    shared: Arc<Shared>,
    device: String,
}

/// Whether a job should stop where it is.
#[derive(Clone, Debug)]
pub(crate) struct Cancellation(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    answered: Condvar,
    cancelled: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    outcome: Option<Result<Outcome, Error>>,
    is_answered: bool,
    /// The ticket of the same job on the device that a pool gave it to.
    inner: Option<Arc<Shared>>,
    waker: Option<Waker>,
}

/// A ticket of the device of that name, and the end that answers it.
pub fn ticket(device: &str) -> (Ticket, Answer) {
    let shared = Arc::new(Shared::default());
    let answer = Answer {
        shared: Arc::clone(&shared),
        device: device.to_owned(),
    };
    (Ticket { shared }, answer)
}

// === impl Ticket ===

impl Ticket {
    /// Blocks this thread until the outcome is there.
    ///
    /// # Errors
    ///
    /// The job's error.
    pub fn wait(self) -> Result<Outcome, Error> {
        let mut state = self.shared.lock();
        loop {
            if let Some(outcome) = state.take() {
                return outcome;
            }
            state = self
                .shared
                .answered
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The outcome; `None` if the job has not finished, or the outcome was already taken.
    pub fn try_take(&mut self) -> Option<Result<Outcome, Error>> {
        self.shared.lock().outcome.take()
    }

    /// Asks the device to stop. The outcome is then [`Error::Cancelled`], unless the job had already
    /// finished.
    pub fn cancel(&self) {
        self.shared.cancel();
    }
}

impl Future for Ticket {
    type Output = Result<Outcome, Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.shared.lock();
        match state.take() {
            Some(outcome) => Poll::Ready(outcome),
            None => {
                state.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.cancel();
    }
}

// === impl Answer ===

impl Answer {
    /// A handle with which the job can check whether it was cancelled.
    pub(crate) fn cancellation(&self) -> Cancellation {
        Cancellation(Arc::clone(&self.shared))
    }

    /// Forwards a cancellation of this job's ticket to `inner`.
    pub(crate) fn forward_cancellation(&self, inner: &Ticket) {
        self.shared.lock().inner = Some(Arc::clone(&inner.shared));
        if self.shared.cancelled.load(Ordering::Relaxed) {
            inner.cancel();
        }
    }

    /// Whether the ticket was dropped or cancelled, so that the outcome is no longer wanted.
    pub fn is_cancelled(&self) -> bool {
        self.cancellation().check().is_err()
    }

    /// Answers the ticket with the job's outcome.
    pub fn complete(self, outcome: Result<Outcome, Error>) {
        self.shared.answer(outcome);
    }
}

/// A job whose answer is dropped has lost its device.
impl Drop for Answer {
    fn drop(&mut self) {
        self.shared.answer(Err(Error::Failed {
            device: std::mem::take(&mut self.device),
            reason: "it stopped before the job was done".into(),
        }));
    }
}

// === impl Cancellation ===

impl Cancellation {
    /// Fails with [`Error::Cancelled`] if the job was cancelled.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.0.cancelled.load(Ordering::Relaxed) {
            Err(Error::Cancelled)
        } else {
            Ok(())
        }
    }
}

// === impl State ===

impl State {
    /// Takes the outcome; `None` if the job has not ended yet.
    fn take(&mut self) -> Option<Result<Outcome, Error>> {
        let taken = || Err(Error::BadJob("its outcome was taken before".into()));
        self.is_answered
            .then(|| self.outcome.take().unwrap_or_else(taken))
    }
}

// === impl Shared ===

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
        let inner = self.lock().inner.clone();
        if let Some(inner) = inner {
            inner.cancel();
        }
    }

    /// The first answer counts.
    fn answer(&self, outcome: Result<Outcome, Error>) {
        let mut state = self.lock();
        if state.is_answered {
            return;
        }
        state.is_answered = true;
        state.outcome = Some(outcome);
        let waker = state.waker.take();
        drop(state);
        self.answered.notify_all();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}
