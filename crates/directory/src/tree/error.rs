//! Refusals of the tree.

use super::KEYS_MAX;
use crate::{DEPTH, KeyDigest};

/// The reason why a tree was not changed, or not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TreeError {
    /// Another key has the same path. At 128 bits it takes some 2⁶⁴ hashes to find two such keys, and 2¹²⁸ to find one
    /// for a given key.
    #[error(
        "the key with the digest {key} has the path of another key, {present}: it cannot be inserted"
    )]
    Collision {
        /// The key that was refused.
        key: KeyDigest,
        /// The key that was there before.
        present: KeyDigest,
    },
    /// The key was updated 2⁶⁴ − 1 times.
    #[error("the key with the digest {0} has the last version, 2^64 - 1: it cannot be updated")]
    LastVersion(KeyDigest),
    /// The key is in a list of entries twice.
    #[error("the key with the digest {0} is there twice")]
    Twice(KeyDigest),
    /// There is no room for more keys.
    #[error("a tree has {KEYS_MAX} keys at most")]
    Full,
    /// A tree without levels, or with more than a path has bits.
    #[error("{0} levels: a tree has 1 to {DEPTH}")]
    Depth(u32),
}
