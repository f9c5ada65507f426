//! The sizes that a batch's keys are for.

use std::fmt;
use std::ops::Range;

use proofmill_partition::MAX_PARTS;

use crate::{DEPTH, TreeError};

/// The levels of a part by default: 16 hashes, some 290,000 constraints.
pub const LEVELS_PER_PART: u32 = 8;

/// The sizes of a batch, which the keys of its circuit are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchShape {
    depth: u32,
    updates: usize,
    levels_per_part: u32,
}

/// A batch that cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BatchError {
    /// A number of levels into which a path cannot be cut.
    #[error("{levels} levels in each part: it must be a divisor of the tree's {depth}")]
    Levels {
        /// The levels of a part.
        levels: u32,
        /// The levels of the tree.
        depth: u32,
    },
    /// No updates, or more than a circuit may have parts for.
    #[error("a batch of {found} updates: there must be 1 to {most}")]
    Updates {
        /// The number asked for.
        found: usize,
        /// The most that there may be.
        most: usize,
    },
    /// A tree of another depth.
    #[error("the tree has {found} levels, where the batch is for {expected}")]
    Depth {
        /// The levels that the batch is for.
        expected: u32,
        /// The levels of the tree.
        found: u32,
    },
    /// The tree refused an update.
    #[error("update {update} of the batch: {source}")]
    Tree {
        /// The update, from 0.
        update: usize,
        /// The reason.
        source: TreeError,
    },
}

// === impl BatchShape ===

impl BatchShape {
    /// A batch of at most `updates` updates of a tree of [`DEPTH`] levels, cut into parts of `levels_per_part` levels.
    ///
    /// # Errors
    ///
    /// [`BatchError::Levels`], [`BatchError::Updates`].
    pub fn new(updates: usize, levels_per_part: u32) -> Result<Self, BatchError> {
        Self::with_depth(DEPTH, updates, levels_per_part)
    }

    /// Like [`new`](Self::new) for a tree of fewer levels, for tests and measurements.
    ///
    /// # Errors
    ///
    /// [`BatchError::Levels`], [`BatchError::Updates`].
    pub fn with_depth(
        depth: u32,
        updates: usize,
        levels_per_part: u32,
    ) -> Result<Self, BatchError> {
        let divides = levels_per_part > 0 && depth.is_multiple_of(levels_per_part);
        if !divides || !(1..=DEPTH).contains(&depth) {
            let levels = levels_per_part;
            return Err(BatchError::Levels { levels, depth });
        }
        let most = MAX_PARTS / (depth / levels_per_part) as usize;
        if !(1..=most).contains(&updates) {
            let found = updates;
            return Err(BatchError::Updates { found, most });
        }
        Ok(Self {
            depth,
            updates,
            levels_per_part,
        })
    }

    /// The levels of the tree.
    pub const fn depth(&self) -> u32 {
        self.depth
    }

    /// The most updates of a batch.
    pub const fn updates(&self) -> usize {
        self.updates
    }

    /// The levels of a part.
    pub const fn levels_per_part(&self) -> u32 {
        self.levels_per_part
    }

    /// The parts of one update.
    pub const fn parts_per_update(&self) -> usize {
        (self.depth / self.levels_per_part) as usize
    }

    /// The parts of the circuit.
    pub const fn parts(&self) -> usize {
        self.updates * self.parts_per_update()
    }

    /// The update that a part belongs to, from 0, and the part's position in it, from 0.
    pub(super) const fn place(&self, part: usize) -> (usize, usize) {
        let parts = self.parts_per_update();
        (part / parts, part % parts)
    }

    /// The levels that the part at a position of an update hashes; level 0 is the leaf's.
    pub(super) const fn levels_of(&self, position: usize) -> Range<usize> {
        let levels = self.levels_per_part as usize;
        position * levels..(position + 1) * levels
    }
}

impl fmt::Display for BatchShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            depth,
            updates,
            levels_per_part,
        } = self;
        write!(
            f,
            "batches of {updates} at most, a tree of {depth} levels, {levels_per_part} in each part"
        )
    }
}
