//! A block header.

use std::fmt;

use sha2::{Digest, Sha256};

use super::{CompactTarget, U256};

/// Length of a serialised header.
pub const HEADER_BYTES: usize = 80;

/// The double SHA-256 of a header, in the order the hash function produces it. Printed reversed,
/// as explorers do.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct BlockHash(pub [u8; 32]);

/// An 80-byte block header (Bitcoin Core's `CBlockHeader`), kept as its serialisation.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Header([u8; HEADER_BYTES]);

// === impl BlockHash ===

impl BlockHash {
    /// The number that is compared with the target.
    pub fn to_number(self) -> U256 {
        U256::from_le_bytes(&self.0)
    }
}

impl fmt::Display for BlockHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_number().fmt(f)
    }
}

impl fmt::Debug for BlockHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

// === impl Header ===

impl Header {
    /// A header from its serialisation. Any 80 bytes are a header, though hardly ever a valid one.
    pub const fn new(bytes: [u8; HEADER_BYTES]) -> Self {
        Self(bytes)
    }

    /// The serialisation.
    pub const fn as_bytes(&self) -> &[u8; HEADER_BYTES] {
        &self.0
    }

    /// The block version.
    pub fn version(&self) -> i32 {
        self.number(0) as i32
    }

    /// The hash of the previous header.
    pub fn prev_hash(&self) -> BlockHash {
        BlockHash(self.field(4))
    }

    /// The root of the tree of the block's transactions, in hash order.
    pub fn merkle_root(&self) -> [u8; 32] {
        self.field(36)
    }

    /// Seconds since 1970-01-01, as the miner claims.
    pub fn time(&self) -> u32 {
        self.number(68)
    }

    /// The compact target.
    pub fn bits(&self) -> CompactTarget {
        CompactTarget(self.number(72))
    }

    /// The number that the miner varied to meet the target.
    pub fn nonce(&self) -> u32 {
        self.number(76)
    }

    /// The header's own hash.
    pub fn hash(&self) -> BlockHash {
        BlockHash(Sha256::digest(Sha256::digest(self.0)).into())
    }

    /// The header as 20 big-endian words: what SHA-256 reads.
    pub(super) fn words(&self) -> [u32; 20] {
        std::array::from_fn(|i| u32::from_be_bytes(self.field(4 * i)))
    }

    fn number(&self, offset: usize) -> u32 {
        u32::from_le_bytes(self.field(offset))
    }

    fn field<const N: usize>(&self, offset: usize) -> [u8; N] {
        std::array::from_fn(|i| self.0[offset + i])
    }
}

impl fmt::Debug for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Header")
            .field("hash", &self.hash())
            .field("prev_hash", &self.prev_hash())
            .field("time", &self.time())
            .field("bits", &self.bits())
            .field("nonce", &self.nonce())
            .finish_non_exhaustive()
    }
}
