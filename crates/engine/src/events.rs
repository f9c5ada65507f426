//! The broadcast channel of engine events, and its clock.

use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use tokio::sync::broadcast;

use crate::interface::{Event, EventKind};
use crate::traces::JobTraces;

/// Number of events that are buffered for slow subscribers, which miss older ones.
const EVENTS_BUFFERED: usize = 1 << 14;

/// Sends events to all subscribers, and makes spans of them. Clones share the channel.
#[derive(Clone, Debug)]
pub(crate) struct Events {
    epoch: Instant,
    started_ms: u64,
    sender: Arc<broadcast::Sender<Event>>,
    traces: Arc<JobTraces>,
}

// === impl Events ===

impl Events {
    pub(crate) fn new() -> Self {
        Self {
            epoch: Instant::now(),
            started_ms: unix_ms(SystemTime::now()),
            sender: Arc::new(broadcast::channel(EVENTS_BUFFERED).0),
            traces: Arc::default(),
        }
    }

    pub(crate) fn send(&self, kind: EventKind) {
        let at_us = self.now();
        let event = Event { at_us, kind };
        self.traces.observe(&event);
        // An error only means that there is no subscriber.
        let _ = self.sender.send(event);
    }

    /// The traces of jobs.
    pub(crate) fn traces(&self) -> &JobTraces {
        &self.traces
    }

    pub(crate) fn subscribe(&self) -> broadcast::Receiver<Event> {
        self.sender.subscribe()
    }

    /// Microseconds since the service began.
    pub(crate) fn now(&self) -> u64 {
        u64::try_from(self.epoch.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    /// Time at which the service began, in milliseconds since 1970.
    pub(crate) fn started_ms(&self) -> u64 {
        self.started_ms
    }
}

/// Milliseconds since 1970; 0 for earlier times.
pub(crate) fn unix_ms(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
