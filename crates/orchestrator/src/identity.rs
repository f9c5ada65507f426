//! Identities on which processes and releases agree: SHA-256 over an encoding defined here, not over a
//! library's print or hash of a value.
//!
//! A number is eight bytes, little-endian. A text or a byte string is its length as a number, followed by its
//! bytes. An enum value is the number of its variant, followed by the variant's contents. A list is its
//! length, followed by its elements.

use sha2::{Digest as _, Sha256};

/// An identity being computed.
pub(crate) struct Identity(Sha256);

// === impl Identity ===

impl Identity {
    /// Begins an identity; `domain` keeps identities of different kinds and versions apart.
    pub(crate) fn new(domain: &str) -> Self {
        let mut identity = Self(Sha256::new());
        identity.text(domain);
        identity
    }

    pub(crate) fn number(&mut self, number: u64) {
        self.0.update(number.to_le_bytes());
    }

    /// A length or an index.
    pub(crate) fn size(&mut self, size: usize) {
        self.number(size as u64);
    }

    pub(crate) fn flag(&mut self, flag: bool) {
        self.number(u64::from(flag));
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.size(bytes.len());
        self.0.update(bytes);
    }

    pub(crate) fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    /// An optional value.
    pub(crate) fn option<T>(&mut self, value: Option<T>, some: impl FnOnce(&mut Self, T)) {
        match value {
            None => self.number(0),
            Some(value) => {
                self.number(1);
                some(self, value);
            }
        }
    }

    /// First eight bytes of the digest, as a number.
    pub(crate) fn finish_short(self) -> u64 {
        let [a, b, c, d, e, f, g, h, ..] = self.finish();
        u64::from_le_bytes([a, b, c, d, e, f, g, h])
    }

    pub(crate) fn finish(self) -> [u8; 32] {
        self.0.finalize().into()
    }
}
