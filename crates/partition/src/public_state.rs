//! The state that the public inputs make, which a verifier computes itself.

use ark_ff::batch_inversion;
use proofmill_kernels::Poseidon2Field;

use crate::tree::{Leaf, Path, depth};

/// The point at which the running sums are evaluated: drawn after the traces and the transfers are committed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Challenges<F> {
    /// The point: an entry of a trace is the fraction 1/(α − (value + β · address)), a value of the multiset
    /// 1/(α − value).
    pub alpha: F,
    /// The weight of addresses.
    pub beta: F,
}

/// The addresses with which a verifier checks that the public inputs are at position 0 of the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicState {
    /// The addresses of the first entries of the trace by address, as many as there are public
    /// inputs, each of which has the address that is its number from 1.
    addresses: Vec<u32>,
    depth: usize,
}

/// Sums at the challenges, and the last value by address: a leaf without its salt.
pub(crate) struct Running<F> {
    challenges: Challenges<F>,
    value: F,
    traces: F,
    pub(crate) multiset: F,
}

/// True if addresses begin with 1, and each further one is that of the entry before or the next: what
/// [`Check::EqualValues`](crate::Check::EqualValues) relies on. Once, instead of in every proof.
pub(crate) fn are_sorted(mut addresses: impl Iterator<Item = u32>) -> bool {
    let mut before = 0;
    addresses.all(|address| {
        let step = address.wrapping_sub(before);
        let is_first = before == 0;
        before = address;
        step == 1 || (step == 0 && !is_first)
    })
}

// === impl Challenges ===

impl<F: Poseidon2Field> Challenges<F> {
    /// The denominator of an entry.
    fn denominator(&self, address: u32, value: F) -> F {
        self.alpha - value - self.beta * F::from(address)
    }
}

// === impl Running ===

impl<F: Poseidon2Field> Running<F> {
    pub(crate) fn new(challenges: Challenges<F>) -> Self {
        Self {
            challenges,
            value: F::zero(),
            traces: F::zero(),
            multiset: F::zero(),
        }
    }

    /// Further entries of both traces: addresses, and values. Fractions with the denominator 0 count as 0; with
    /// such challenges no part with such an entry can be proved.
    pub(crate) fn advance(
        &mut self,
        addresses_by_part: impl Iterator<Item = u32>,
        by_part: &[F],
        addresses_by_address: impl Iterator<Item = u32>,
        by_address: &[F],
    ) {
        let denominator =
            |(address, value): (u32, &F)| self.challenges.denominator(address, *value);
        let entries = addresses_by_part.zip(by_part);
        let mut fractions: Vec<F> = entries.map(denominator).collect();
        let num_by_part = fractions.len();
        fractions.extend(addresses_by_address.zip(by_address).map(denominator));
        batch_inversion(&mut fractions);
        let (added, taken) = fractions.split_at(num_by_part);
        self.traces += added.iter().sum::<F>() - taken.iter().sum::<F>();
        self.value = by_address.last().copied().unwrap_or(self.value);
    }

    pub(crate) const fn leaf(&self, salt: F) -> Leaf<F> {
        Leaf {
            salt,
            value: self.value,
            traces: self.traces,
            multiset: self.multiset,
        }
    }
}

// === impl PublicState ===

impl PublicState {
    /// The public state of a partition with `parts` parts and the addresses of the first entries of its trace by
    /// address, one for each public input. `None` if no partition has these addresses: the first must be 1, and
    /// each further one equal to the one before or larger by one.
    pub fn new(addresses: Vec<u32>, parts: usize) -> Option<Self> {
        are_sorted(addresses.iter().copied()).then(|| Self {
            addresses,
            depth: depth(parts.saturating_add(1)),
        })
    }

    /// The addresses of the first entries of the trace by address.
    pub fn addresses(&self) -> &[u32] {
        &self.addresses
    }

    /// The number of public inputs.
    pub const fn num_public_inputs(&self) -> usize {
        self.addresses.len()
    }

    /// Levels of the tree, and so of the path of the leaf at position 0.
    pub const fn depth(&self) -> usize {
        self.depth
    }

    /// The leaf at position 0: the state after the public inputs. `None` for a wrong number of inputs, and if the
    /// challenges make the denominator of one zero: of random ones, a fraction as small as inputs/|F| does.
    pub fn leaf<F: Poseidon2Field>(
        &self,
        public_inputs: &[F],
        challenges: &Challenges<F>,
    ) -> Option<Leaf<F>> {
        if public_inputs.len() != self.addresses.len() {
            return None;
        }
        let has_pole = (1..)
            .zip(public_inputs)
            .any(|(address, value)| challenges.denominator(address, *value).is_zero());
        if has_pole {
            return None;
        }
        let mut running = Running::new(*challenges);
        // The first entries by address are of public inputs only: each has at least one.
        let value = |address: &u32| public_inputs[*address as usize - 1];
        let by_address: Vec<F> = self.addresses.iter().map(value).collect();
        let addresses = self.addresses.iter().copied();
        running.advance(1.., public_inputs, addresses, &by_address);
        Some(running.leaf(F::zero()))
    }

    /// Whether these public inputs are at position 0 of the tree with this root. A verifier must check this
    /// besides the proofs of all parts.
    pub fn holds<F: Poseidon2Field>(
        &self,
        public_inputs: &[F],
        challenges: &Challenges<F>,
        root: F,
        path: &Path<F>,
    ) -> bool {
        self.leaf(public_inputs, challenges)
            .is_some_and(|leaf| path.leads(&leaf, 0, self.depth, root))
    }
}
