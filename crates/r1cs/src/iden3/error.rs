//! Errors of formatted files, with the position of the fault.

use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};

use proofmill_files::FileError;

use super::Format;

/// Malformed content of a file: the expected format, the section, the offset and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormatError {
    /// The format it should have had.
    pub format: &'static Format,
    /// The section's kind; `None` for the container's own head.
    pub section: Option<u32>,
    /// Offset in the file, in bytes from its start.
    pub offset: u64,
    /// The reason.
    pub reason: Reason,
}

/// The reason why a file's content is not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// The content ends too soon.
    #[error("cut short: {needed} bytes needed, {left} left")]
    Truncated {
        /// The bytes needed from the offset on.
        needed: u64,
        /// The bytes there are.
        left: u64,
    },
    /// The file has another magic.
    #[error("starts with \"{}\", not \"{}\": another kind of file", found.escape_ascii(), expected.escape_ascii())]
    Magic {
        /// The file's first bytes.
        found: [u8; 4],
        /// The format's magic.
        expected: [u8; 4],
    },
    /// The file is of an unsupported version.
    #[error("version {found}, only version {expected} is read")]
    Version {
        /// The file's version.
        found: u32,
        /// The supported version.
        expected: u32,
    },
    /// The head names more sections than any such file has.
    #[error("{found} sections, at most {limit} are read")]
    TooManySections {
        /// The number in its head.
        found: u32,
        /// The most that are read.
        limit: u32,
    },
    /// A section occurs twice.
    #[error("the section occurs twice")]
    DuplicateSection,
    /// A section is missing.
    #[error("the section is missing")]
    MissingSection,
    /// Bytes are left over at the end.
    #[error("{left} bytes too many")]
    TrailingBytes {
        /// The number of bytes left over.
        left: u64,
    },
    /// A section's length does not follow from the file's head.
    #[error("{found} bytes, where the header asks for {expected}")]
    Length {
        /// Bytes that follow from the header.
        expected: u64,
        /// Bytes of the section.
        found: u64,
    },
    /// A field element is not below the field's prime.
    #[error("a field element that is not below the field's prime")]
    NotCanonical,
    /// A point does not satisfy the curve's equation.
    #[error("a point that is not on its curve")]
    NotOnCurve,
    /// A point of the curve is outside the subgroup of prime order.
    #[error("a point outside the subgroup of prime order")]
    NotInSubgroup,
    /// The file's field is another one.
    #[error("for the field {found}, not {expected}")]
    Field {
        /// The file's field: its name, or its prime if that has none here.
        found: Cow<'static, str>,
        /// The field expected.
        expected: Cow<'static, str>,
    },
    /// The content is valid but not supported.
    #[error("{0}: not supported")]
    Unsupported(Cow<'static, str>),
    /// The content contradicts itself, or the file that it belongs to.
    #[error("{0}")]
    Inconsistent(Cow<'static, str>),
}

/// A file that cannot be read, or whose content is malformed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The file cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// The file's content is malformed.
    #[error("{}: {source}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// The fault and its position.
        source: FormatError,
    },
}

// === impl FormatError ===

impl FormatError {
    /// This error as one about the file at `path`.
    pub fn in_file(self, path: &Path) -> ReadError {
        ReadError::Format {
            path: path.to_owned(),
            source: self,
        }
    }
}

impl fmt::Display for FormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} file, ", self.format.name)?;
        match self.section {
            None => write!(f, "head")?,
            Some(kind) => match self.format.section_name(kind) {
                Some(name) => write!(f, "section {kind} ({name})")?,
                None => write!(f, "section {kind}")?,
            },
        }
        write!(f, ", byte {}: {}", self.offset, self.reason)
    }
}

impl std::error::Error for FormatError {}
