//! A worker's side before the challenges are drawn: commitments, with keys that are small.

use std::path::Path;

use proofmill_groth16::mirage::{Commitment, CommitmentKey};

use super::task::CommitTask;
use crate::Partition;
use crate::proof::index::require_number;
use crate::proof::{ClassKeys, IndexError, PartitionCurve, ProveError};

/// The commitment keys of all classes, in their order. They are a small part of the proving keys: workers commit, and
/// coordinators check commitments, without the rest.
#[derive(Clone, Debug)]
pub struct CommitmentKeys<E: PartitionCurve>(Vec<CommitmentKey<E>>);

// === impl CommitmentKeys ===

impl<E: PartitionCurve> CommitmentKeys<E> {
    /// The keys of a partition's classes.
    ///
    /// # Errors
    ///
    /// [`IndexError::Classes`] for another number of keys, [`IndexError::OtherCircuit`] if one is for another class.
    pub fn new(
        partition: &Partition<E::ScalarField>,
        keys: Vec<CommitmentKey<E>>,
    ) -> Result<Self, IndexError> {
        require_number(partition, keys.len())?;
        let classes = partition.classes();
        for (number, (class, key)) in classes.iter().zip(&keys).enumerate() {
            let is_of_class =
                *key.circuit() == class.digest() && key.num_committed() == class.layout().committed;
            if !is_of_class {
                return Err(IndexError::OtherCircuit {
                    class: number,
                    name: class.name().to_owned(),
                });
            }
        }
        Ok(Self(keys))
    }

    /// Reads the keys from the files of the proving keys in a folder, and no more of these.
    ///
    /// # Errors
    ///
    /// [`IndexError::Key`] if one cannot be read, and as for [`new`](Self::new).
    pub fn read(partition: &Partition<E::ScalarField>, folder: &Path) -> Result<Self, IndexError> {
        let classes = 0..partition.classes().len();
        let keys = classes.map(|class| {
            let key = CommitmentKey::load(&ClassKeys::<E>::path(folder, class));
            key.map_err(|source| IndexError::Key { class, source })
        });
        Self::new(partition, keys.collect::<Result<_, _>>()?)
    }

    /// Commits to a part's share of the traces.
    ///
    /// # Errors
    ///
    /// [`ProveError`] for a task of another partition.
    pub fn commit(
        &self,
        partition: &Partition<E::ScalarField>,
        task: &CommitTask<E>,
    ) -> Result<Commitment<E>, ProveError> {
        let part = task.part();
        let key = self.of(partition.class_of(part)?)?;
        let commitment = key.commit_with(&task.trace.committed(), &task.opening);
        commitment.map_err(|source| ProveError::Part { part, source })
    }

    pub(super) fn of(&self, class: usize) -> Result<&CommitmentKey<E>, IndexError> {
        self.0.get(class).ok_or(IndexError::Classes {
            expected: class + 1,
            found: self.0.len(),
        })
    }
}
