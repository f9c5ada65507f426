//! A source of Bitcoin block headers, in chunks.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use proofmill_bitcoin::{HEADER_BYTES, Header, mainnet_headers, parse_headers};
use proofmill_files::open_regular_or_inherited;
use proofmill_orchestrator::conversation::Uniqueness;
use proofmill_orchestrator::id::Part;
use proofmill_orchestrator::payload::Encoding;
use proofmill_orchestrator::role_counts::SourceCounts;
use proofmill_orchestrator::source::{Source, SourceItem, SourceMessage};

/// Chunks of consecutive headers; a message's payload is its headers, 80 bytes each. The position
/// is the height of the next header.
pub(super) struct Headers {
    headers: Vec<Header>,
    start: u64,
    chunk: usize,
    next: u64,
}

// === impl Headers ===

impl Headers {
    /// Opens a file of headers, or the built-in chain. `start` is the height of the first header, `end` the last height
    /// to take.
    pub(super) fn open(
        file: Option<&Path>,
        start: u64,
        end: Option<u64>,
        chunk: u32,
    ) -> Result<Box<dyn Source>, String> {
        let mut headers = match file {
            Some(file) => {
                let shown = file.display();
                let mut bytes = Vec::new();
                open_regular_or_inherited(file)
                    .and_then(|mut file| file.read_to_end(&mut bytes))
                    .map_err(|error| format!("{shown}: {error}"))?;
                parse_headers(&bytes).map_err(|error| format!("{shown}: {error}"))?
            }
            None => mainnet_headers(),
        };
        if let Some(end) = end {
            let count = end.saturating_sub(start).saturating_add(1);
            headers.truncate(usize::try_from(count).unwrap_or(usize::MAX));
        }
        let chunk = usize::try_from(chunk).unwrap_or(usize::MAX).max(1);
        Ok(Box::new(Self {
            headers,
            start,
            chunk,
            next: start,
        }))
    }
}

impl Source for Headers {
    fn seek(&mut self, position: u64) -> Result<(), String> {
        self.next = self.next.max(position);
        Ok(())
    }

    fn watch(&mut self, counts: Arc<SourceCounts>) {
        let after = self.start.saturating_add(self.headers.len() as u64);
        if let Some(head) = after.checked_sub(1) {
            counts.note_head(head);
        }
    }

    fn next(&mut self) -> BoxFuture<'_, Option<Result<SourceItem, String>>> {
        let index = usize::try_from(self.next - self.start).unwrap_or(usize::MAX);
        let Some(rest) = self.headers.get(index..).filter(|rest| !rest.is_empty()) else {
            return Box::pin(std::future::ready(None));
        };
        let chunk = &rest[..rest.len().min(self.chunk)];
        let first = self.next;
        self.next += chunk.len() as u64;
        let mut bytes = Vec::with_capacity(chunk.len() * HEADER_BYTES);
        chunk
            .iter()
            .for_each(|header| bytes.extend_from_slice(header.as_bytes()));
        let message = SourceMessage {
            first,
            last: self.next - 1,
            part: Part::whole(),
            encoding: Encoding::Binary,
            bytes: bytes.into(),
            needs: None,
            uniqueness: Uniqueness::Multiple,
            next: self.next,
            caller: None,
        };
        Box::pin(std::future::ready(Some(Ok(SourceItem::Message(message)))))
    }
}
