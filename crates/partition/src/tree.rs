//! The Merkle tree over the states between parts: four children to a node, hashed by Poseidon2.

use std::fmt;

use proofmill_kernels::Poseidon2Field;

/// Children of a node, and elements of a leaf.
pub const ARITY: usize = 4;

/// Children that do not exist.
const EMPTY: u64 = 0;

/// The state between two parts: the leaf at position i is the state after part i, counted from 1;
/// position 0 is the state that the public inputs make. It is secret: `Debug` prints no element.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Leaf<F> {
    /// A random element, which hides the others; 0 at position 0, where all is public.
    pub salt: F,
    /// The value of the last entry of the trace by address; 0 before the first.
    pub value: F,
    /// The running sum of the trace by part, less that of the trace by address.
    pub traces: F,
    /// The running sum of what is put into the multiset, less that of what is taken.
    pub multiset: F,
}

/// A leaf's way to the root: the four children of each node on it, from the leaves upwards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path<F> {
    children: Vec<[F; ARITY]>,
}

/// A tree with all its nodes.
#[derive(Clone, Debug)]
pub struct Tree<F> {
    /// Levels from the leaves' hashes to the root; nodes without leaves below them are left out at the end.
    levels: Vec<Vec<F>>,
}

/// One node of four: Poseidon2 with feed-forward, truncated to an element (the compression function
/// of section 3.1 of eprint.iacr.org/2023/323).
pub fn compress<F: Poseidon2Field>(nodes: &[F; ARITY]) -> F {
    let mut state = *nodes;
    F::poseidon2().permute(&mut state);
    state[0] + nodes[0]
}

/// Levels of nodes above `leaves` leaves, at least one.
pub fn depth(leaves: usize) -> usize {
    let mut depth = 1;
    while leaves > 1usize.checked_shl(2 * depth as u32).unwrap_or(usize::MAX) {
        depth += 1;
    }
    depth
}

/// The child that a position is, on a level: two bits of it, the less significant one first.
pub(crate) const fn child(position: usize, level: usize) -> [bool; 2] {
    let child = position >> (2 * level);
    [child & 1 == 1, child & 2 == 2]
}

impl<F> fmt::Debug for Leaf<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leaf").finish_non_exhaustive()
    }
}

// === impl Leaf ===

impl<F: Poseidon2Field> Leaf<F> {
    /// The node that the leaf is.
    pub fn hash(&self) -> F {
        compress(&[self.salt, self.value, self.traces, self.multiset])
    }
}

// === impl Path ===

impl<F: Poseidon2Field> Path<F> {
    /// A path of the four children of each node, from the leaves upwards.
    pub const fn new(children: Vec<[F; ARITY]>) -> Self {
        Self { children }
    }

    /// A path of zeros.
    #[cfg(feature = "prover")]
    pub(crate) fn zero(depth: usize) -> Self {
        Self::new(vec![[F::zero(); ARITY]; depth])
    }

    /// The four children of each node, from the leaves upwards.
    pub fn children(&self) -> &[[F; ARITY]] {
        &self.children
    }

    /// True if a leaf is at a position under the root of a tree of this depth.
    pub fn leads(&self, leaf: &Leaf<F>, position: usize, depth: usize, root: F) -> bool {
        let mut node = leaf.hash();
        let beyond = position.checked_shr(2 * depth as u32).unwrap_or(0);
        if self.children.len() != depth || beyond != 0 {
            return false;
        }
        for (level, children) in self.children.iter().enumerate() {
            let [low, high] = child(position, level);
            if children[usize::from(low) + 2 * usize::from(high)] != node {
                return false;
            }
            node = compress(children);
        }
        node == root
    }
}

// === impl Tree ===

impl<F: Poseidon2Field> Tree<F> {
    /// The tree over these leaves, of the least [`depth`].
    pub fn new(leaves: &[Leaf<F>]) -> Self {
        let mut levels = vec![leaves.iter().map(Leaf::hash).collect::<Vec<F>>()];
        for level in 0..depth(leaves.len()) {
            let nodes = levels[level]
                .chunks(ARITY)
                .map(|some| compress(&padded_children(some)));
            levels.push(nodes.collect());
        }
        Self { levels }
    }

    /// The root.
    pub fn root(&self) -> F {
        self.levels[self.levels.len() - 1][0]
    }

    /// The path from the leaf at a position to the root.
    ///
    /// # Panics
    ///
    /// If there is no such leaf.
    pub fn path(&self, position: usize) -> Path<F> {
        assert!(position < self.levels[0].len(), "leaf {position}");
        let children = |level: usize| {
            let first = (position >> (2 * level)) / ARITY * ARITY;
            let nodes = &self.levels[level];
            padded_children(&nodes[first..nodes.len().min(first + ARITY)])
        };
        Path::new((0..self.levels.len() - 1).map(children).collect())
    }
}

/// Pads one to four children with empty ones.
fn padded_children<F: Poseidon2Field>(nodes: &[F]) -> [F; ARITY] {
    std::array::from_fn(|i| nodes.get(i).copied().unwrap_or(F::from(EMPTY)))
}

#[cfg(test)]
mod tests {
    use ark_bn254::Fr;
    use ark_ff::UniformRand;
    use ark_std::test_rng;

    use super::*;

    #[test]
    fn depths_are_the_least() {
        let expected = [
            (1, 1),
            (2, 1),
            (4, 1),
            (5, 2),
            (16, 2),
            (17, 3),
            (64, 3),
            (65, 4),
        ];
        for (leaves, levels) in expected {
            assert_eq!(depth(leaves), levels, "{leaves} leaves");
        }
        assert_eq!(depth(usize::MAX), 32);
    }

    #[test]
    fn no_element_of_a_leaf_is_printed() {
        let leaf = Leaf {
            salt: Fr::from(7_001),
            value: Fr::from(7_002),
            traces: Fr::from(7_003),
            multiset: Fr::from(7_004),
        };
        let printed = format!("{leaf:?}");
        assert!(!printed.contains("700"), "{printed}");
    }

    #[test]
    fn paths_lead_from_their_own_position_only() {
        let rng = &mut test_rng();
        for count in [1, 2, 4, 5, 17, 30] {
            let leaves: Vec<Leaf<Fr>> = (0..count)
                .map(|_| Leaf {
                    salt: Fr::rand(rng),
                    value: Fr::rand(rng),
                    traces: Fr::rand(rng),
                    multiset: Fr::rand(rng),
                })
                .collect();
            let tree = Tree::new(&leaves);
            let depth = depth(count);
            for position in 0..count {
                let path = tree.path(position);
                for (other, leaf) in leaves.iter().enumerate() {
                    let leads = path.leads(leaf, position, depth, tree.root());
                    assert_eq!(leads, other == position, "{other} at {position} of {count}");
                }
                let leaf = &leaves[position];
                assert!(!path.leads(leaf, position ^ 1, depth, tree.root()));
                assert!(!path.leads(leaf, position + (1 << (2 * depth)), depth, tree.root()));
                assert!(!path.leads(leaf, position, depth + 1, tree.root()));
                assert!(!path.leads(leaf, position, depth, tree.root() + Fr::from(1u64)));
            }
        }
    }
}
