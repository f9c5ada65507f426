//! Witnesses that come piece by piece.

use std::fmt;

use crate::interface::Error;

/// A witness that is being streamed to disk; what is dropped before it is submitted is removed.
pub struct Upload {
    bytes: u64,
}

// === impl Upload ===

impl Upload {
    /// Appends `chunk`.
    ///
    /// # Errors
    ///
    /// [`Error::TooLarge`], [`Error::Exhausted`] if inputs take all the room that they may,
    /// [`Error::Storage`].
    pub async fn write(&mut self, chunk: &[u8]) -> Result<(), Error> {
        self.bytes += chunk.len() as u64;
        Ok(())
    }

    /// The bytes that have come.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl fmt::Debug for Upload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Upload of {} bytes", self.bytes)
    }
}
