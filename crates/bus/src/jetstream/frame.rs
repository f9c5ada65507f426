//! Frames: the content of the stream's messages.
//!
//! A message is: [`MAGIC`]; flags (1 byte: 1 for the first message of a frame, 2 for the last); the
//! writer's number and the message's number with this writer (8 bytes each, little-endian); a piece
//! of the frame; CRC-32 of all that (4 bytes). The concatenated pieces of a frame are a [`Body`] in
//! postcard's encoding.

use std::collections::BTreeMap;

use bytes::{BufMut, Bytes, BytesMut};
use postcard::ser_flavors::Flavor;
use serde::{Deserialize, Serialize, Serializer};

use crate::key::Key;
use crate::log::Seq;

/// "PMJ" and the version of the format.
const MAGIC: [u8; 4] = *b"PMJ1";
/// Flag of the first message of a frame.
const FLAG_FIRST: u8 = 1;
/// Flag of the last message of a frame.
const FLAG_LAST: u8 = 2;
/// Bytes of a message before its piece: magic, flags, numbers of writer and message.
const HEAD_BYTES: usize = 4 + 1 + 8 + 8;
const CHECKSUM_BYTES: usize = 4;

/// Bytes of a message in addition to its piece of the frame.
pub(super) const OVERHEAD_BYTES: usize = HEAD_BYTES + CHECKSUM_BYTES;

/// Identity of a message: its writer, and its number among that writer's messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Origin {
    pub(super) writer: u64,
    pub(super) number: u64,
}

/// A decoded message of the stream.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) is_first: bool,
    pub(super) is_last: bool,
    pub(super) content: Bytes,
}

/// A frame.
#[derive(Debug, Default)]
pub(super) struct Frame {
    /// Position of the last operation of this frame, or of an earlier one if this frame is empty.
    pub(super) last: Seq,
    pub(super) puts: BTreeMap<Seq, (Key, Bytes)>,
    pub(super) removed: Vec<Seq>,
}

#[derive(Serialize, Deserialize)]
struct Body<'a> {
    last: u64,
    #[serde(borrow)]
    puts: Vec<(u64, &'a str, Value<'a>)>,
    removed: Vec<u64>,
}

/// Bytes that are encoded as they are, at once. Slices are encoded to the same, element by element.
#[derive(Deserialize)]
struct Value<'a>(#[serde(borrow)] &'a [u8]);

/// The messages of a frame under encoding: each byte is written once, where it is sent from.
struct Messages {
    writer: u64,
    /// Number of the message that is being written.
    number: u64,
    /// Most bytes of a piece.
    room: usize,
    /// About the bytes of all pieces.
    expected: usize,
    message: BytesMut,
    finished: Vec<Bytes>,
}

/// The reason why a message is not a valid frame of this program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Malformed {
    #[error("it is not a frame of this version of Proofmill")]
    Foreign,
    #[error("its checksum is wrong")]
    Sum,
    #[error("its content does not decode")]
    Content,
    #[error("a record of it has an invalid key")]
    Key,
    #[error("a frame is not continued where it should be")]
    Order,
}

impl Frame {
    /// Encodes the frame as messages of at most `limit` bytes each; the first has number `first`.
    pub(super) fn encode(&self, writer: u64, first: u64, limit: usize) -> Vec<Bytes> {
        let body = Body {
            last: self.last.0,
            puts: self
                .puts
                .iter()
                .map(|(seq, (key, value))| (seq.0, key.as_str(), Value(value)))
                .collect(),
            removed: self.removed.iter().map(|seq| seq.0).collect(),
        };
        // Numbers and lengths take ten bytes at most.
        let expected = self.put_bytes() + 10 * (3 + 3 * self.puts.len() + self.removed.len());
        let messages = Messages::new(writer, first, limit, expected);
        postcard::serialize_with_flavor(&body, messages)
            .expect("postcard encodes numbers and bytes")
    }

    /// Decodes the concatenated pieces of a frame.
    pub(super) fn decode(body: &[u8]) -> Result<Self, Malformed> {
        let body: Body<'_> = postcard::from_bytes(body).map_err(|_| Malformed::Content)?;
        let puts = body
            .puts
            .into_iter()
            .map(|(seq, key, value)| {
                let key = Key::new(key).map_err(|_| Malformed::Key)?;
                Ok((Seq(seq), (key, Bytes::copy_from_slice(value.0))))
            })
            .collect::<Result<_, _>>()?;
        Ok(Self {
            last: Seq(body.last),
            puts,
            removed: body.removed.into_iter().map(Seq).collect(),
        })
    }

    /// Bytes of the keys and values put.
    pub(super) fn put_bytes(&self) -> usize {
        let weigh = |(key, value): &(Key, Bytes)| key.as_str().len() + value.len();
        self.puts.values().map(weigh).sum()
    }
}

impl Serialize for Value<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(self.0)
    }
}

// === impl Messages ===

impl Messages {
    /// Messages of at most `limit` bytes each, for a body of about `expected` bytes; the first has number `first`.
    fn new(writer: u64, first: u64, limit: usize, expected: usize) -> Self {
        let room = limit.saturating_sub(OVERHEAD_BYTES).max(1);
        let mut messages = Self {
            writer,
            number: first,
            room,
            expected,
            message: BytesMut::new(),
            finished: Vec::new(),
        };
        messages.begin();
        messages
    }

    /// Begins the next message. All before it are full.
    fn begin(&mut self) {
        let left = self
            .expected
            .saturating_sub(self.finished.len() * self.room);
        self.message = BytesMut::with_capacity(left.min(self.room) + OVERHEAD_BYTES);
        self.message.put_slice(&MAGIC);
        self.message.put_u8(match self.finished.is_empty() {
            true => FLAG_FIRST,
            false => 0,
        });
        self.message.put_u64_le(self.writer);
        self.message.put_u64_le(self.number);
    }

    fn end(&mut self, flags: u8) {
        let mut message = std::mem::take(&mut self.message);
        message[MAGIC.len()] |= flags;
        let sum = crc32fast::hash(&message);
        message.put_u32_le(sum);
        self.finished.push(message.freeze());
        self.number += 1;
    }
}

impl Flavor for Messages {
    type Output = Vec<Bytes>;

    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        self.try_extend(&[byte])
    }

    fn try_extend(&mut self, mut bytes: &[u8]) -> postcard::Result<()> {
        while !bytes.is_empty() {
            let left = self.room + HEAD_BYTES - self.message.len();
            if left == 0 {
                self.end(0);
                self.begin();
                continue;
            }
            let (now, rest) = bytes.split_at(left.min(bytes.len()));
            self.message.put_slice(now);
            bytes = rest;
        }
        Ok(())
    }

    fn finalize(mut self) -> postcard::Result<Vec<Bytes>> {
        self.end(FLAG_LAST);
        Ok(self.finished)
    }
}

impl Piece {
    /// Decodes a message.
    pub(super) fn read(message: &Bytes) -> Result<Self, Malformed> {
        let content_end = message
            .len()
            .checked_sub(CHECKSUM_BYTES)
            .filter(|end| *end >= HEAD_BYTES)
            .ok_or(Malformed::Foreign)?;
        if message[..4] != MAGIC {
            return Err(Malformed::Foreign);
        }
        let sum = u32::from_le_bytes(message[content_end..].try_into().expect("four bytes"));
        if crc32fast::hash(&message[..content_end]) != sum {
            return Err(Malformed::Sum);
        }
        Ok(Self {
            is_first: message[4] & FLAG_FIRST != 0,
            is_last: message[4] & FLAG_LAST != 0,
            content: message.slice(HEAD_BYTES..content_end),
        })
    }
}

impl Origin {
    /// The identity of `message`; `None` if it is not in this format.
    pub(super) fn of(message: &[u8]) -> Option<Self> {
        let number = |at: usize| {
            let bytes = message.get(at..at + 8)?;
            Some(u64::from_le_bytes(bytes.try_into().expect("eight bytes")))
        };
        if message.get(..4)? != MAGIC {
            return None;
        }
        Some(Self {
            writer: number(5)?,
            number: number(13)?,
        })
    }
}

/// Assembles frames from the pieces of successive messages.
#[derive(Debug, Default)]
pub(super) struct Assembly {
    /// The stream sequence of the frame's first message, and its content so far.
    begun: Option<(u64, BytesMut)>,
}

impl Assembly {
    /// Takes the next message of the stream. If it is the last of a frame, returns the frame and
    /// the stream sequence of its first message.
    ///
    /// If a frame begins before the previous one was finished, the previous one is dropped: it was
    /// left by a writer that died, and was never reported durable.
    pub(super) fn take(
        &mut self,
        stream_seq: u64,
        message: &Bytes,
    ) -> Result<Option<(u64, Frame)>, Malformed> {
        let piece = Piece::read(message)?;
        if piece.is_first {
            self.begun = Some((stream_seq, BytesMut::new()));
        }
        let Some((first, content)) = &mut self.begun else {
            return Err(Malformed::Order);
        };
        content.extend_from_slice(&piece.content);
        if !piece.is_last {
            return Ok(None);
        }
        let first = *first;
        let frame = Frame::decode(content)?;
        self.begun = None;
        Ok(Some((first, frame)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame() -> Frame {
        let record = |n: u64| {
            let key = Key::new(format!("k.{n}")).expect("a key");
            (Seq(n), (key, Bytes::from(vec![n as u8; 100])))
        };
        Frame {
            last: Seq(77),
            puts: (1..40).map(record).collect(),
            removed: vec![Seq(3), Seq(9)],
        }
    }

    #[test]
    fn frames_round_trip_whole_and_in_pieces() {
        for limit in [OVERHEAD_BYTES + 1, 60, 1000, 1 << 20] {
            let messages = frame().encode(7, 100, limit);
            assert!(messages.iter().all(|message| message.len() <= limit));
            let mut assembly = Assembly::default();
            let (last, before) = messages.split_last().expect("at least one");
            for (message, n) in before.iter().zip(0..) {
                assert!(assembly.take(50 + n, message).expect("ours").is_none());
                let origin = Origin::of(message).expect("ours");
                assert_eq!((origin.writer, origin.number), (7, 100 + n));
            }
            let (first, found) = assembly.take(99, last).expect("ours").expect("complete");
            assert_eq!(first, if before.is_empty() { 99 } else { 50 });
            assert_eq!(found.last, frame().last);
            assert_eq!(found.puts, frame().puts);
            assert_eq!(found.removed, frame().removed);
        }
    }

    #[test]
    fn an_unfinished_frame_is_ignored() {
        let pieces = frame().encode(7, 1, 200);
        let next = Frame::default().encode(8, 1, 200);
        let mut assembly = Assembly::default();
        assert!(assembly.take(1, &pieces[0]).expect("ours").is_none());
        let (first, found) = assembly.take(2, &next[0]).expect("ours").expect("complete");
        assert_eq!((first, found.puts.len()), (2, 0));
        assert!(matches!(
            assembly.take(3, &pieces[1]),
            Err(Malformed::Order)
        ));
    }

    #[test]
    fn damage_is_noticed() {
        let sound = frame().encode(7, 1, 1 << 20).remove(0);
        for at in 0..sound.len() {
            let mut damaged = sound.to_vec();
            damaged[at] ^= 0x10;
            assert!(Piece::read(&damaged.into()).is_err(), "byte {at}");
        }
        for length in 0..sound.len() {
            assert!(Piece::read(&sound.slice(..length)).is_err());
        }
    }
}
