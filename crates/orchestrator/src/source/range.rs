//! A source that counts blocks.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;

use super::service::{Source, SourceItem, SourceMessage};
use crate::conversation::Uniqueness;
use crate::id::Part;
use crate::payload::Encoding;
use crate::role_counts::SourceCounts;

/// A source of the blocks `start ..= end`, `chunk` per message; the payload is made from each span.
pub struct Range<F> {
    next: u64,
    end: Option<u64>,
    chunk: u64,
    payload: F,
}

// === impl Range ===

impl<F> Range<F>
where
    F: Fn(u64, u64) -> Bytes + Send,
{
    /// Counts from `start` to `end` (without end if absent), with `chunk` (at least 1) blocks per
    /// message; `payload` makes the JSON payload of blocks `first ..= last`.
    pub fn new(start: u64, end: Option<u64>, chunk: u64, payload: F) -> Self {
        Self {
            next: start,
            end,
            chunk: chunk.max(1),
            payload,
        }
    }
}

impl<F> Source for Range<F>
where
    F: Fn(u64, u64) -> Bytes + Send,
{
    fn seek(&mut self, position: u64) -> Result<(), String> {
        self.next = self.next.max(position);
        Ok(())
    }

    fn watch(&mut self, counts: Arc<SourceCounts>) {
        if let Some(end) = self.end {
            counts.note_head(end);
        }
    }

    fn next(&mut self) -> BoxFuture<'_, Option<Result<SourceItem, String>>> {
        let first = self.next;
        if self.end.is_some_and(|end| first > end) {
            return Box::pin(std::future::ready(None));
        }
        let full = first.saturating_add(self.chunk - 1);
        let last = self.end.map_or(full, |end| full.min(end));
        self.next = last.saturating_add(1);
        let message = SourceMessage {
            first,
            last,
            part: Part::whole(),
            encoding: Encoding::Json,
            bytes: (self.payload)(first, last),
            needs: None,
            uniqueness: Uniqueness::Multiple,
            next: self.next,
            caller: None,
        };
        Box::pin(std::future::ready(Some(Ok(SourceItem::Message(message)))))
    }
}
