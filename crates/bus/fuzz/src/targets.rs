//! Functions that feed hostile bytes to the code under test. Each panics if it finds a defect.

use bytes::Bytes;
use proofmill_bus::hostile::{read_blob_piece, read_log, with_checksum};

/// Messages of a log's stream, each as length (two bytes: twice the length, plus 1 if the checksum
/// is to be corrected) and content.
pub fn frames(bytes: &[u8]) {
    let (mut rest, mut messages) = (bytes, Vec::new());
    while let Some((length, after)) = rest.split_first_chunk::<2>() {
        let length = u16::from_le_bytes(*length);
        let Some((message, after)) = after.split_at_checked(usize::from(length >> 1)) else {
            break;
        };
        messages.push(match length & 1 {
            0 => Bytes::copy_from_slice(message),
            _ => with_checksum(message.to_vec()),
        });
        rest = after;
    }
    read_log(&messages);
}

/// A subject, a line feed, and the header that states the blob's length.
pub fn blob_pieces(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let (subject, size) = text.split_once('\n').unwrap_or((text, ""));
    if let Some((location, ..)) = read_blob_piece(subject, size) {
        assert!(!location.starts_with('/') && !location.contains(".."));
    }
}
