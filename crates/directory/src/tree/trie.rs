//! The stored part of the tree: a binary trie of present keys without chains of single children.
//!
//! A node is stored for each key and for each branch that has keys on both sides. Each has the digest of the highest
//! node of the full tree above which the next branch is: the digests of the chain below it, of which one child is
//! empty, are computed when they are needed. A tree of n keys has 2n − 1 stored nodes of 64 bytes.

use rayon::prelude::*;

use super::transition::{bit_of, combine};
use super::{Entry, Record, Transition, TreeError};
use crate::{DEPTH, Digest, KeyDigest, ValueDigest, empty_digest, hash_node};

/// The most keys of a tree.
pub const KEYS_MAX: usize = 1 << 28;

/// A sparse Merkle tree of keys.
#[derive(Clone, Debug)]
pub struct Tree {
    depth: u32,
    root: Option<u32>,
    nodes: Vec<Node>,
    entries: Vec<Entry>,
}

#[derive(Clone, Debug)]
struct Node {
    /// The digest just below the next branch above, or of the root.
    digest: Digest,
    /// The path of a key below.
    path: u128,
    kind: NodeKind,
}

#[derive(Clone, Copy, Debug)]
enum NodeKind {
    /// The entry's index.
    Leaf(u32),
    Branch {
        /// The distance from the root: the bit of the path that decides.
        bit: u8,
        children: [u32; 2],
    },
}

/// The way from the root towards a path.
struct Walk {
    /// The branches on the way.
    branches: Vec<u32>,
    end: End,
}

/// The end of a way.
enum End {
    /// The tree is empty.
    Nothing,
    /// A leaf on the path.
    Leaf { node: u32, entry: u32 },
    /// A node whose keys leave the path at this bit.
    Beside { node: u32, bit: u32 },
}

// === impl Tree ===

impl Default for Tree {
    fn default() -> Self {
        Self::new()
    }
}

impl Tree {
    /// The empty tree of [`DEPTH`] levels.
    pub const fn new() -> Self {
        Self {
            depth: DEPTH,
            root: None,
            nodes: Vec::new(),
            entries: Vec::new(),
        }
    }

    /// The empty tree of fewer levels, for tests and measurements: with few levels keys soon have the same path.
    ///
    /// # Errors
    ///
    /// [`TreeError::Depth`] unless there are 1 to [`DEPTH`] levels.
    pub fn with_depth(depth: u32) -> Result<Self, TreeError> {
        match (1..=DEPTH).contains(&depth) {
            true => Ok(Self {
                depth,
                ..Self::new()
            }),
            false => Err(TreeError::Depth(depth)),
        }
    }

    /// The tree of these entries, in any order. Chains are hashed on all threads of rayon's current pool.
    ///
    /// # Errors
    ///
    /// [`TreeError::Twice`], [`TreeError::Collision`], [`TreeError::Full`], [`TreeError::Depth`].
    pub fn from_entries(depth: u32, entries: Vec<Entry>) -> Result<Self, TreeError> {
        let mut tree = Self::with_depth(depth)?;
        if entries.len() > KEYS_MAX {
            return Err(TreeError::Full);
        }
        tree.nodes.reserve_exact(2 * entries.len());
        tree.entries.reserve_exact(entries.len());
        for entry in entries {
            let walk = tree.walk(entry.key.path(depth));
            if let End::Leaf { entry: present, .. } = walk.end {
                let present = tree.entries[present as usize].key;
                return Err(match present == entry.key {
                    true => TreeError::Twice(present),
                    false => TreeError::Collision {
                        key: entry.key,
                        present,
                    },
                });
            }
            tree.insert(&walk, entry);
        }
        tree.hash_all();
        Ok(tree)
    }

    /// The number of levels.
    pub const fn depth(&self) -> u32 {
        self.depth
    }

    /// The number of present keys.
    pub const fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether no key is present.
    pub const fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The root.
    pub fn root(&self) -> Digest {
        match self.root {
            None => empty_digest(self.depth),
            Some(root) => self.nodes[root as usize].digest,
        }
    }

    /// The present keys in the order of their insertion, or of the list that the tree was made of.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The state of a key, if it is present.
    pub fn get(&self, key: &KeyDigest) -> Option<Record> {
        let entry = self.occupant(key)?;
        (entry.key == *key).then_some(entry.record)
    }

    /// The entry on a key's path: that of the key itself, or, if another key has the same path, of that one.
    pub fn occupant(&self, key: &KeyDigest) -> Option<&Entry> {
        match self.walk(key.path(self.depth)).end {
            End::Leaf { entry, .. } => Some(&self.entries[entry as usize]),
            _ => None,
        }
    }

    /// The place of a present key in [`entries`](Self::entries).
    pub(crate) fn index_of(&self, key: &KeyDigest) -> Option<usize> {
        match self.walk(key.path(self.depth)).end {
            End::Leaf { entry, .. } => {
                let index = entry as usize;
                (self.entries[index].key == *key).then_some(index)
            }
            _ => None,
        }
    }

    /// The digests beside a key's path, from the leaf's neighbour to the root's child.
    pub fn siblings(&self, key: &KeyDigest) -> Vec<Digest> {
        let path = key.path(self.depth);
        self.siblings_on(&self.walk(path), path)
    }

    /// Whether the key may be inserted or updated now.
    ///
    /// # Errors
    ///
    /// [`TreeError::Collision`], [`TreeError::LastVersion`], [`TreeError::Full`].
    pub fn check(&self, key: &KeyDigest) -> Result<(), TreeError> {
        self.next(&self.walk(key.path(self.depth)), key).map(|_| ())
    }

    /// Inserts the key with version 0, or replaces its value and increments its version. Returns the witness.
    ///
    /// # Errors
    ///
    /// As [`check`](Self::check); the tree is unchanged then.
    pub fn update(&mut self, key: KeyDigest, value: ValueDigest) -> Result<Transition, TreeError> {
        let path = key.path(self.depth);
        let walk = self.walk(path);
        let (before, version) = self.next(&walk, &key)?;
        let siblings = self.siblings_on(&walk, path);
        let after = Record { version, value };
        self.put(&walk, Entry { key, record: after });
        Ok(Transition {
            key,
            before,
            after,
            siblings,
        })
    }

    /// Like [`update`](Self::update) without a witness. Returns the key's new version.
    ///
    /// # Errors
    ///
    /// As [`check`](Self::check); the tree is unchanged then.
    pub fn set(&mut self, key: KeyDigest, value: ValueDigest) -> Result<u64, TreeError> {
        let walk = self.walk(key.path(self.depth));
        let (_, version) = self.next(&walk, &key)?;
        let record = Record { version, value };
        self.put(&walk, Entry { key, record });
        Ok(version)
    }

    /// The state of a key before an update, and the version that the update gives it.
    fn next(&self, walk: &Walk, key: &KeyDigest) -> Result<(Option<Record>, u64), TreeError> {
        let End::Leaf { entry, .. } = walk.end else {
            return match self.entries.len() < KEYS_MAX {
                true => Ok((None, 0)),
                false => Err(TreeError::Full),
            };
        };
        let present = &self.entries[entry as usize];
        if present.key != *key {
            return Err(TreeError::Collision {
                key: *key,
                present: present.key,
            });
        }
        let version = present.record.version.checked_add(1);
        let version = version.ok_or(TreeError::LastVersion(*key))?;
        Ok((Some(present.record), version))
    }

    /// Writes an entry at the end of a walk, and hashes up to the root.
    fn put(&mut self, walk: &Walk, entry: Entry) {
        let leaf = match walk.end {
            End::Leaf { node, entry: index } => {
                self.entries[index as usize] = entry;
                node
            }
            _ => self.insert(walk, entry),
        };
        let mut node = leaf;
        if let End::Beside { node: beside, .. } = walk.end {
            // The branch between the leaf and the node beside it: made last.
            let between = self.nodes.len() as u32 - 1;
            self.hash_below(beside, Some(between));
            self.hash_below(leaf, Some(between));
            node = between;
        }
        for branch in walk.branches.iter().rev() {
            self.hash_below(node, Some(*branch));
            node = *branch;
        }
        self.hash_below(node, None);
    }

    /// Hashes a node up to just below the branch above it, or up to the root.
    fn hash_below(&mut self, node: u32, branch: Option<u32>) {
        let top = match branch.map(|branch| self.nodes[branch as usize].kind) {
            Some(NodeKind::Branch { bit, .. }) => u32::from(bit) + 1,
            _ => 0,
        };
        self.nodes[node as usize].digest = self.hash_chain(node, top);
    }

    fn walk(&self, path: u128) -> Walk {
        let mut branches = Vec::new();
        let Some(mut node) = self.root else {
            let end = End::Nothing;
            return Walk { branches, end };
        };
        loop {
            let Node {
                path: other, kind, ..
            } = self.nodes[node as usize];
            let same = (path ^ other).leading_zeros();
            match kind {
                NodeKind::Leaf(entry) if same >= self.depth => {
                    let end = End::Leaf { node, entry };
                    return Walk { branches, end };
                }
                NodeKind::Branch { bit, children } if same >= u32::from(bit) => {
                    branches.push(node);
                    node = children[usize::from(bit_of(path, bit.into()))];
                }
                _ => {
                    let end = End::Beside { node, bit: same };
                    return Walk { branches, end };
                }
            }
        }
    }

    fn siblings_on(&self, walk: &Walk, path: u128) -> Vec<Digest> {
        let mut siblings: Vec<Digest> = (0..self.depth).map(empty_digest).collect();
        let height = |bit: u32| (self.depth - 1 - bit) as usize;
        for branch in &walk.branches {
            if let NodeKind::Branch { bit, children } = self.nodes[*branch as usize].kind {
                let beside = children[usize::from(!bit_of(path, bit.into()))];
                siblings[height(bit.into())] = self.nodes[beside as usize].digest;
            }
        }
        if let End::Beside { node, bit } = walk.end {
            siblings[height(bit)] = self.hash_chain(node, bit + 1);
        }
        siblings
    }

    /// Adds the leaf of a key that is not present, and a branch above it if there are other keys, without hashing.
    /// Returns the leaf; the branch is the last node.
    fn insert(&mut self, walk: &Walk, entry: Entry) -> u32 {
        let path = entry.key.path(self.depth);
        let kind = NodeKind::Leaf(self.entries.len() as u32);
        self.entries.push(entry);
        let leaf = self.add(path, kind);
        let End::Beside { node, bit } = walk.end else {
            self.root = Some(leaf);
            return leaf;
        };
        let children = match bit_of(path, bit) {
            false => [leaf, node],
            true => [node, leaf],
        };
        let bit = bit as u8;
        let between = self.add(path, NodeKind::Branch { bit, children });
        match walk.branches.last() {
            None => self.root = Some(between),
            Some(above) => {
                if let NodeKind::Branch { children, .. } = &mut self.nodes[*above as usize].kind {
                    let side = usize::from(children[1] == node);
                    children[side] = between;
                }
            }
        }
        leaf
    }

    fn add(&mut self, path: u128, kind: NodeKind) -> u32 {
        let digest = Digest::ZERO;
        self.nodes.push(Node { digest, path, kind });
        self.nodes.len() as u32 - 1
    }

    /// The digest on a node's path at the distance `top` from the root, from the digests of the node's children.
    fn hash_chain(&self, node: u32, top: u32) -> Digest {
        let node = &self.nodes[node as usize];
        let (digest, at) = match node.kind {
            NodeKind::Leaf(entry) => (self.entries[entry as usize].leaf(), self.depth),
            NodeKind::Branch { bit, children } => {
                let [left, right] = children.map(|child| &self.nodes[child as usize].digest);
                (hash_node(left, right), u32::from(bit))
            }
        };
        (top..at).rev().fold(digest, |digest, bit| {
            let sibling = empty_digest(self.depth - 1 - bit);
            combine(node.path, bit, &digest, &sibling)
        })
    }

    /// Hashes every node: leaves and their chains on all threads, which is nearly all work, then branches from below.
    fn hash_all(&mut self) {
        let mut order = Vec::with_capacity(self.nodes.len());
        let mut open: Vec<(u32, u32)> = self.root.map(|root| (root, 0)).into_iter().collect();
        while let Some((node, top)) = open.pop() {
            order.push((node, top));
            if let NodeKind::Branch { bit, children } = self.nodes[node as usize].kind {
                open.extend(children.map(|child| (child, u32::from(bit) + 1)));
            }
        }
        let is_leaf = |node: u32| matches!(self.nodes[node as usize].kind, NodeKind::Leaf(_));
        let (leaves, branches): (Vec<_>, Vec<_>) =
            order.into_iter().partition(|(node, _)| is_leaf(*node));
        let hashed: Vec<(u32, Digest)> = leaves
            .par_iter()
            .map(|(node, top)| (*node, self.hash_chain(*node, *top)))
            .collect();
        for (node, digest) in hashed {
            self.nodes[node as usize].digest = digest;
        }
        for (node, top) in branches.into_iter().rev() {
            self.nodes[node as usize].digest = self.hash_chain(node, top);
        }
    }
}
