//! The states between parts: running sums at the challenges, in a tree.

use std::fmt;

use proofmill_kernels::Poseidon2Field;

use crate::multiset;
use crate::public_state::{Challenges, Running};
use crate::tree::{Leaf, Path, Tree};
use crate::{Opening, PartTrace, Partition, PartitionError};

/// The states before and after each part, in a tree. They are secret: `Debug` prints their number.
#[derive(Clone)]
pub struct States<F> {
    challenges: Challenges<F>,
    leaves: Vec<Leaf<F>>,
    tree: Tree<F>,
}

// === impl States ===

impl<F: Poseidon2Field> States<F> {
    /// The states after each part, computed from the values of both traces and of the transfers, which are requested
    /// one part at a time (`None` for the public inputs), and from a salt for each state.
    pub(crate) fn new(
        partition: &Partition<F>,
        mut share: impl FnMut(Option<usize>) -> PartTrace<F>,
        challenges: Challenges<F>,
        mut salt_of: impl FnMut(usize) -> F,
    ) -> Self {
        let order = &partition.order;
        let mut running = Running::new(challenges);
        let mut leaf = |part: Option<usize>, salt: F| {
            let values = share(part);
            let range = part.map_or_else(|| order.public(), |part| order.range(part));
            running.advance(
                order.by_part(range.clone()).iter().copied(),
                &values.by_part,
                order.by_address(range).into_iter(),
                &values.by_address,
            );
            let transfers = part.map_or(&[][..], |part| partition.transfers(part));
            running.multiset += multiset::sum(transfers, &values.transfers, challenges.alpha);
            running.leaf(salt)
        };
        let mut leaves = Vec::with_capacity(1 + order.parts());
        leaves.push(leaf(None, F::zero()));
        for part in 0..order.parts() {
            leaves.push(leaf(Some(part), salt_of(part)));
        }
        Self::from_leaves(challenges, leaves)
    }

    /// The states with these leaves, that of position 0 first.
    pub(crate) fn from_leaves(challenges: Challenges<F>, leaves: Vec<Leaf<F>>) -> Self {
        let tree = Tree::new(&leaves);
        Self {
            challenges,
            leaves,
            tree,
        }
    }

    /// The challenges that the states are for.
    pub const fn challenges(&self) -> Challenges<F> {
        self.challenges
    }

    /// The root of the tree.
    pub fn root(&self) -> F {
        self.tree.root()
    }

    /// The leaves, that of the public inputs first.
    pub fn leaves(&self) -> &[Leaf<F>] {
        &self.leaves
    }

    /// The path of the leaf at position 0, which a verifier checks with [`PublicState`](crate::PublicState).
    pub fn public_path(&self) -> Path<F> {
        self.tree.path(0)
    }

    /// The states before and after a part, counted from 0.
    ///
    /// # Errors
    ///
    /// [`PartitionError::NoPart`].
    pub fn opening(&self, part: usize) -> Result<Opening<F>, PartitionError> {
        let parts = self.leaves.len() - 1;
        if part >= parts {
            return Err(PartitionError::NoPart { part, parts });
        }
        Ok(Opening {
            root: self.root(),
            before: self.leaves[part],
            before_path: self.tree.path(part),
            after_salt: self.leaves[part + 1].salt,
            after_path: self.tree.path(part + 1),
        })
    }
}

impl<F> fmt::Debug for States<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("States")
            .field("leaves", &self.leaves.len())
            .finish_non_exhaustive()
    }
}
