//! A pace: so many messages in a period, evenly spread.

use std::time::Duration;

use tokio::time::Instant;

/// Spaces messages `interval` apart. A source that was held up does not catch up in a burst.
#[derive(Debug)]
pub struct Pace {
    interval: Duration,
    next: Instant,
}

// === impl Pace ===

impl Pace {
    /// One message each `interval`, the first at once.
    pub fn new(interval: Duration) -> Self {
        Self {
            interval,
            next: Instant::now(),
        }
    }

    /// Waits for the turn of the next message.
    pub async fn turn(&mut self) {
        tokio::time::sleep_until(self.next).await;
        self.next = self.next.max(Instant::now() - self.interval) + self.interval;
    }
}
