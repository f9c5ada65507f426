//! The frame of files over a curve: magic, version, curve, and a checksum at the end.

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use proofmill_files::{FileError, Visibility, open_regular, write_whole};
use proofmill_groth16::{Curve, KeyError};
use sha2::{Digest, Sha256};

use crate::aggregate::{AggregateError, curve_name, curve_named, number};
use crate::index::IndexError;
use crate::srs::SrsError;
use crate::torus::{AggregationCurve, TorusError};

/// The version of all files with this frame.
pub const VERSION: u32 = 1;
/// Magic, version and curve.
pub const BEGINNING_BYTES: usize = 8 + 4 + 16;
/// A SHA-256.
pub const CHECKSUM_BYTES: usize = 32;

/// The curve named in the first 28 bytes of a reference string's or key's file. For an aggregate, use
/// [`Aggregate::kind_and_curve`](crate::Aggregate::kind_and_curve).
pub fn curve_of(head: &[u8]) -> Option<Curve> {
    let (magic, rest) = head.split_first_chunk::<8>()?;
    let is_ours = magic.starts_with(b"PMILL");
    curve_named(rest.get(4..BEGINNING_BYTES - 8)?).filter(|_| is_ours)
}

/// The reason why a file, or its content, is not accepted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AggregationFileError {
    /// The file system refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// A file that could not be written.
    #[error(transparent)]
    Write(#[from] FileError),
    /// The content does not begin with the magic.
    #[error("not a {0}")]
    Magic(&'static str),
    /// The content is of another version.
    #[error("a {what} of version {found}: this release reads version {VERSION}")]
    Version {
        /// The kind of file.
        what: &'static str,
        /// The version.
        found: u32,
    },
    /// The content is for another curve.
    #[error("a {what} for another curve than {expected}")]
    Curve {
        /// The kind of file.
        what: &'static str,
        /// The curve.
        expected: &'static str,
    },
    /// Numbers in the head that no file has.
    #[error("the head of the {0} is of no such file: corrupt")]
    Head(&'static str),
    /// The length does not follow from the head.
    #[error("a {what} of {found} bytes, whose head asks for {expected}: cut short or corrupt")]
    Length {
        /// The kind of file.
        what: &'static str,
        /// Bytes that follow from the head.
        expected: u64,
        /// The bytes there are.
        found: u64,
    },
    /// The checksum is another.
    #[error("the checksum of the {0} does not match: the file is corrupt")]
    Checksum(&'static str),
    /// The bytes of a point or scalar are not one of its group.
    #[error("the {what} holds what is not a point or number of its group, in its {section}")]
    Point {
        /// The kind of file.
        what: &'static str,
        /// The section of the file.
        section: &'static str,
    },
    /// The bytes of an element are not one of the target group.
    #[error("the {what}: {source}")]
    Element {
        /// The kind of file.
        what: &'static str,
        /// The reason.
        source: TorusError,
    },
    /// An element of the target field does not have the prime order.
    #[error("the {0} holds an element that is not of the target group")]
    Order(&'static str),
    /// A reference string that is inconsistent.
    #[error(transparent)]
    Srs(#[from] SrsError),
    /// A verifying key in the file is malformed.
    #[error("a verifying key in the file: {0}")]
    Key(#[from] KeyError),
    /// Verifying keys and proofs that do not go together.
    #[error(transparent)]
    Index(#[from] IndexError),
}

/// A kind of file.
#[derive(Clone, Copy, Debug)]
pub struct FileKind {
    /// The first bytes of the file.
    pub magic: &'static [u8; 8],
    /// The noun for it, in errors.
    pub what: &'static str,
}

// === impl FileKind ===

impl FileKind {
    /// The beginning of a file: magic, version and curve.
    pub fn begin<E: AggregationCurve>(self) -> Vec<u8> {
        let mut bytes = self.magic.to_vec();
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend(curve_name::<E>());
        bytes
    }

    /// The content with its checksum.
    pub fn end(self, mut bytes: Vec<u8>) -> Vec<u8> {
        let checksum = Sha256::digest(&bytes);
        bytes.extend(checksum);
        bytes
    }

    /// The bytes after the beginning, which is checked; they are no fewer than `head` if there are any.
    ///
    /// # Errors
    ///
    /// [`AggregationFileError`] for another beginning, or fewer bytes.
    pub fn after_beginning<E: AggregationCurve>(
        self,
        bytes: &[u8],
        head: usize,
    ) -> Result<&[u8], AggregationFileError> {
        let what = self.what;
        if !bytes.starts_with(self.magic) {
            return Err(AggregationFileError::Magic(what));
        }
        let least = BEGINNING_BYTES + head;
        if bytes.len() < least {
            return Err(self.length(least as u64, bytes.len() as u64));
        }
        let found = number(&bytes[8..12]);
        if found != VERSION {
            return Err(AggregationFileError::Version { what, found });
        }
        if bytes[12..BEGINNING_BYTES] != curve_name::<E>() {
            let expected = E::CURVE.name();
            return Err(AggregationFileError::Curve { what, expected });
        }
        Ok(&bytes[BEGINNING_BYTES..])
    }

    /// The content without the checksum, which is checked, of bytes that are as many as `expected`.
    ///
    /// # Errors
    ///
    /// [`AggregationFileError::Length`], [`AggregationFileError::Checksum`].
    pub fn checked(self, bytes: &[u8], expected: u64) -> Result<&[u8], AggregationFileError> {
        let found = bytes.len() as u64;
        if found != expected {
            return Err(self.length(expected, found));
        }
        let Some((content, checksum)) = bytes.split_last_chunk::<CHECKSUM_BYTES>() else {
            return Err(self.length(CHECKSUM_BYTES as u64, found));
        };
        if Sha256::digest(content)[..] != checksum[..] {
            return Err(AggregationFileError::Checksum(self.what));
        }
        Ok(content)
    }

    /// The error for a wrong number of bytes.
    pub const fn length(self, expected: u64, found: u64) -> AggregationFileError {
        let what = self.what;
        AggregationFileError::Length {
            what,
            expected,
            found,
        }
    }

    /// The error for a malformed point or number.
    pub const fn point(self, section: &'static str) -> AggregationFileError {
        let what = self.what;
        AggregationFileError::Point { what, section }
    }

    /// A file's content, of which there are `bytes_max` at most.
    ///
    /// # Errors
    ///
    /// [`AggregationFileError::Io`], [`AggregationFileError::Length`].
    pub fn read(self, path: &Path, bytes_max: u64) -> Result<Vec<u8>, AggregationFileError> {
        let failed = |source| AggregationFileError::Io {
            path: path.to_owned(),
            source,
        };
        let file: File = open_regular(path).map_err(failed)?;
        let found = file.metadata().map_err(failed)?.len();
        if found > bytes_max {
            return Err(self.length(bytes_max, found));
        }
        let mut bytes = Vec::with_capacity(found as usize);
        file.take(bytes_max)
            .read_to_end(&mut bytes)
            .map_err(failed)?;
        Ok(bytes)
    }
}

/// Writes a public file whole or not at all.
///
/// # Errors
///
/// [`AggregationFileError::Write`] if the file system refuses.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), AggregationFileError> {
    write_whole(path, Visibility::Public, |file| file.write_all(bytes))?;
    Ok(())
}

/// The error for a wrong point of [`Points`](crate::aggregate::Points) in a section of a file.
pub(crate) fn wrong_point(
    kind: FileKind,
    section: &'static str,
) -> impl Fn(AggregateError) -> AggregationFileError {
    move |_| kind.point(section)
}
