//! Requests, and their encoding.

use crate::{BLOB_BYTES, CELL_BYTES, POINT_BYTES};

const MAGIC: [u8; 4] = *b"PMKZ";
const VERSION: u8 = 1;
const BLOB: u8 = 1;
const CELL: u8 = 2;
const HEAD_BYTES: usize = 6;
const INDEX_BYTES: usize = 8;

/// A proof to be verified, with its blob or cell, in encoded form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request<'a> {
    /// The claim that a commitment is to a blob.
    Blob {
        /// The commitment, compressed.
        commitment: &'a [u8; POINT_BYTES],
        /// The proof, compressed.
        proof: &'a [u8; POINT_BYTES],
        /// The blob: 4096 elements in 32 big-endian bytes each.
        blob: &'a [u8; BLOB_BYTES],
    },
    /// The claim that a commitment is to a blob whose extension contains a cell.
    Cell {
        /// Index of the cell, from 0; below 128.
        index: u64,
        /// The commitment, compressed.
        commitment: &'a [u8; POINT_BYTES],
        /// The proof, compressed.
        proof: &'a [u8; POINT_BYTES],
        /// The cell: 64 elements in 32 big-endian bytes each.
        cell: &'a [u8; CELL_BYTES],
    },
}

/// The reason why bytes do not decode to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The bytes do not begin with the magic of a request.
    #[error("no request to verify a blob or a cell: it begins with other bytes")]
    Magic,
    /// A request of another version.
    #[error("a request of version {0}: this release reads version {VERSION}")]
    Version(u8),
    /// An unknown kind.
    #[error("a request of kind {0}: there are {BLOB}, a blob, and {CELL}, a cell")]
    Kind(u8),
    /// The wrong number of bytes.
    #[error("{found} bytes: expected {expected}")]
    Length {
        /// Bytes of a request of this kind.
        expected: usize,
        /// Bytes given.
        found: usize,
    },
}

// === impl Request ===

impl<'a> Request<'a> {
    /// Bytes of an encoded blob with its proof.
    pub const BLOB_REQUEST_BYTES: usize = HEAD_BYTES + 2 * POINT_BYTES + BLOB_BYTES;
    /// Bytes of an encoded cell with its proof.
    pub const CELL_REQUEST_BYTES: usize = HEAD_BYTES + INDEX_BYTES + 2 * POINT_BYTES + CELL_BYTES;

    /// Magic, version (1 byte), kind (1 byte); of a cell its index (8 bytes, big-endian); commitment,
    /// proof, data.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(Self::BLOB_REQUEST_BYTES);
        bytes.extend(MAGIC);
        bytes.push(VERSION);
        match *self {
            Self::Blob {
                commitment,
                proof,
                blob,
            } => {
                bytes.push(BLOB);
                bytes.extend(commitment);
                bytes.extend(proof);
                bytes.extend(blob);
            }
            Self::Cell {
                index,
                commitment,
                proof,
                cell,
            } => {
                bytes.push(CELL);
                bytes.extend(index.to_be_bytes());
                bytes.extend(commitment);
                bytes.extend(proof);
                bytes.extend(cell);
            }
        }
        bytes
    }

    /// Decodes an untrusted request, without a copy; each request has one encoding. The content of the fields
    /// is not checked.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] for any other bytes.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let length = |expected| DecodeError::Length {
            expected,
            found: bytes.len(),
        };
        let short = length(Self::CELL_REQUEST_BYTES);
        let (head, body) = bytes.split_first_chunk::<HEAD_BYTES>().ok_or(short)?;
        let [magic @ .., version, kind] = *head;
        if magic != MAGIC {
            return Err(DecodeError::Magic);
        }
        if version != VERSION {
            return Err(DecodeError::Version(version));
        }
        match kind {
            BLOB => Self::blob(body).ok_or(length(Self::BLOB_REQUEST_BYTES)),
            CELL => Self::cell(body).ok_or(short),
            _ => Err(DecodeError::Kind(kind)),
        }
    }

    fn blob(body: &'a [u8]) -> Option<Self> {
        let (commitment, rest) = body.split_first_chunk()?;
        let (proof, rest) = rest.split_first_chunk()?;
        Some(Self::Blob {
            commitment,
            proof,
            blob: rest.try_into().ok()?,
        })
    }

    fn cell(body: &'a [u8]) -> Option<Self> {
        let (index, rest) = body.split_first_chunk()?;
        let (commitment, rest) = rest.split_first_chunk()?;
        let (proof, rest) = rest.split_first_chunk()?;
        Some(Self::Cell {
            index: u64::from_be_bytes(*index),
            commitment,
            proof,
            cell: rest.try_into().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requests() -> [Request<'static>; 2] {
        let (commitment, proof) = (&[1; POINT_BYTES], &[2; POINT_BYTES]);
        [
            Request::Blob {
                commitment,
                proof,
                blob: &[3; BLOB_BYTES],
            },
            Request::Cell {
                index: 0x0102_0304_0506_0708,
                commitment,
                proof,
                cell: &[4; CELL_BYTES],
            },
        ]
    }

    #[test]
    fn requests_are_read_back_and_other_lengths_refused() {
        for (request, size) in requests().into_iter().zip([131_174, 2158]) {
            let bytes = request.encode();
            assert_eq!(bytes.len(), size);
            assert_eq!(Request::decode(&bytes), Ok(request));
            let longer = [bytes.as_slice(), &[0]].concat();
            for wrong in [&longer, &bytes[..size - 1], &bytes[..HEAD_BYTES]] {
                let expected = format!("{} bytes: expected {size}", wrong.len());
                assert_eq!(Request::decode(wrong).unwrap_err().to_string(), expected);
            }
        }
    }

    #[test]
    fn heads_are_compared() {
        let bytes = requests()[1].encode();
        let changed = |at: usize, byte: u8| {
            let mut bytes = bytes.clone();
            bytes[at] = byte;
            Request::decode(&bytes).unwrap_err()
        };
        assert_eq!(changed(0, 0), DecodeError::Magic);
        assert_eq!(changed(4, 2), DecodeError::Version(2));
        assert_eq!(changed(5, 3), DecodeError::Kind(3));
        assert!(matches!(changed(5, 1), DecodeError::Length { .. }));
        for length in 0..HEAD_BYTES {
            let error = Request::decode(&bytes[..length]).unwrap_err();
            assert!(matches!(error, DecodeError::Length { .. }));
        }
    }
}
