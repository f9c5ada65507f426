//! The states between parts: running products at the challenges, in a tree; and the state that a
//! verifier computes itself.

use std::ops::Range;

use ark_std::rand::{CryptoRng, RngCore};
use proofmill_kernels::Poseidon2Field;

use crate::plan::Plan;
use crate::tree::{Leaf, Path, Tree, depth};
use crate::{Opening, PartitionError};

/// The point at which the running products are evaluated: drawn after the traces are committed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Challenges<F> {
    /// The point: each entry's factor is α − (address + β · value).
    pub alpha: F,
    /// The weight of values.
    pub beta: F,
}

/// The states before and after each part, in a tree.
#[derive(Clone, Debug)]
pub struct States<F> {
    challenges: Challenges<F>,
    leaves: Vec<Leaf<F>>,
    tree: Tree<F>,
}

/// The addresses with which a verifier checks that the public inputs are at position 0 of the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicState {
    /// The addresses of the first entries of the trace by address, as many as there are public
    /// inputs, each of which has the address that is its number from 1.
    addresses: Vec<u32>,
    depth: usize,
}

/// Products at the challenges, and the last value by address: a leaf without its salt.
struct Running<F> {
    challenges: Challenges<F>,
    value: F,
    by_part: F,
    by_address: F,
}

// === impl Challenges ===

impl<F: Poseidon2Field> Challenges<F> {
    /// The factor of an entry.
    fn factor(&self, address: u32, value: F) -> F {
        self.alpha - F::from(address) - self.beta * value
    }
}

// === impl Running ===

impl<F: Poseidon2Field> Running<F> {
    fn new(challenges: Challenges<F>) -> Self {
        Self {
            challenges,
            value: F::zero(),
            by_part: F::one(),
            by_address: F::one(),
        }
    }

    /// Further entries of both traces: addresses, and values.
    fn advance(
        &mut self,
        addresses_by_part: impl Iterator<Item = u32>,
        by_part: &[F],
        addresses_by_address: impl Iterator<Item = u32>,
        by_address: &[F],
    ) {
        for (address, value) in addresses_by_part.zip(by_part) {
            self.by_part *= self.challenges.factor(address, *value);
        }
        for (address, value) in addresses_by_address.zip(by_address) {
            self.by_address *= self.challenges.factor(address, *value);
            self.value = *value;
        }
    }

    const fn leaf(&self, salt: F) -> Leaf<F> {
        Leaf {
            salt,
            value: self.value,
            by_part: self.by_part,
            by_address: self.by_address,
        }
    }
}

// === impl States ===

impl<F: Poseidon2Field> States<F> {
    /// The states that the values of both traces make; salts are drawn from `rng`.
    pub(crate) fn new(
        plan: &Plan,
        by_part: &[F],
        by_address: &[F],
        challenges: Challenges<F>,
        rng: &mut (impl RngCore + CryptoRng),
    ) -> Self {
        let mut running = Running::new(challenges);
        let mut leaf = |range: Range<usize>, salt: F| {
            let addresses = plan.by_address(range.clone());
            running.advance(
                plan.by_part(range.clone()).iter().copied(),
                &by_part[range.clone()],
                addresses.into_iter(),
                &by_address[range],
            );
            running.leaf(salt)
        };
        let mut leaves = Vec::with_capacity(1 + plan.parts());
        leaves.push(leaf(plan.public(), F::zero()));
        for part in 0..plan.parts() {
            leaves.push(leaf(plan.range(part), F::rand(rng)));
        }
        Self::from_leaves(challenges, leaves)
    }

    /// From all leaves, that of position 0 first.
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

    /// The path of the leaf at position 0, which a verifier checks with [`PublicState`].
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

// === impl PublicState ===

impl PublicState {
    pub(crate) fn new(plan: &Plan) -> Self {
        Self {
            addresses: plan.by_address(plan.public()),
            depth: depth(plan.parts() + 1),
        }
    }

    /// The number of public inputs.
    pub const fn num_public_inputs(&self) -> usize {
        self.addresses.len()
    }

    /// Levels of the tree, and so of the path of the leaf at position 0.
    pub const fn depth(&self) -> usize {
        self.depth
    }

    /// The leaf at position 0: the state that the public inputs make.
    ///
    /// # Errors
    ///
    /// [`PartitionError::Length`] for another number of public inputs.
    pub fn leaf<F: Poseidon2Field>(
        &self,
        public_inputs: &[F],
        challenges: &Challenges<F>,
    ) -> Result<Leaf<F>, PartitionError> {
        if public_inputs.len() != self.addresses.len() {
            return Err(PartitionError::Length {
                what: "public inputs",
                expected: self.addresses.len(),
                found: public_inputs.len(),
            });
        }
        let mut running = Running::new(*challenges);
        // The first entries by address are of public inputs only: each has at least one.
        let value = |address: &u32| public_inputs[*address as usize - 1];
        let by_address: Vec<F> = self.addresses.iter().map(value).collect();
        let addresses = self.addresses.iter().copied();
        running.advance(1.., public_inputs, addresses, &by_address);
        Ok(running.leaf(F::zero()))
    }

    /// True if these public inputs are at position 0 of the tree with this root: what a verifier
    /// must check besides the proofs of all parts.
    pub fn holds<F: Poseidon2Field>(
        &self,
        public_inputs: &[F],
        challenges: &Challenges<F>,
        root: F,
        path: &Path<F>,
    ) -> bool {
        match self.leaf(public_inputs, challenges) {
            Ok(leaf) => path.leads(&leaf, 0, self.depth, root),
            Err(_) => false,
        }
    }
}
