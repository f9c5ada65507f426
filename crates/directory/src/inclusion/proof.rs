//! The proof and its verification.

use crate::tree::climb;
use crate::{DEPTH, Digest, Entry, KeyDigest, Record, Tree, empty_digest};

/// A proof of a key's state under a root.
///
/// Most siblings of a path are roots of empty subtrees: only the others are in the proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InclusionProof {
    leaf: ProvedLeaf,
    /// Bit h is 1 if the sibling at height h is given.
    bitmap: u128,
    /// The given siblings, the lowest first.
    siblings: Vec<Digest>,
}

/// The leaf on a key's path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProvedLeaf {
    /// No key has this path.
    Absent,
    /// The key is present, in this state.
    Present(Record),
    /// Another key has the same path, so that this one is absent.
    Occupied(Entry),
}

/// The reason why a proof does not show a key's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InclusionError {
    /// The number of siblings is not that of the bitmap.
    #[error("{found} siblings, where the bitmap has {expected}")]
    Siblings {
        /// The number of bits.
        expected: usize,
        /// The number of siblings.
        found: usize,
    },
    /// A sibling that is empty has to be left out: there is one proof only.
    #[error("the sibling at height {0} is the root of an empty subtree: it must be left out")]
    EmptySibling(u32),
    /// There is no tree of so many levels.
    #[error("{0} levels: a tree has 1 to {DEPTH}")]
    Depth(u32),
    /// A sibling above the root.
    #[error("a sibling at height {height}, in a tree of {depth} levels")]
    Height {
        /// The height.
        height: u32,
        /// The levels of the tree.
        depth: u32,
    },
    /// The key that is said to have the path does not have it, or is the key itself.
    #[error("the proof shows the leaf of {occupant}, which is not on the path of the key {key}")]
    Occupant {
        /// The key that the proof shows.
        occupant: KeyDigest,
        /// The key that the proof should be for.
        key: KeyDigest,
    },
    /// The path leads to another root.
    #[error("the proof leads to the root {found}, not to {expected}")]
    Root {
        /// The root that the proof should be for.
        expected: Digest,
        /// The root that it leads to.
        found: Digest,
    },
}

// === impl InclusionProof ===

impl InclusionProof {
    /// The proof of a key's state in a tree.
    pub fn new(tree: &Tree, key: &KeyDigest) -> Self {
        let leaf = match tree.occupant(key) {
            None => ProvedLeaf::Absent,
            Some(entry) if entry.key == *key => ProvedLeaf::Present(entry.record),
            Some(other) => ProvedLeaf::Occupied(*other),
        };
        let (mut bitmap, mut given) = (0, Vec::new());
        for (height, sibling) in (0..).zip(tree.siblings(key)) {
            if sibling != empty_digest(height) {
                bitmap |= 1 << height;
                given.push(sibling);
            }
        }
        Self {
            leaf,
            bitmap,
            siblings: given,
        }
    }

    /// Puts a proof together from untrusted parts.
    ///
    /// # Errors
    ///
    /// [`InclusionError::Siblings`], [`InclusionError::EmptySibling`].
    pub fn from_parts(
        leaf: ProvedLeaf,
        bitmap: u128,
        siblings: Vec<Digest>,
    ) -> Result<Self, InclusionError> {
        let (expected, found) = (bitmap.count_ones() as usize, siblings.len());
        if expected != found {
            return Err(InclusionError::Siblings { expected, found });
        }
        let proof = Self {
            leaf,
            bitmap,
            siblings,
        };
        let heights = (0..DEPTH).filter(|height| proof.gives(*height));
        for (height, sibling) in heights.zip(&proof.siblings) {
            if *sibling == empty_digest(height) {
                return Err(InclusionError::EmptySibling(height));
            }
        }
        Ok(proof)
    }

    /// The leaf that the proof shows.
    pub const fn leaf(&self) -> &ProvedLeaf {
        &self.leaf
    }

    /// The bitmap of the heights at which siblings are given.
    pub const fn bitmap(&self) -> u128 {
        self.bitmap
    }

    /// The given siblings, the lowest first.
    pub fn siblings(&self) -> &[Digest] {
        &self.siblings
    }

    const fn gives(&self, height: u32) -> bool {
        self.bitmap >> height & 1 == 1
    }

    /// Checks an untrusted proof for a key under a root. Returns the key's state, `None` if it is absent.
    ///
    /// # Errors
    ///
    /// [`InclusionError`] unless the proof shows a state of this key under this root.
    pub fn verify(&self, root: &Digest, key: &KeyDigest) -> Result<Option<Record>, InclusionError> {
        self.verify_at_depth(DEPTH, root, key)
    }

    /// Like [`verify`](Self::verify) for a tree of `depth` levels, 1 to [`DEPTH`]. The depth must be the
    /// verifier's own: never one that came with the proof.
    ///
    /// # Errors
    ///
    /// As [`verify`](Self::verify).
    pub fn verify_at_depth(
        &self,
        depth: u32,
        root: &Digest,
        key: &KeyDigest,
    ) -> Result<Option<Record>, InclusionError> {
        if !(1..=DEPTH).contains(&depth) {
            return Err(InclusionError::Depth(depth));
        }
        let highest = u128::BITS - self.bitmap.leading_zeros();
        if highest > depth {
            let height = highest - 1;
            return Err(InclusionError::Height { height, depth });
        }
        let (leaf, state) = match &self.leaf {
            ProvedLeaf::Absent => (Digest::ZERO, None),
            ProvedLeaf::Present(record) => (record.leaf(key), Some(*record)),
            ProvedLeaf::Occupied(entry) => {
                let is_beside = entry.key != *key && entry.key.path(depth) == key.path(depth);
                if !is_beside {
                    let (occupant, key) = (entry.key, *key);
                    return Err(InclusionError::Occupant { occupant, key });
                }
                (entry.leaf(), None)
            }
        };
        let mut given = self.siblings.iter();
        let mut siblings = Vec::with_capacity(depth as usize);
        for height in 0..depth {
            let sibling = match self.gives(height) {
                true => given.next().copied().unwrap_or_default(),
                false => empty_digest(height),
            };
            siblings.push(sibling);
        }
        let found = climb(key, leaf, &siblings);
        match found == *root {
            true => Ok(state),
            false => Err(InclusionError::Root {
                expected: *root,
                found,
            }),
        }
    }
}
