//! The file of one transaction: a magic, a version, the transaction in postcard's encoding, and a SHA-256 of all that.

use sha2::{Digest as _, Sha256};

use super::entry::Entry;

/// First bytes of a file.
const MAGIC: [u8; 8] = *b"PMSETTLE";

/// Version of the encoding.
const VERSION: u32 = 1;

/// Bytes before the transaction.
const HEAD: usize = MAGIC.len() + 4;

/// Bytes of the checksum.
const CHECKSUM: usize = 32;

/// The reason why bytes are not the file of a transaction.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JournalFileError {
    /// It does not begin as one, or is cut short.
    #[error("not a settlement transaction of Proofmill, or cut short")]
    NotOurs,
    /// Another release wrote it.
    #[error("version {0}, and this program reads version {VERSION}: use the release that wrote it")]
    Version(u32),
    /// Its bytes are not those that were written.
    #[error("damaged: its checksum differs")]
    Checksum,
    /// The transaction cannot be decoded.
    #[error("damaged: {0}")]
    Body(String),
    /// The file's name is that of another nonce.
    #[error("it holds nonce {0}, which its name does not say")]
    Nonce(u64),
}

pub(super) fn encode(entry: &Entry) -> postcard::Result<Vec<u8>> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend(VERSION.to_le_bytes());
    let mut bytes = postcard::to_extend(entry, bytes)?;
    let checksum = Sha256::digest(&bytes);
    bytes.extend(checksum);
    Ok(bytes)
}

pub(super) fn decode(bytes: &[u8]) -> Result<Entry, JournalFileError> {
    let split = bytes.len().checked_sub(CHECKSUM).filter(|at| *at >= HEAD);
    let split = split.ok_or(JournalFileError::NotOurs)?;
    let (covered, checksum) = bytes.split_at(split);
    let (head, body) = covered.split_at(HEAD);
    let (magic, version) = head.split_at(MAGIC.len());
    if magic != MAGIC {
        return Err(JournalFileError::NotOurs);
    }
    let version = version
        .first_chunk::<4>()
        .map(|bytes| u32::from_le_bytes(*bytes));
    let version = version.unwrap_or_default();
    if version != VERSION {
        return Err(JournalFileError::Version(version));
    }
    if Sha256::digest(covered).as_slice() != checksum {
        return Err(JournalFileError::Checksum);
    }
    let decoded = postcard::take_from_bytes::<Entry>(body);
    let (entry, rest) = decoded.map_err(|error| JournalFileError::Body(error.to_string()))?;
    if !rest.is_empty() || entry.attempts.is_empty() {
        return Err(JournalFileError::Body("of another shape".to_owned()));
    }
    Ok(entry)
}
