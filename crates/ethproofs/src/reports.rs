//! The queue between those who prove blocks and the reporter's thread.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use tokio::sync::mpsc;

use crate::call::Step;
use crate::numbers::Numbers;
use crate::reporter::DropReason;

/// Most events that wait for the thread; further ones are given up. A slow disk fills it, not a slow site.
const INBOX_MAX: usize = 16_384;

/// Most bytes of emitted messages among them.
const INBOX_BYTES_MAX: u64 = 256 << 20;

/// Most blocks of a message that is submitted for several blocks at once.
const SPAN_MAX: u64 = 1_024;

/// A message that was emitted.
#[derive(Clone, Debug)]
pub struct Emission {
    /// First block.
    pub first: u64,
    /// Last block, inclusive.
    pub last: u64,
    /// Time of the last result, milliseconds since 1970-01-01 UTC.
    pub proved_ms: u64,
    /// The message.
    pub message: Bytes,
}

/// A message of one block that was emitted before this process began.
#[derive(Clone, Debug)]
pub struct EarlierEmission {
    /// Block.
    pub block: u64,
    /// Time at which proving began. Times are milliseconds since 1970-01-01 UTC.
    pub begun_ms: u64,
    /// Time of the last result.
    pub proved_ms: u64,
    /// Files that may have the message; the first that exists does.
    pub files: Vec<PathBuf>,
}

/// Takes events for a reporter. Never waits; cheap to clone.
#[derive(Clone, Debug)]
pub struct Reports {
    inbox: mpsc::Sender<Message>,
    bytes: Arc<AtomicU64>,
    numbers: Arc<Numbers>,
}

/// The receiving end, for the thread.
#[derive(Debug)]
pub(crate) struct Inbox {
    messages: mpsc::Receiver<Message>,
    bytes: Arc<AtomicU64>,
}

/// A message for the thread.
#[derive(Debug)]
pub(crate) enum Message {
    Accepted(u64, u64),
    Begun(u64, u64),
    Emitted(Emission),
    Earlier(EarlierEmission),
    Lost(u64),
}

// === impl Reports ===

impl Reports {
    /// An empty queue.
    pub(crate) fn open(numbers: Arc<Numbers>) -> (Self, Inbox) {
        let (inbox, messages) = mpsc::channel(INBOX_MAX);
        let bytes = Arc::<AtomicU64>::default();
        let reports = Self {
            inbox,
            bytes: bytes.clone(),
            numbers,
        };
        (reports, Inbox { messages, bytes })
    }

    /// Tells that blocks were accepted at `at_ms` (milliseconds since 1970-01-01 UTC).
    pub fn accepted(&self, (first, last): (u64, u64), at_ms: u64) {
        for block in span(first, last) {
            self.send(Step::Queued, Message::Accepted(block, at_ms));
        }
    }

    /// Tells that a worker was given the first task of these blocks.
    pub fn begun(&self, (first, last): (u64, u64), at_ms: u64) {
        for block in span(first, last) {
            self.send(Step::Proving, Message::Begun(block, at_ms));
        }
    }

    /// Tells that a message was emitted.
    pub fn emitted(&self, emission: Emission) {
        if emission.first != emission.last {
            self.numbers.count_drop(Step::Proved, DropReason::Span);
            return;
        }
        let size = emission.message.len() as u64;
        let before = self.bytes.fetch_add(size, Ordering::Relaxed);
        let is_full = before.saturating_add(size) > INBOX_BYTES_MAX;
        if is_full || !self.send(Step::Proved, Message::Emitted(emission)) {
            self.bytes.fetch_sub(size, Ordering::Relaxed);
            if is_full {
                self.numbers.count_drop(Step::Proved, DropReason::Full);
            }
        }
    }

    /// Tells that a block was emitted before this process began. It is reported if the process that emitted it could not keep
    /// its proof.
    pub fn emitted_before(&self, emission: EarlierEmission) {
        self.send(Step::Proved, Message::Earlier(emission));
    }

    /// Tells that the message of an emitted block cannot be fetched.
    pub fn lost(&self, block: u64) {
        self.send(Step::Proved, Message::Lost(block));
    }

    /// The numbers of the reporter.
    pub fn numbers(&self) -> &Arc<Numbers> {
        &self.numbers
    }

    fn send(&self, step: Step, message: Message) -> bool {
        let is_sent = self.inbox.try_send(message).is_ok();
        if !is_sent {
            self.numbers.count_drop(step, DropReason::Full);
        }
        is_sent
    }
}

fn span(first: u64, last: u64) -> impl Iterator<Item = u64> {
    let end = last.min(first.saturating_add(SPAN_MAX - 1));
    first..=end
}

// === impl Inbox ===

impl Inbox {
    /// Waits for messages, and adds at most `most` of them to `turn`. Returns their number; 0 if there will be none. May be
    /// cancelled.
    pub(crate) async fn take(&mut self, turn: &mut Vec<Message>, most: usize) -> usize {
        let before = turn.len();
        let count = self.messages.recv_many(turn, most).await;
        let emitted = turn[before..].iter().map(|message| match message {
            Message::Emitted(emission) => emission.message.len() as u64,
            _ => 0,
        });
        self.bytes.fetch_sub(emitted.sum(), Ordering::Relaxed);
        count
    }

    /// Takes no further messages; those that came are still there.
    pub(crate) fn close(&mut self) {
        self.messages.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn emission(block: u64, bytes: usize) -> Emission {
        Emission {
            first: block,
            last: block,
            proved_ms: 1,
            message: vec![0; bytes].into(),
        }
    }

    #[tokio::test]
    async fn a_thread_that_does_not_follow_costs_bounded_memory() {
        let numbers: Arc<Numbers> = Arc::default();
        let (reports, mut inbox) = Reports::open(numbers.clone());
        let dropped = |step| {
            let dropped = numbers.look().dropped;
            dropped.get(&(step, DropReason::Full)).copied().unwrap_or(0)
        };
        let half = (INBOX_BYTES_MAX / 2) as usize;
        for block in 0..3 {
            reports.emitted(emission(block, half));
        }
        assert_eq!(dropped(Step::Proved), 1);
        let mut turn = Vec::new();
        assert_eq!(inbox.take(&mut turn, 1).await, 1);
        reports.emitted(emission(3, half));
        assert_eq!(dropped(Step::Proved), 1);
        for block in 0..INBOX_MAX as u64 {
            reports.accepted((block, block), 1);
        }
        assert_eq!(dropped(Step::Queued), 2);
        reports.emitted(emission(9, 0));
        assert_eq!(dropped(Step::Proved), 2);
    }

    #[test]
    fn spans_are_taken_apart_within_a_bound() {
        assert_eq!(span(3, 5).collect::<Vec<_>>(), [3, 4, 5]);
        assert_eq!(span(0, u64::MAX).count() as u64, SPAN_MAX);
        assert_eq!(span(u64::MAX, u64::MAX).count(), 1);
    }
}
