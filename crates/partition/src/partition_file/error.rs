//! Files that are no partition.

use proofmill_files::FileError;
use proofmill_r1cs::iden3::FormatError;

use super::VERSION;

/// The reason why a file, or its content, is not a partition over the expected field.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PartitionFileError {
    /// The file system refused, or the file was changed while it was read.
    #[error(transparent)]
    File(#[from] FileError),
    /// The file does not begin with the magic.
    #[error("not a partition file: it does not begin with PMILLPTN")]
    Magic,
    /// The file is of another version.
    #[error(
        "a partition file of version {found}: this release reads version {VERSION}; \
         make the partition again"
    )]
    Version {
        /// The version.
        found: u32,
    },
    /// The partition is over another field.
    #[error("a partition over {found}, not over the scalar field of {expected}")]
    Field {
        /// The file's field.
        found: String,
        /// The field expected.
        expected: String,
    },
    /// The checksum is another.
    #[error("the checksum does not match: the partition file is corrupt or cut short")]
    Checksum,
    /// A value reaches beyond the end.
    #[error("cut short: {what} at byte {offset} take {needed} bytes, of which there are {left}")]
    Truncated {
        /// The noun: the things that are not all there.
        what: &'static str,
        /// The offset in the file at which they begin.
        offset: usize,
        /// The bytes that they take.
        needed: u64,
        /// The bytes there are.
        left: usize,
    },
    /// Bytes follow the last address.
    #[error("{0} bytes between the last address and the checksum")]
    TrailingBytes(usize),
    /// A number that no partition has.
    #[error("{found} {what}: there must be {least} to {most}")]
    Count {
        /// The noun: the thing that is counted.
        what: &'static str,
        /// The number there is.
        found: u64,
        /// The fewest.
        least: u64,
        /// The most.
        most: u64,
    },
    /// The constraints of a class cannot be read; offsets are counted from the beginning of its system.
    #[error("class {class}: {source}")]
    System {
        /// The class, from 0.
        class: usize,
        /// The reason.
        source: FormatError,
    },
    /// A class that contradicts itself or others.
    #[error("class {class}: {reason}")]
    Class {
        /// The class, from 0.
        class: usize,
        /// The reason.
        reason: String,
    },
    /// A part that does not fit the classes.
    #[error("part {part}: {reason}")]
    Part {
        /// The part, from 0.
        part: usize,
        /// The reason.
        reason: String,
    },
    /// Addresses that no circuit in parts has.
    #[error("the accesses are not those of a partition, which has {0}")]
    Addresses(&'static str),
}
