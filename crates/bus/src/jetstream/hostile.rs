//! Entry points for fuzzing: decoding of a stream's messages, without a server.

use async_nats::header::HeaderMap;
use bytes::Bytes;

use super::blobs;
use super::frame::{Assembly, Frame, Origin};
use super::frames::Frames;
use crate::key::Key;
use crate::log::Seq;

/// Decodes messages as those of the log's stream, one after the other, and tracks their frames.
/// Returns the number of frames.
pub fn read_log(messages: &[Bytes]) -> usize {
    let (mut assembly, mut frames, mut count) = (Assembly::default(), Frames::default(), 0);
    for (message, number) in messages.iter().zip(1..) {
        let _ = Origin::of(message);
        if let Ok(Some((first, frame))) = assembly.take(number, message) {
            frames.push(first, number, &frame);
            for seq in frame.puts.keys() {
                assert!(frames.lives_in(*seq, number), "{seq} was put");
                assert_eq!(frames.frame_of(*seq), Some((first, number)));
            }
            let _ = frames.frame_to_compact();
            let _ = frames.prune(number);
            count += 1;
        }
    }
    count
}

/// The message with its last four bytes replaced by a valid checksum, for inputs that must pass the
/// check.
pub fn with_checksum(mut message: Vec<u8>) -> Bytes {
    if let Some(end) = message.len().checked_sub(4) {
        let sum = crc32fast::hash(&message[..end]).to_le_bytes();
        message[end..].copy_from_slice(&sum);
    }
    message.into()
}

/// The messages of a frame with these keys and values, each of at most `limit` bytes.
pub fn log_messages(records: &[(&str, &[u8])], limit: usize) -> Vec<Bytes> {
    let records = records.iter().zip(1..).filter_map(|((key, value), seq)| {
        let key = Key::new(*key).ok()?;
        Some((Seq(seq), (key, Bytes::copy_from_slice(value))))
    });
    let frame = Frame {
        last: Seq(9),
        puts: records.collect(),
        removed: vec![Seq(1)],
    };
    frame.encode(7, 1, limit)
}

/// Decodes the subject and the size header of a blob's piece: the blob's location, the number of
/// the piece, and the stated length of the blob in bytes.
pub fn read_blob_piece(subject: &str, size: &str) -> Option<(String, usize, Option<u64>)> {
    let (location, piece) = blobs::named(subject)?;
    let mut headers = HeaderMap::new();
    if let Ok(size) = size.parse::<async_nats::header::HeaderValue>() {
        headers.insert(blobs::SIZE_HEADER, size);
    }
    Some((location.to_string(), piece, blobs::size_of(&headers)))
}
