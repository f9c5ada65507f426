//! One update of a tree, with all that is needed to check it.

use crate::{Digest, KeyDigest, ValueDigest, hash_leaf, hash_node};

/// The state of a present key: how often it was updated, and its value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// The number of updates since the key was inserted.
    pub version: u64,
    /// The digest of the value.
    pub value: ValueDigest,
}

/// A present key with its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The digest of the key.
    pub key: KeyDigest,
    /// The key's state.
    pub record: Record,
}

/// One update of a tree: the witness of its proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transition {
    /// The digest of the key.
    pub key: KeyDigest,
    /// The state before; `None` for a key that is inserted.
    pub before: Option<Record>,
    /// The state after.
    pub after: Record,
    /// The digests beside the path, from the leaf's neighbour to the root's child.
    pub siblings: Vec<Digest>,
}

// === impl Entry ===

impl Entry {
    /// The digest of the key's leaf.
    pub fn leaf(&self) -> Digest {
        self.record.leaf(&self.key)
    }
}

// === impl Record ===

impl Record {
    /// The digest of the leaf of this key in this state.
    pub fn leaf(&self, key: &KeyDigest) -> Digest {
        hash_leaf(key, self.version, &self.value)
    }
}

// === impl Transition ===

impl Transition {
    /// The roots before and after, from the leaves and the siblings.
    pub fn roots(&self) -> [Digest; 2] {
        let before = self.before.map_or(Digest::ZERO, |it| it.leaf(&self.key));
        [before, self.after.leaf(&self.key)].map(|leaf| climb(&self.key, leaf, &self.siblings))
    }
}

/// The root above a leaf: one node for each sibling.
pub(crate) fn climb(key: &KeyDigest, leaf: Digest, siblings: &[Digest]) -> Digest {
    let depth = siblings.len() as u32;
    let path = key.path(depth);
    let levels = siblings.iter().zip((0..depth).rev());
    levels.fold(leaf, |digest, (sibling, bit)| {
        combine(path, bit, &digest, sibling)
    })
}

/// The node above `digest`, which is on the path, and its sibling. `bit` is the node's distance from the root.
pub(super) fn combine(path: u128, bit: u32, digest: &Digest, sibling: &Digest) -> Digest {
    match bit_of(path, bit) {
        false => hash_node(digest, sibling),
        true => hash_node(sibling, digest),
    }
}

/// Whether a path goes to the right at a node of this distance from the root.
pub(super) const fn bit_of(path: u128, bit: u32) -> bool {
    path >> (u128::BITS - 1 - bit) & 1 == 1
}
