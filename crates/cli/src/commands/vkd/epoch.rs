//! The batches of an epoch, for keys that determine their sizes.

use proofmill_directory::circuit::{BatchShape, EpochBatches, UpdateBatch};
use proofmill_directory::store::{Epoch, KeyDirectory};
use proofmill_directory::{Digest, KeyDigest, KeyUpdate, Tree, ValueDigest};

use super::directory::open;
use crate::args::vkd::EpochArgs;
use crate::circuit_folder::{Description, Folder};
use crate::failure::Failure;

/// An epoch whose batches are to be made.
pub(super) struct EpochUpdates {
    pub(super) number: u64,
    pub(super) root_before: Digest,
    shape: BatchShape,
    updates: Vec<(KeyDigest, ValueDigest)>,
}

/// The description of keys for a key directory, and the sizes of its batches.
pub(super) fn describe(folder: &Folder) -> Result<(Description, BatchShape), Failure> {
    let description = folder.description()?;
    let shown = folder.path().display();
    let shape = description.circuit.batch_shape().map_err(|failure| {
        Failure::new(format!("{shown}: {}", failure.message()))
            .help("`proofmill vkd setup` makes keys for a key directory")
    })?;
    Ok((description, shape))
}

/// A count of batches with its noun.
pub(super) fn counted_batches(count: usize) -> String {
    match count {
        1 => "1 batch".to_owned(),
        count => format!("{count} batches"),
    }
}

// === impl EpochArgs ===

impl EpochArgs {
    /// The directory, its epoch, and the keys' description.
    pub(super) fn open(&self) -> Result<(KeyDirectory, EpochUpdates, Description), Failure> {
        let (description, shape) = describe(&Folder::at(&self.keys))?;
        let directory = open(&self.directory)?;
        let epoch = EpochUpdates::read(&directory, shape, self.number)?;
        Ok((directory, epoch, description))
    }
}

// === impl EpochUpdates ===

impl EpochUpdates {
    /// Reads the updates of an epoch of a directory.
    pub(super) fn read(
        directory: &KeyDirectory,
        shape: BatchShape,
        number: u64,
    ) -> Result<Self, Failure> {
        let Epoch {
            root_before,
            updates,
            ..
        } = directory.epoch_updates(number)?;
        Ok(Self {
            number,
            root_before,
            shape,
            updates: updates.iter().map(KeyUpdate::digests).collect(),
        })
    }

    /// The number of batches.
    pub(super) fn count(&self) -> usize {
        self.updates.len().div_ceil(self.shape.updates())
    }

    /// The batches, applied to the tree before the epoch.
    pub(super) fn batches(&self, tree: Tree) -> Result<EpochBatches<'_>, Failure> {
        Ok(EpochBatches::new(self.shape, tree, &self.updates)?)
    }

    /// A batch, by its number from 0.
    pub(super) fn batch(
        &self,
        directory: &KeyDirectory,
        number: usize,
    ) -> Result<UpdateBatch, Failure> {
        let (epoch, count) = (self.number, self.count());
        let none = || {
            let last = count.saturating_sub(1);
            Failure::new(format!(
                "epoch {epoch} has no batch {number}: its batches are 0 to {last}"
            ))
        };
        if number >= count {
            return Err(none());
        }
        let tree = directory.tree_before(epoch)?;
        for (index, batch) in self.batches(tree)?.enumerate() {
            let batch = batch?;
            if index == number {
                return Ok(batch);
            }
        }
        Err(none())
    }
}
