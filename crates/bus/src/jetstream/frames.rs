//! Bookkeeping of the frames in the stream: which contain live records, and which can be removed.

use std::collections::{BTreeMap, HashMap};

use super::frame::Frame;
use crate::log::Seq;

/// Bytes of removed records that may stay in the stream without being cleaned up.
const SLACK_BYTES: usize = 8 << 20;

/// A frame's size and place in the stream.
#[derive(Clone, Copy, Debug)]
struct FrameEntry {
    /// The stream sequence of its first message.
    first: u64,
    /// Number of live records.
    live: usize,
    /// Bytes of keys and values, of live and removed records.
    bytes: usize,
}

/// The frames of the stream, from the oldest that contains a live record.
#[derive(Debug, Default)]
pub(super) struct Frames {
    /// Frames by the stream sequence of their last message.
    entries: BTreeMap<u64, FrameEntry>,
    /// For each live record: the last stream sequence of the frame that contains it, and its bytes.
    frame_of: HashMap<Seq, (u64, usize)>,
    /// Bytes of all frames.
    bytes: usize,
    live_bytes: usize,
}

impl Frames {
    /// Records a frame that was written, or read, at stream sequences `first..=last`.
    pub(super) fn push(&mut self, first: u64, last: u64, frame: &Frame) {
        for seq in &frame.removed {
            self.forget(*seq);
        }
        for (seq, (key, value)) in &frame.puts {
            // A record put again under its old position makes the older copy garbage.
            self.forget(*seq);
            let bytes = key.as_str().len() + value.len();
            self.frame_of.insert(*seq, (last, bytes));
            self.live_bytes += bytes;
        }
        let bytes = frame.put_bytes();
        self.bytes += bytes;
        let entry = FrameEntry {
            first,
            live: frame.puts.len(),
            bytes,
        };
        self.entries.insert(last, entry);
    }

    fn forget(&mut self, seq: Seq) {
        if let Some((frame, bytes)) = self.frame_of.remove(&seq) {
            self.live_bytes -= bytes;
            if let Some(entry) = self.entries.get_mut(&frame) {
                entry.live -= 1;
            }
        }
    }

    /// First and last stream sequence of the frame that contains a record; `None` if it is not
    /// live.
    pub(super) fn frame_of(&self, seq: Seq) -> Option<(u64, u64)> {
        let (last, _) = self.frame_of.get(&seq)?;
        let entry = self.entries.get(last)?;
        Some((entry.first, *last))
    }

    /// Whether record `seq` is live in the frame that ends at `last`.
    pub(super) fn lives_in(&self, seq: Seq, last: u64) -> bool {
        self.frame_of
            .get(&seq)
            .is_some_and(|(frame, _)| *frame == last)
    }

    /// The oldest frame, if its records should be put again so that the frame can be removed: more
    /// than half of the stream, and more than [`SLACK_BYTES`], is garbage.
    pub(super) fn frame_to_compact(&self) -> Option<(u64, u64)> {
        let garbage = self.bytes - self.live_bytes;
        if garbage <= SLACK_BYTES.max(self.live_bytes) {
            return None;
        }
        let (last, entry) = self.entries.iter().find(|(_, entry)| entry.live > 0)?;
        // The newest frame always stays.
        (self.entries.keys().next_back() != Some(last)).then_some((entry.first, *last))
    }

    /// Removes leading frames without live records that end at or before `durable`. Returns the
    /// stream sequence of the first message that is still needed; `None` if nothing was removed.
    ///
    /// The newest frame stays: it states the last position.
    pub(super) fn prune(&mut self, durable: u64) -> Option<u64> {
        let mut needed = None;
        while self.entries.len() > 1
            && let Some((last, entry)) = self.entries.first_key_value()
            && entry.live == 0
            && *last <= durable
        {
            self.bytes -= entry.bytes;
            self.entries.pop_first();
            needed = self.entries.first_key_value().map(|(_, entry)| entry.first);
        }
        needed
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::key::Key;

    fn frame(puts: &[u64], removed: &[u64], bytes: usize) -> Frame {
        let key = Key::new("k").expect("a key");
        let record = |seq: &u64| (Seq(*seq), (key.clone(), Bytes::from(vec![0; bytes - 1])));
        Frame {
            last: Seq(0),
            puts: puts.iter().map(record).collect(),
            removed: removed.iter().map(|seq| Seq(*seq)).collect(),
        }
    }

    #[test]
    fn dead_frames_at_the_beginning_go() {
        let mut frames = Frames::default();
        frames.push(1, 1, &frame(&[1, 2], &[], 10));
        frames.push(2, 4, &frame(&[3], &[1], 10));
        frames.push(5, 5, &frame(&[4], &[3], 10));
        assert_eq!(frames.frame_of(Seq(3)), None);
        assert_eq!(frames.frame_of(Seq(2)), Some((1, 1)));
        assert_eq!(frames.prune(5), None);
        frames.push(6, 6, &frame(&[], &[2], 10));
        assert_eq!(frames.prune(0), None);
        assert_eq!(frames.prune(6), Some(5));
        assert_eq!(frames.frame_of(Seq(4)), Some((5, 5)));
        // The newest frame stays although it contains no live record.
        frames.push(7, 7, &frame(&[], &[4], 10));
        assert_eq!(frames.prune(7), Some(7));
        assert_eq!(frames.bytes, 0);
    }

    #[test]
    fn old_records_among_garbage_are_carried() {
        let mut frames = Frames::default();
        frames.push(1, 1, &frame(&[1], &[], 10));
        for n in 2..20 {
            frames.push(n, n, &frame(&[n], &[n - 1].map(|n| n.max(2)), 1 << 20));
        }
        let (first, last) = frames.frame_to_compact().expect("17 MiB of garbage");
        assert_eq!((first, last), (1, 1));
        assert!(frames.lives_in(Seq(1), 1));
        frames.push(20, 20, &frame(&[1], &[], 10));
        assert!(!frames.lives_in(Seq(1), 1));
        assert_eq!(frames.frame_of(Seq(1)), Some((20, 20)));
        assert_eq!(frames.prune(20), Some(19));
        assert_eq!(frames.frame_to_compact(), None);
    }
}
