//! Time limits on request bodies, which are shorter while other requests wait.

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::BoxError;
use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::{Instant, Sleep};

/// Longest silence of a body while other requests wait. A body may also take this time in addition to that of its length
/// at [`BYTES_PER_SECOND_MIN`].
const SILENCE_MAX: Duration = Duration::from_secs(5);

/// Lowest average rate of a body while other requests wait, in bytes per second.
const BYTES_PER_SECOND_MIN: u64 = 64 << 10;

/// Interval between two checks for waiting requests.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Time for which a caller that was told to try again counts as waiting.
const REFUSED_CALLER_TIME: Duration = Duration::from_secs(2);

/// Tells whether requests wait for a resource that other requests hold: a connection, a permit or memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pressure(Arc<PressureState>);

#[derive(Debug, Default)]
struct PressureState {
    waiting: AtomicUsize,
    refused: Mutex<Option<Instant>>,
}

/// A guard for one waiting request.
pub(crate) struct Waiting(Pressure);

/// The time limit of one body.
pub(crate) struct BodyTimeout {
    began: Instant,
    last: Instant,
    received: u64,
    /// Time limit while no other request waits.
    time_max: Duration,
    pressure: Pressure,
    tick: Pin<Box<Sleep>>,
}

/// A body that fails when it takes too long.
pub(crate) struct TimedBody<B> {
    body: B,
    timeout: BodyTimeout,
}

/// The error of a body that took too long.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the body did not come in time")]
pub(crate) struct BodyTimedOut;

// === impl Pressure ===

impl Pressure {
    /// Counts a waiting request until the guard is dropped.
    pub(crate) fn wait(&self) -> Waiting {
        self.0.waiting.fetch_add(1, Ordering::Relaxed);
        Waiting(self.clone())
    }

    /// Records that a caller was told to try again.
    pub(crate) fn refused(&self) {
        *self.last_refusal() = Some(Instant::now());
    }

    fn is_high(&self) -> bool {
        self.0.waiting.load(Ordering::Relaxed) > 0
            || self
                .last_refusal()
                .is_some_and(|at| at.elapsed() < REFUSED_CALLER_TIME)
    }

    fn last_refusal(&self) -> std::sync::MutexGuard<'_, Option<Instant>> {
        // No code panics while the lock is held.
        let refused = self.0.refused.lock();
        refused.unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

// === impl BodyTimeout ===

impl BodyTimeout {
    pub(crate) fn new(time_max: Duration, pressure: Pressure) -> Self {
        let now = Instant::now();
        Self {
            began: now,
            last: now,
            received: 0,
            time_max,
            pressure,
            tick: Box::pin(tokio::time::sleep(CHECK_INTERVAL.min(time_max))),
        }
    }

    /// Records that bytes have come.
    pub(crate) fn received(&mut self, bytes: usize) {
        if bytes > 0 {
            self.last = Instant::now();
            self.received += bytes as u64;
        }
    }

    /// Excludes time in which the reader did not ask for more.
    pub(crate) fn pause(&mut self, time: Duration) {
        self.began += time;
        self.last += time;
    }

    /// Ready when the body has taken too long.
    pub(crate) fn poll_late(&mut self, context: &mut Context<'_>) -> Poll<()> {
        loop {
            ready!(self.tick.as_mut().poll(context));
            let now = Instant::now();
            if self.is_late(now) {
                return Poll::Ready(());
            }
            let end = self.began + self.time_max;
            self.tick.as_mut().reset(end.min(now + CHECK_INTERVAL));
        }
    }

    fn is_late(&self, now: Instant) -> bool {
        let taken = now - self.began;
        let time_at_lowest_rate =
            SILENCE_MAX + Duration::from_secs(self.received / BYTES_PER_SECOND_MIN);
        taken >= self.time_max
            || self.pressure.is_high()
                && (now - self.last >= SILENCE_MAX || taken >= time_at_lowest_rate)
    }
}

// === impl TimedBody ===

impl<B> TimedBody<B> {
    pub(crate) fn new(body: B, timeout: BodyTimeout) -> Self {
        Self { body, timeout }
    }
}

impl<B> Body for TimedBody<B>
where
    B: Body<Data = Bytes, Error: Into<BoxError>> + Unpin,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match Pin::new(&mut self.body).poll_frame(context) {
            Poll::Ready(Some(Ok(frame))) => {
                let bytes = frame.data_ref().map_or(0, Bytes::len);
                self.timeout.received(bytes);
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(Some(Err(error))) => Poll::Ready(Some(Err(error.into()))),
            Poll::Ready(None) => Poll::Ready(None),
            Poll::Pending => {
                let late = self.timeout.poll_late(context);
                late.map(|()| Some(Err(BodyTimedOut.into())))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);

    async fn late(timeout: &mut BodyTimeout) -> Duration {
        let began = timeout.began;
        poll_fn(|context| timeout.poll_late(context)).await;
        began.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_has_the_full_time_unless_others_wait() {
        let pressure = Pressure::default();
        let mut alone = BodyTimeout::new(PATIENCE, pressure.clone());
        assert_eq!(late(&mut alone).await, PATIENCE);

        let waiting = pressure.wait();
        let mut silent = BodyTimeout::new(PATIENCE, pressure.clone());
        // A burst at the beginning does not pay for later silence.
        silent.received(10 << 20);
        assert_eq!(late(&mut silent).await, SILENCE_MAX);
        drop(waiting);
        let mut alone = BodyTimeout::new(PATIENCE, pressure.clone());
        assert_eq!(late(&mut alone).await, PATIENCE);

        pressure.refused();
        let mut soon = BodyTimeout::new(PATIENCE, pressure.clone());
        // A refused caller no longer counts by the time of the check.
        assert_eq!(late(&mut soon).await, PATIENCE);
    }

    #[tokio::test(start_paused = true)]
    async fn time_in_which_the_reader_does_not_read_is_excluded() {
        let mut timeout = BodyTimeout::new(PATIENCE, Pressure::default());
        tokio::time::advance(2 * PATIENCE).await;
        timeout.pause(2 * PATIENCE);
        assert_eq!(late(&mut timeout).await, PATIENCE);
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_body_fails_while_others_wait_and_a_steady_one_does_not() {
        for (bytes, end) in [(1, SILENCE_MAX), (BYTES_PER_SECOND_MIN as usize, PATIENCE)] {
            let pressure = Pressure::default();
            let _waiting = pressure.wait();
            let mut timeout = BodyTimeout::new(PATIENCE, pressure);
            let began = timeout.began;
            let is_late = poll_fn(|context| {
                timeout.received(bytes);
                timeout.poll_late(context)
            });
            // The body is polled once a second, and brings that much each time.
            is_late.await;
            assert_eq!(began.elapsed(), end, "{bytes} bytes a second");
        }
    }
}
