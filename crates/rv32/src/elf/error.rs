//! Reasons why a file is not loaded.

use std::fmt;

use thiserror::Error;

use super::ELF_BYTES_MAX;
use crate::program::ProgramError;

/// A fault of an executable.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ElfError {
    /// The file is larger than [`ELF_BYTES_MAX`].
    #[error(
        "the file has {bytes} bytes, of which {ELF_BYTES_MAX} are allowed; strip symbols and debug sections"
    )]
    TooLarge {
        /// Length of the file, bytes.
        bytes: usize,
    },
    /// The file ends before a part that its header announces.
    #[error(
        "the file has {bytes} bytes, but its {part} ends at byte {end}; the file is cut off or not ELF"
    )]
    Truncated {
        /// Name of the part.
        part: &'static str,
        /// Offset after the part, bytes.
        end: u64,
        /// Length of the file, bytes.
        bytes: usize,
    },
    /// A field of the file header has a value that no supported executable has.
    #[error("header field {field} is {value:#x}, not {expected:#x}: {}", .field.advice())]
    Header {
        /// The field.
        field: HeaderField,
        /// Its value.
        value: u32,
        /// The only accepted value.
        expected: u32,
    },
    /// More than [`SEGMENTS_MAX`](crate::program::SEGMENTS_MAX) program headers, or none.
    #[error(
        "{count} program headers; from 1 to {} are allowed",
        crate::program::SEGMENTS_MAX
    )]
    ProgramHeaderCount {
        /// Number of program headers.
        count: u16,
    },
    /// A program header with a fault.
    #[error("program header {index}: {fault}")]
    Segment {
        /// Position among the program headers, from 0.
        index: usize,
        /// The fault.
        fault: SegmentFault,
    },
    /// Program headers that together refer to more bytes than the file has.
    #[error("program headers share bytes of the file; give each segment its own")]
    SharedBytes,
    /// Segments that are no program.
    #[error(transparent)]
    Program(#[from] ProgramError),
}

/// Fault of one program header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SegmentFault {
    /// A type that needs a dynamic loader, or is unknown.
    #[error("type {kind:#x} is not supported; link statically")]
    Kind {
        /// The field `p_type`.
        kind: u32,
    },
    /// A segment both writable and executable.
    #[error("both writable and executable; code never changes, so separate it from data")]
    WritableCode,
    /// Flags without read, write and execute, or with others.
    #[error("flags {flags:#x} have no meaning here; expected read, write or execute")]
    Flags {
        /// The field `p_flags`.
        flags: u32,
    },
    /// More bytes in the file than in memory.
    #[error(
        "{file_bytes} bytes in the file for {memory_bytes} bytes of memory; the header is corrupt"
    )]
    Sizes {
        /// The field `p_filesz`.
        file_bytes: u32,
        /// The field `p_memsz`.
        memory_bytes: u32,
    },
    /// Code whose length is not a multiple of 4.
    #[error("code of {bytes} bytes, not a multiple of 4; compile without compressed instructions")]
    PartialInstruction {
        /// The field `p_filesz`.
        bytes: u32,
    },
}

/// Field of the file header with one accepted value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderField {
    /// The first four bytes, as a little-endian number.
    Magic,
    /// Word size.
    Class,
    /// Byte order.
    Encoding,
    /// Version in the identification.
    IdentificationVersion,
    /// Operating system.
    OsAbi,
    /// Type of the file.
    Type,
    /// Instruction set.
    Machine,
    /// Version of the format.
    Version,
    /// Extensions and floating-point convention.
    Flags,
    /// Length of the file header.
    HeaderBytes,
    /// Length of a program header.
    ProgramHeaderBytes,
}

// === impl HeaderField ===

impl HeaderField {
    fn advice(self) -> &'static str {
        match self {
            Self::Magic => "not an ELF file",
            Self::Class => "compile for 32 bits",
            Self::Encoding => "compile for little-endian",
            Self::OsAbi => "compile without an operating system",
            Self::Type => {
                "link statically at fixed addresses, not as an object or position-independent"
            }
            Self::Machine => "compile for RISC-V",
            Self::Flags => {
                "compile for rv32im with the ilp32 convention, without compressed instructions"
            }
            Self::IdentificationVersion
            | Self::Version
            | Self::HeaderBytes
            | Self::ProgramHeaderBytes => "the header is corrupt",
        }
    }
}

impl fmt::Display for HeaderField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Magic => "EI_MAG",
            Self::Class => "EI_CLASS",
            Self::Encoding => "EI_DATA",
            Self::IdentificationVersion => "EI_VERSION",
            Self::OsAbi => "EI_OSABI",
            Self::Type => "e_type",
            Self::Machine => "e_machine",
            Self::Version => "e_version",
            Self::Flags => "e_flags",
            Self::HeaderBytes => "e_ehsize",
            Self::ProgramHeaderBytes => "e_phentsize",
        })
    }
}
