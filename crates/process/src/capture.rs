//! Bounded capture of a stream: all of it is read, but only its head and tail are kept.

use std::fmt;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// Bytes read at once: a quarter of a pipe's usual capacity, so that a program that writes much is
/// not delayed and one that writes nothing costs little.
const CHUNK: usize = 16 << 10;

/// The captured part of a stream. `Display` shows it as text, with a mark where bytes were dropped
/// and `U+FFFD` for invalid UTF-8.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Captured {
    /// The first bytes of the stream.
    pub head: Bytes,
    /// The last bytes; empty if everything fits into the head.
    pub tail: Bytes,
    /// Bytes between head and tail that were not kept.
    pub dropped: u64,
}

/// A capture in progress.
#[derive(Debug)]
pub(super) struct Capture {
    head: Vec<u8>,
    tail: Vec<u8>,
    head_limit: usize,
    tail_limit: usize,
    dropped: u64,
}

// === impl Captured ===

impl Captured {
    /// Whether the program wrote nothing.
    pub fn is_empty(&self) -> bool {
        self.head.is_empty() && self.tail.is_empty() && self.dropped == 0
    }

    /// Number of bytes that the program wrote, kept or not.
    pub fn written(&self) -> u64 {
        (self.head.len() + self.tail.len()) as u64 + self.dropped
    }

    /// The last line that is not blank, as text of at most `limit` characters.
    pub(super) fn last_line(&self, limit: usize) -> Option<String> {
        let from = if self.tail.is_empty() {
            &self.head
        } else {
            &self.tail
        };
        // A line worth quoting is within the last few KiB; a stream without newlines is cut there.
        let from = &from[from.len().saturating_sub(4096)..];
        let text = String::from_utf8_lossy(from);
        let line = text
            .lines()
            .rev()
            .map(str::trim)
            .find(|line| !line.is_empty())?;
        let line: String = line
            .chars()
            .filter(|c| !c.is_control())
            .take(limit + 1)
            .collect();
        if line.chars().count() > limit {
            return Some(line.chars().take(limit).chain(['…']).collect());
        }
        Some(line)
    }
}

impl fmt::Display for Captured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.dropped == 0 {
            let all = [&self.head[..], &self.tail[..]].concat();
            return f.write_str(&String::from_utf8_lossy(&all));
        }
        f.write_str(&String::from_utf8_lossy(&self.head))?;
        write!(f, "\n[… {} bytes dropped …]\n", self.dropped)?;
        f.write_str(&String::from_utf8_lossy(&self.tail))
    }
}

// === impl Capture ===

impl Capture {
    /// A capture that keeps `limit` bytes.
    pub(super) fn new(limit: usize) -> Self {
        let head_limit = limit.div_ceil(2);
        Self {
            head: Vec::new(),
            tail: Vec::new(),
            head_limit,
            tail_limit: limit - head_limit,
            dropped: 0,
        }
    }

    /// Reads `stream` to its end. May be dropped and called again; nothing read is lost.
    pub(super) async fn drain(&mut self, mut stream: impl AsyncRead + Unpin) {
        let mut chunk = vec![0; CHUNK];
        loop {
            // Reading a pipe fails only if the descriptor itself is broken, so no more data can
            // arrive.
            match stream.read(&mut chunk).await {
                Ok(0) | Err(_) => return,
                Ok(read) => self.push(&chunk[..read]),
            }
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        let room = self.head_limit - self.head.len();
        let (head, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(head);
        self.tail.extend_from_slice(rest);
        // Trimmed only at twice the limit, so that each byte is moved about once at most.
        if self.tail.len().saturating_sub(CHUNK) >= self.tail_limit.saturating_mul(2) {
            self.trim();
        }
    }

    fn trim(&mut self) {
        let excess = self.tail.len().saturating_sub(self.tail_limit);
        self.tail.drain(..excess);
        self.dropped += excess as u64;
    }

    /// Ends the capture.
    pub(super) fn finish(mut self) -> Captured {
        self.trim();
        Captured {
            head: self.head.into(),
            tail: self.tail.into(),
            dropped: self.dropped,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capture(limit: usize, chunks: &[&[u8]]) -> Captured {
        let mut capture = Capture::new(limit);
        for chunk in chunks {
            capture.push(chunk);
        }
        capture.finish()
    }

    #[test]
    fn all_is_kept_up_to_the_limit() {
        let kept = capture(5, &[b"ab", b"cde"]);
        assert_eq!(kept.to_string(), "abcde");
        assert_eq!((kept.dropped, kept.written()), (0, 5));
    }

    #[test]
    fn head_and_tail_are_kept_beyond_it() {
        let bytes: Vec<u8> = (0..200_000u32).map(|i| b'a' + (i % 26) as u8).collect();
        for step in [1, 7, 4096, 200_000] {
            let chunks: Vec<&[u8]> = bytes.chunks(step).collect();
            let kept = capture(101, &chunks);
            assert_eq!(&kept.head[..], &bytes[..51]);
            assert_eq!(&kept.tail[..], &bytes[bytes.len() - 50..]);
            assert_eq!(kept.written(), 200_000);
        }
    }

    #[test]
    fn nothing_may_be_kept() {
        let kept = capture(0, &[b"abc"]);
        assert_eq!((kept.head.len(), kept.tail.len(), kept.dropped), (0, 0, 3));
    }

    #[test]
    fn a_character_across_head_and_tail_stays_whole() {
        let kept = capture(4, &["aéb".as_bytes()]);
        assert_eq!(kept.head.len(), 2);
        assert_eq!(kept.to_string(), "aéb");
    }

    #[test]
    fn last_line_is_short_and_not_blank() {
        let kept = capture(1 << 10, &[b"first\n\x1b[31mlast one\n\n  \n"]);
        assert_eq!(kept.last_line(100).as_deref(), Some("[31mlast one"));
        assert_eq!(kept.last_line(3).as_deref(), Some("[31…"));
        assert_eq!(capture(10, &[b"\n\n"]).last_line(10), None);
    }
}
