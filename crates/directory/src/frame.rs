//! The frame of the crate's binary formats: a magic of 8 bytes, a version of 4, the content, and the SHA-256 of all
//! that. Numbers are little-endian.

use sha2::{Digest as _, Sha256};

use crate::Digest;

const MAGIC_BYTES: usize = 8;
const VERSION: u32 = 1;
const CHECKSUM_BYTES: usize = 32;

/// Bytes of a frame without its content.
pub(crate) const FRAME_BYTES: usize = MAGIC_BYTES + 4 + CHECKSUM_BYTES;

/// A binary format.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Format {
    pub(crate) magic: &'static [u8; MAGIC_BYTES],
    /// A noun, for errors.
    pub(crate) what: &'static str,
}

/// Bytes that are not of the expected format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FormatError {
    /// The first bytes are not those of the format.
    #[error("no {what}: the first bytes are of something else")]
    Magic {
        /// The expected thing, a noun.
        what: &'static str,
    },
    /// The bytes are of another version of the format.
    #[error("a {what} of version {found}, where this program reads version {VERSION}")]
    Version {
        /// The expected thing, a noun.
        what: &'static str,
        /// The version there is.
        found: u32,
    },
    /// The bytes are not those that were written.
    #[error("a damaged {what}: the checksum does not match")]
    Checksum {
        /// The expected thing, a noun.
        what: &'static str,
    },
    /// The bytes end before the content does, or go on behind it.
    #[error("a {what} with too few or too many bytes, at its {field}")]
    Length {
        /// The expected thing, a noun.
        what: &'static str,
        /// The field that was read.
        field: &'static str,
    },
    /// A field with a value that it cannot have.
    #[error("a {what} with an impossible {field}")]
    Field {
        /// The expected thing, a noun.
        what: &'static str,
        /// The field.
        field: &'static str,
    },
}

/// The content of a frame, read field by field.
#[derive(Debug)]
pub(crate) struct Fields<'a> {
    what: &'static str,
    rest: &'a [u8],
}

// === impl Format ===

impl Format {
    /// The beginning of a frame, to which the content is to be added.
    pub(crate) fn begin(&self) -> Vec<u8> {
        let mut bytes = self.magic.to_vec();
        bytes.extend(VERSION.to_le_bytes());
        bytes
    }

    /// Adds the checksum.
    pub(crate) fn end(&self, mut bytes: Vec<u8>) -> Vec<u8> {
        let checksum = Sha256::digest(&bytes);
        bytes.extend(checksum);
        bytes
    }

    /// Checks an untrusted frame, and returns its content.
    pub(crate) fn open<'a>(&self, bytes: &'a [u8]) -> Result<Fields<'a>, FormatError> {
        let what = self.what;
        if !bytes.starts_with(self.magic) {
            return Err(FormatError::Magic { what });
        }
        let field = "frame";
        let too_short = FormatError::Length { what, field };
        let version = bytes[MAGIC_BYTES..]
            .first_chunk()
            .ok_or(too_short.clone())?;
        let found = u32::from_le_bytes(*version);
        if found != VERSION {
            return Err(FormatError::Version { what, found });
        }
        if bytes.len() < FRAME_BYTES {
            return Err(too_short);
        }
        let (framed, checksum) = bytes.split_at(bytes.len() - CHECKSUM_BYTES);
        if Sha256::digest(framed)[..] != *checksum {
            return Err(FormatError::Checksum { what });
        }
        let rest = &framed[MAGIC_BYTES + 4..];
        Ok(Fields { what, rest })
    }
}

// === impl Fields ===

impl<'a> Fields<'a> {
    /// Content without a frame; `what` is a noun, for errors.
    #[cfg(feature = "prover")]
    pub(crate) const fn of_content(what: &'static str, content: &'a [u8]) -> Self {
        Self {
            what,
            rest: content,
        }
    }

    pub(crate) fn take(
        &mut self,
        field: &'static str,
        count: usize,
    ) -> Result<&'a [u8], FormatError> {
        let what = self.what;
        let split = self.rest.split_at_checked(count);
        let (taken, rest) = split.ok_or(FormatError::Length { what, field })?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], FormatError> {
        let bytes = self.take(field, N)?;
        Ok(std::array::from_fn(|i| bytes[i]))
    }

    pub(crate) fn byte(&mut self, field: &'static str) -> Result<u8, FormatError> {
        self.array::<1>(field).map(|[byte]| byte)
    }

    pub(crate) fn u16(&mut self, field: &'static str) -> Result<u16, FormatError> {
        self.array(field).map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self, field: &'static str) -> Result<u32, FormatError> {
        self.array(field).map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self, field: &'static str) -> Result<u64, FormatError> {
        self.array(field).map(u64::from_le_bytes)
    }

    pub(crate) fn u128(&mut self, field: &'static str) -> Result<u128, FormatError> {
        self.array(field).map(u128::from_le_bytes)
    }

    pub(crate) fn digest(&mut self, field: &'static str) -> Result<Digest, FormatError> {
        self.array(field).map(Digest)
    }

    /// A number of things, each of which takes at least `least` of the bytes that are left: so an allocation for that
    /// many is in proportion to the bytes.
    pub(crate) fn count(
        &mut self,
        field: &'static str,
        least: usize,
    ) -> Result<usize, FormatError> {
        let count = self.u32(field)? as usize;
        match count <= self.rest.len() / least {
            true => Ok(count),
            false => Err(self.impossible(field)),
        }
    }

    /// A byte that is 0 or 1.
    #[cfg(feature = "prover")]
    pub(crate) fn flag(&mut self, field: &'static str) -> Result<bool, FormatError> {
        match self.byte(field)? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(self.impossible(field)),
        }
    }

    /// The error of a value that a field cannot have.
    pub(crate) const fn impossible(&self, field: &'static str) -> FormatError {
        let what = self.what;
        FormatError::Field { what, field }
    }

    /// Fails if anything is left.
    pub(crate) const fn end(self) -> Result<(), FormatError> {
        let (what, field) = (self.what, "end");
        match self.rest.is_empty() {
            true => Ok(()),
            false => Err(FormatError::Length { what, field }),
        }
    }
}
