//! The beginning of every key file: magic, version, kind and curve.

use super::KeyError;
use crate::SnarkCurve;

const MAGIC: &[u8; 8] = b"PMILLKEY";
pub(super) const VERSION: u32 = 1;
/// Offset of the curve in a file: after magic, version and kind.
pub(super) const CURVE_AT: usize = 8 + 4 + 4;
pub(super) const CURVE_BYTES: usize = 16;
/// Size of magic, version, kind and curve together.
pub(crate) const PREFIX_BYTES: usize = CURVE_AT + CURVE_BYTES;

/// Appends the prefix of a file of this kind.
pub(crate) fn write_prefix<E: SnarkCurve>(kind: u32, out: &mut Vec<u8>) {
    out.extend_from_slice(MAGIC);
    out.extend(VERSION.to_le_bytes());
    out.extend(kind.to_le_bytes());
    out.extend(padded(E::CURVE.name()));
}

/// Checks the prefix of a file, and returns the rest of its head.
///
/// `kind` is the expected kind, `head_bytes` the size of the whole head, and `file_bytes` the size of the file, which
/// an error reports. `bytes` must begin with the head and may end after it.
pub(crate) fn read_prefix<E: SnarkCurve>(
    kind: u32,
    bytes: &[u8],
    head_bytes: usize,
    file_bytes: u64,
) -> Result<&[u8], KeyError> {
    if bytes.first_chunk().is_some_and(|magic| magic != MAGIC) {
        return Err(KeyError::Magic);
    }
    let head = bytes.get(..head_bytes).ok_or(KeyError::Length {
        expected: head_bytes as u64,
        found: file_bytes,
    })?;
    let (prefix, rest) = head.split_at(PREFIX_BYTES);
    let number = |at: usize| little_endian(&prefix[at..at + 4]) as u32;
    let (version, found) = (number(MAGIC.len()), number(MAGIC.len() + 4));
    if version != VERSION {
        return Err(KeyError::Version { found: version });
    }
    if found != kind {
        return Err(KeyError::Kind {
            expected: kind,
            found,
        });
    }
    if prefix[CURVE_AT..] != padded(E::CURVE.name()) {
        return Err(KeyError::Curve {
            expected: E::CURVE.name(),
        });
    }
    Ok(rest)
}

/// The number that at most eight bytes encode, the lowest byte first.
pub(crate) fn little_endian(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .rev()
        .fold(0, |value, byte| value << 8 | u64::from(*byte))
}

/// A curve's name, padded with zeros to the size of its field.
pub(super) fn padded(name: &str) -> [u8; CURVE_BYTES] {
    let mut padded = [0; CURVE_BYTES];
    padded[..name.len()].copy_from_slice(name.as_bytes());
    padded
}
