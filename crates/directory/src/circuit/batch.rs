//! A batch of updates, with its witness.

use super::{BatchError, BatchShape};
use crate::{Digest, KeyDigest, Record, Transition, Tree, ValueDigest};

/// A batch of updates as a circuit in parts: a
/// [`PartitionedCircuit`](proofmill_partition::PartitionedCircuit) over any field of 254 bits or more.
#[derive(Clone, Debug)]
pub struct UpdateBatch {
    pub(super) shape: BatchShape,
    /// The number of the first of `updates`: 0, except in a batch for the code of one part, which has one update at most.
    pub(super) first: usize,
    /// The updates, `shape.updates()` at most.
    pub(crate) updates: Vec<Transition>,
    /// The update that the batch is filled up with.
    pub(crate) idle: Transition,
    pub(crate) root_before: Digest,
    pub(crate) root_after: Digest,
}

/// The updates of an epoch, as one batch after the other. A batch is made when it is asked for: the witness of an
/// update takes 4 KiB.
#[derive(Debug)]
pub struct EpochBatches<'u> {
    shape: BatchShape,
    tree: Tree,
    updates: &'u [(KeyDigest, ValueDigest)],
}

// === impl UpdateBatch ===

impl UpdateBatch {
    /// The batch without a witness, to make keys of.
    pub fn blank(shape: BatchShape) -> Self {
        Self {
            shape,
            first: 0,
            updates: Vec::new(),
            idle: Transition {
                key: KeyDigest::default(),
                before: None,
                after: Record::default(),
                siblings: vec![Digest::ZERO; shape.depth() as usize],
            },
            root_before: Digest::ZERO,
            root_after: Digest::ZERO,
        }
    }

    /// Applies updates to a tree, and keeps the witness. There may be none: such a batch shows that a root leads to
    /// itself.
    ///
    /// # Errors
    ///
    /// [`BatchError::Updates`], [`BatchError::Depth`]; [`BatchError::Tree`] for an update that the tree refuses, after
    /// those before it were applied.
    pub fn apply(
        shape: BatchShape,
        tree: &mut Tree,
        updates: &[(KeyDigest, ValueDigest)],
    ) -> Result<Self, BatchError> {
        let (found, most) = (updates.len(), shape.updates());
        if found > most {
            return Err(BatchError::Updates { found, most });
        }
        check_depth(shape, tree)?;
        let root_before = tree.root();
        let mut applied = Vec::with_capacity(updates.len());
        for (update, (key, value)) in updates.iter().enumerate() {
            let transition = tree.update(*key, *value);
            applied.push(transition.map_err(|source| BatchError::Tree { update, source })?);
        }
        Ok(Self {
            shape,
            first: 0,
            updates: applied,
            idle: idle(tree),
            root_before,
            root_after: tree.root(),
        })
    }

    /// The sizes that the batch's keys are for.
    pub const fn shape(&self) -> BatchShape {
        self.shape
    }

    /// The number of updates, without idle ones.
    pub const fn len(&self) -> usize {
        self.updates.len()
    }

    /// Whether all updates are idle.
    pub const fn is_empty(&self) -> bool {
        self.updates.is_empty()
    }

    /// The root before the first update.
    pub const fn root_before(&self) -> Digest {
        self.root_before
    }

    /// The root after the last update.
    pub const fn root_after(&self) -> Digest {
        self.root_after
    }

    /// The witness of an update of the circuit, and whether it is idle.
    pub(super) fn transition(&self, update: usize) -> (&Transition, bool) {
        let index = update.checked_sub(self.first);
        match index.and_then(|index| self.updates.get(index)) {
            Some(transition) => (transition, false),
            None => (&self.idle, true),
        }
    }
}

/// An update of the key with the digest 0 that changes nothing, whether that path is taken or not.
fn idle(tree: &Tree) -> Transition {
    let nobody = KeyDigest::default();
    let occupant = tree.occupant(&nobody);
    let key = occupant.map_or(nobody, |entry| entry.key);
    let before = occupant.map(|entry| entry.record);
    let version = before.map_or(0, |record| record.version.wrapping_add(1));
    let value = ValueDigest::default();
    Transition {
        key,
        before,
        after: Record { version, value },
        siblings: tree.siblings(&key),
    }
}

fn check_depth(shape: BatchShape, tree: &Tree) -> Result<(), BatchError> {
    let (expected, found) = (shape.depth(), tree.depth());
    match expected == found {
        true => Ok(()),
        false => Err(BatchError::Depth { expected, found }),
    }
}

// === impl EpochBatches ===

impl<'u> EpochBatches<'u> {
    /// The batches of these updates of a tree.
    ///
    /// # Errors
    ///
    /// [`BatchError::Depth`] for a tree that the shape is not for.
    pub fn new(
        shape: BatchShape,
        tree: Tree,
        updates: &'u [(KeyDigest, ValueDigest)],
    ) -> Result<Self, BatchError> {
        check_depth(shape, &tree)?;
        Ok(Self {
            shape,
            tree,
            updates,
        })
    }

    /// The tree after the batches so far.
    pub const fn tree(&self) -> &Tree {
        &self.tree
    }
}

impl Iterator for EpochBatches<'_> {
    type Item = Result<UpdateBatch, BatchError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.updates.is_empty() {
            return None;
        }
        let count = self.updates.len().min(self.shape.updates());
        let (batch, rest) = self.updates.split_at(count);
        self.updates = rest;
        let batch = UpdateBatch::apply(self.shape, &mut self.tree, batch);
        if batch.is_err() {
            self.updates = &[];
        }
        Some(batch)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let batches = self.updates.len().div_ceil(self.shape.updates());
        (batches.min(1), Some(batches))
    }
}
