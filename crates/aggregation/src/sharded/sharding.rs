//! The division of the places of an aggregate over shards.

use crate::kzg::Residue;
use crate::srs::MAX_CAPACITY;

/// The largest number of shards.
pub const MAX_SHARDS: usize = 1 << 10;

/// The division of n proofs over k shards: shard j has the places i ≡ j (mod k).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sharding {
    count: usize,
    shards: usize,
}

/// Numbers that no division has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ShardingError {
    /// The number of proofs is zero, or above [`MAX_CAPACITY`].
    #[error("{0} proofs: an aggregate is of 1 to {MAX_CAPACITY}")]
    Count(usize),
    /// The number of shards is no power of two, or above the number of proofs, padded to a power of two, or above
    /// [`MAX_SHARDS`].
    #[error("{shards} shards for {count} proofs: it is a power of two up to {shards_max}")]
    Shards {
        /// The number of shards.
        shards: usize,
        /// The number of proofs.
        count: usize,
        /// The largest number of shards for so many proofs.
        shards_max: usize,
    },
}

// === impl Sharding ===

impl Sharding {
    /// A division of `count` proofs over `shards` shards: a power of two, at most `count` rounded up to a power of two.
    ///
    /// # Errors
    ///
    /// [`ShardingError`] for other numbers.
    pub fn new(count: usize, shards: usize) -> Result<Self, ShardingError> {
        if !(1..=MAX_CAPACITY).contains(&count) {
            return Err(ShardingError::Count(count));
        }
        let shards_max = count.next_power_of_two().min(MAX_SHARDS);
        if !shards.is_power_of_two() || shards > shards_max {
            return Err(ShardingError::Shards {
                shards,
                count,
                shards_max,
            });
        }
        Ok(Self { count, shards })
    }

    /// The number of proofs, n.
    pub const fn count(self) -> usize {
        self.count
    }

    /// The number of shards, k.
    pub const fn shards(self) -> usize {
        self.shards
    }

    /// The places of a shard, numbered from 0: none if there are fewer proofs than shards.
    pub fn places(self, shard: usize) -> impl ExactSizeIterator<Item = usize> {
        (shard..self.count).step_by(self.shards)
    }

    /// The items at a shard's places, of items of all proofs in their order.
    ///
    /// # Panics
    ///
    /// If there are fewer items than proofs.
    pub fn items<T: Clone>(self, shard: usize, items: &[T]) -> Vec<T> {
        let places = self.places(shard);
        places.map(|place| items[place].clone()).collect()
    }

    /// N: the number of proofs padded to a power of two.
    pub(super) const fn size(self) -> usize {
        self.count.next_power_of_two()
    }

    /// The length of a shard's part of a key of length N.
    pub(super) const fn shard_size(self) -> usize {
        self.size() / self.shards
    }

    /// Rounds on the vectors of shards.
    pub(super) const fn shard_rounds(self) -> usize {
        self.shard_size().trailing_zeros() as usize
    }

    /// Rounds on one point of each shard.
    pub(super) const fn leader_rounds(self) -> usize {
        self.shards.trailing_zeros() as usize
    }

    /// The shard's places, padding included.
    pub(super) const fn residue(self, shard: usize) -> Residue {
        Residue {
            first: shard,
            step: self.shards,
        }
    }
}
