//! Reading within a section.

use ark_ff::PrimeField;
use rayon::prelude::*;

use super::field::{MontgomeryField, canonical_from_le, width};
use super::{Format, FormatError, Reason};

/// Field elements one task converts.
const CHUNK: usize = 1 << 12;

/// A place in a section (or in a container's head). Whatever it cannot read is an error that names
/// format, section and offset; it never reads beyond the section.
#[derive(Clone, Debug)]
pub struct Cursor<'a> {
    format: &'static Format,
    section: Option<u32>,
    bytes: &'a [u8],
    /// Offset of the bytes in the file.
    base: u64,
    position: usize,
}

// === impl Cursor ===

impl<'a> Cursor<'a> {
    pub(super) const fn new(
        format: &'static Format,
        section: Option<u32>,
        bytes: &'a [u8],
        base: u64,
    ) -> Self {
        Self {
            format,
            section,
            bytes,
            base,
            position: 0,
        }
    }

    pub(super) const fn set_section(&mut self, section: Option<u32>) {
        self.section = section;
    }

    /// The number of bytes read so far.
    pub const fn position(&self) -> usize {
        self.position
    }

    /// Offset of the next byte in the file.
    pub const fn offset(&self) -> u64 {
        self.base + self.position as u64
    }

    /// The number of bytes left.
    pub const fn remaining(&self) -> usize {
        self.bytes.len() - self.position
    }

    /// An error at the next byte.
    pub const fn error(&self, reason: Reason) -> FormatError {
        self.error_at(self.offset(), reason)
    }

    /// An error at `offset` in the file.
    pub const fn error_at(&self, offset: u64, reason: Reason) -> FormatError {
        FormatError {
            format: self.format,
            section: self.section,
            offset,
            reason,
        }
    }

    /// The next `n` bytes.
    ///
    /// # Errors
    ///
    /// [`Reason::Truncated`] if there are fewer.
    pub fn bytes(&mut self, n: usize) -> Result<&'a [u8], FormatError> {
        let start = self.position;
        self.skip(n as u64)?;
        Ok(&self.bytes[start..self.position])
    }

    /// The bytes of `count` items of `size` bytes each.
    ///
    /// # Errors
    ///
    /// [`Reason::Truncated`] if there are fewer.
    pub fn items(&mut self, count: u64, size: usize) -> Result<&'a [u8], FormatError> {
        let start = self.position;
        self.skip(count.saturating_mul(size as u64))?;
        Ok(&self.bytes[start..self.position])
    }

    /// Passes over `n` bytes.
    ///
    /// # Errors
    ///
    /// [`Reason::Truncated`] if there are fewer.
    pub fn skip(&mut self, n: u64) -> Result<(), FormatError> {
        let left = self.remaining() as u64;
        if n > left {
            return Err(self.error(Reason::Truncated { needed: n, left }));
        }
        // At most the number of bytes left, which is a usize.
        self.position += n as usize;
        Ok(())
    }

    /// The next `N` bytes.
    ///
    /// # Errors
    ///
    /// [`Reason::Truncated`] if there are fewer.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], FormatError> {
        let mut array = [0; N];
        array.copy_from_slice(self.bytes(N)?);
        Ok(array)
    }

    /// The next four bytes as a number.
    ///
    /// # Errors
    ///
    /// [`Reason::Truncated`] if there are fewer.
    pub fn u32(&mut self) -> Result<u32, FormatError> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    /// The next eight bytes as a number.
    ///
    /// # Errors
    ///
    /// [`Reason::Truncated`] if there are fewer.
    pub fn u64(&mut self) -> Result<u64, FormatError> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// A field element in its usual form, [`width`] bytes.
    ///
    /// # Errors
    ///
    /// [`Reason::NotCanonical`] if it is not below the prime; [`Reason::Truncated`].
    pub fn field<F: PrimeField>(&mut self) -> Result<F, FormatError> {
        let offset = self.offset();
        canonical_from_le(self.bytes(width::<F>())?)
            .ok_or_else(|| self.error_at(offset, Reason::NotCanonical))
    }

    /// A field element in Montgomery form (times R, a power of two), as keys and points store them.
    ///
    /// # Errors
    ///
    /// [`Reason::NotCanonical`] if it is not below the prime; [`Reason::Truncated`].
    pub fn montgomery<F: MontgomeryField>(&mut self) -> Result<F, FormatError> {
        let offset = self.offset();
        F::from_montgomery_le(self.bytes(width::<F>())?)
            .ok_or_else(|| self.error_at(offset, Reason::NotCanonical))
    }

    /// `count` field elements in their usual form, converted in parallel.
    ///
    /// # Errors
    ///
    /// [`Reason::NotCanonical`] at the first that is not below the prime; [`Reason::Truncated`],
    /// before anything is allocated.
    pub fn fields<F: PrimeField>(&mut self, count: u64) -> Result<Vec<F>, FormatError> {
        self.convert(count, width::<F>(), canonical_from_le)
    }

    /// `count` items of `size` bytes, each converted by `convert`, in parallel. Where that gives
    /// nothing the item is reported as not canonical.
    ///
    /// # Errors
    ///
    /// [`Reason::NotCanonical`] at the first item that is not converted; [`Reason::Truncated`],
    /// before anything is allocated.
    pub fn convert<T: Copy + Default + Send>(
        &mut self,
        count: u64,
        size: usize,
        convert: impl Fn(&[u8]) -> Option<T> + Sync,
    ) -> Result<Vec<T>, FormatError> {
        let start = self.offset();
        let bytes = self.items(count, size)?;
        let mut items = vec![T::default(); bytes.len().checked_div(size).unwrap_or(0)];
        let bad = items
            .par_chunks_mut(CHUNK)
            .zip(bytes.par_chunks(CHUNK * size.max(1)))
            .enumerate()
            .filter_map(|(chunk, (items, bytes))| {
                for (i, (item, bytes)) in items.iter_mut().zip(bytes.chunks(size)).enumerate() {
                    match convert(bytes) {
                        Some(value) => *item = value,
                        None => return Some(chunk * CHUNK + i),
                    }
                }
                None
            })
            .min();
        match bad {
            None => Ok(items),
            Some(i) => Err(self.error_at(start + (i * size) as u64, Reason::NotCanonical)),
        }
    }

    /// Checks that no bytes are left.
    ///
    /// # Errors
    ///
    /// [`Reason::TrailingBytes`].
    pub fn finish(self) -> Result<(), FormatError> {
        match self.remaining() as u64 {
            0 => Ok(()),
            left => Err(self.error(Reason::TrailingBytes { left })),
        }
    }

    /// Checks that exactly `expected` bytes are left.
    ///
    /// # Errors
    ///
    /// [`Reason::Length`].
    pub fn expect_length(&self, expected: u64) -> Result<(), FormatError> {
        match self.remaining() as u64 {
            found if found == expected => Ok(()),
            found => Err(self.error(Reason::Length { expected, found })),
        }
    }
}
