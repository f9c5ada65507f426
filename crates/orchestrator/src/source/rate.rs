//! Rate limit: messages at even intervals.

use std::time::Duration;

use tokio::time::Instant;

/// Spaces messages `interval` apart. A source that was delayed does not catch up in a burst.
#[derive(Debug)]
pub struct Pace {
    interval: Duration,
    next: Instant,
}

// === impl Pace ===

impl Pace {
    /// One message per `interval`, the first at once.
    pub fn new(interval: Duration) -> Self {
        Self {
            interval,
            next: Instant::now(),
        }
    }

    /// Waits until the next message may be sent.
    pub async fn turn(&mut self) {
        tokio::time::sleep_until(self.next).await;
        self.next = self.next.max(Instant::now() - self.interval) + self.interval;
    }
}
