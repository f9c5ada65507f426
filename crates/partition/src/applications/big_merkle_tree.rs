//! The benchmark of Hekaton (section 8.1): a Merkle tree of SHA-256 with one hash to a part, five
//! classes, and as many shared wires between neighbours as one likes.

use ark_ff::{BigInteger, PrimeField};
use proofmill_circuits::gadgets::{Builder, Lc, Word};
use proofmill_circuits::sha256::hash_words;
use sha2::{Digest, Sha256};

use super::SizeError;
use crate::{DistributedCircuit, Part, PartitionError, PartitionedCircuit, Wire};

/// Most binary levels of a tree.
pub const MAX_LOG_LEAVES: usize = 20;

/// Words of a digest that one shared wire has: 128 bits.
const HALF: usize = 4;

/// A Merkle tree over 2ᵏ leaves of 64 bytes: a part hashes one leaf, or the digests of two nodes, and then
/// hashes its digest again a given number of times. One more part makes the number of parts a power of
/// two.
///
/// Each part also passes a number of *tunable portals* on to the next: the square of the received value plus
/// the first half of the part's digest. Public inputs are the root's two halves and the sum of the values
/// that the last part received.
#[derive(Clone, Debug)]
pub struct BigMerkleTree<F: PrimeField> {
    log_leaves: usize,
    hashes: usize,
    portals: usize,
    leaves: Vec<[u32; 16]>,
    public_inputs: Vec<F>,
}

/// A digest: eight words, as SHA-256 counts them.
type Digest8 = [u32; 8];

// === impl BigMerkleTree ===

impl<F: PrimeField> BigMerkleTree<F> {
    /// The tree without a witness, to make keys of: 2^`log_leaves` leaves, `hashes` hashes in each
    /// part that has any, and `portals` tunable portals between neighbours.
    ///
    /// # Errors
    ///
    /// [`SizeError`] unless there are 1 to [`MAX_LOG_LEAVES`] levels and at least one hash.
    pub fn blank(log_leaves: usize, hashes: usize, portals: usize) -> Result<Self, SizeError> {
        SizeError::check("binary levels", log_leaves, 1, MAX_LOG_LEAVES)?;
        SizeError::check("hashes in each part", hashes, 1, u32::MAX as usize)?;
        Ok(Self {
            log_leaves,
            hashes,
            portals,
            leaves: Vec::new(),
            public_inputs: Vec::new(),
        })
    }

    /// The tree over these leaves of 16 words each.
    ///
    /// # Errors
    ///
    /// [`SizeError`] as [`blank`](Self::blank), and unless the leaves are a power of two, at least 2.
    pub fn new(leaves: Vec<[u32; 16]>, hashes: usize, portals: usize) -> Result<Self, SizeError> {
        if !leaves.len().is_power_of_two() {
            return Err(SizeError {
                what: "leaves",
                expected: "a power of two".to_owned(),
                found: leaves.len(),
            });
        }
        let log_leaves = leaves.len().trailing_zeros() as usize;
        let mut circuit = Self::blank(log_leaves, hashes, portals)?;
        circuit.leaves = leaves;
        circuit.public_inputs = circuit.evaluate();
        Ok(circuit)
    }

    fn num_leaves(&self) -> usize {
        1 << self.log_leaves
    }

    /// The part of the root; the one after it is the last.
    fn root(&self) -> usize {
        2 * self.num_leaves() - 2
    }

    /// The nodes below a part that is no leaf. Level after level, so that the nodes below node
    /// `leaves + i` are 2i and 2i + 1.
    fn below(&self, part: usize) -> [usize; 2] {
        let first = 2 * (part - self.num_leaves());
        [first, first + 1]
    }

    /// The public inputs, computed natively.
    fn evaluate(&self) -> Vec<F> {
        let mut digests: Vec<Digest8> = Vec::with_capacity(self.root() + 1);
        let mut carried = vec![F::zero(); self.portals];
        for part in 0..=self.root() {
            let mut digest = if part < self.num_leaves() {
                hash_natively(&self.leaves[part])
            } else {
                let [left, right] = self.below(part).map(|node| digests[node]);
                hash_natively(&[left, right].concat())
            };
            for _ in 1..self.hashes {
                digest = hash_natively(&digest);
            }
            let half: F = half_value(&digest[..HALF]);
            for (j, value) in carried.iter_mut().enumerate() {
                *value = match part {
                    0 => half + F::from(j as u64),
                    _ => value.square() + half,
                };
            }
            digests.push(digest);
        }
        let [first, second] =
            [0, HALF].map(|from| half_value(&digests[self.root()][from..][..HALF]));
        vec![first, second, carried.iter().sum()]
    }

    /// The 16 words that a part hashes: a leaf's are private, a node's come from other parts.
    fn message(
        &self,
        part: usize,
        wires: &mut Part<'_, F>,
        b: &mut Builder<F>,
    ) -> Result<Vec<Word>, PartitionError> {
        let mut words = Vec::with_capacity(16);
        if part < self.num_leaves() {
            let leaf = self.leaves.get(part).copied().unwrap_or_default();
            for word in leaf {
                words.push(Word::witness(b, word)?);
            }
            return Ok(words);
        }
        for node in self.below(part) {
            for half in 0..2 {
                let wire = wires.get(("digest", node, half))?;
                words.extend(split(b, wire)?);
            }
        }
        Ok(words)
    }

    /// Takes the tunable portals of the part before, and sets those for the next.
    fn carry(
        &self,
        part: usize,
        wires: &mut Part<'_, F>,
        b: &mut Builder<F>,
        digest: &[Word; 8],
    ) -> Result<(), PartitionError> {
        let (value, half) = pack::<F>(&digest[..HALF]);
        for j in 0..self.portals {
            if part == 0 {
                let index = F::from(j as u64);
                let sum = || half.clone().add(F::one(), &Lc::constant(index));
                wires.set_sum(("carried", part, j), value + index, sum)?;
                continue;
            }
            let came = wires.get(("carried", part - 1, j))?;
            let square = wires.witness(came.value.square())?;
            let of = |wire: Wire<F>| move || Lc::default().variable(F::one(), wire.variable);
            b.enforce(of(came), of(came), of(square))?;
            let sum = || half.clone().variable(F::one(), square.variable);
            wires.set_sum(("carried", part, j), value + square.value, sum)?;
        }
        Ok(())
    }

    fn hashing_part(&self, part: usize, wires: &mut Part<'_, F>) -> Result<(), PartitionError> {
        let mut b = Builder::new(wires.cs())?;
        let message = self.message(part, wires, &mut b)?;
        let mut digest = hash_words(&mut b, &message)?;
        for _ in 1..self.hashes {
            digest = hash_words(&mut b, &digest)?;
        }
        for half in 0..2 {
            let (value, sum) = pack(&digest[half * HALF..][..HALF]);
            if part == self.root() {
                let expected = wires.public_input(half)?;
                b.enforce_zero(|| sum.variable(-F::one(), expected.variable))?;
            } else {
                wires.set_sum(("digest", part, half), value, || sum)?;
            }
        }
        self.carry(part, wires, &mut b, &digest)?;
        b.finish()?;
        Ok(())
    }

    /// The last part: the values that came add up to the third public input.
    fn last_part(&self, part: usize, wires: &mut Part<'_, F>) -> Result<(), PartitionError> {
        let mut b = Builder::new(wires.cs())?;
        let expected = wires.public_input(2)?;
        let mut sum = Lc::default().variable(-F::one(), expected.variable);
        for j in 0..self.portals {
            let came = wires.get(("carried", part - 1, j))?;
            sum = sum.variable(F::one(), came.variable);
        }
        b.enforce_zero(|| sum)?;
        b.finish()?;
        Ok(())
    }
}

impl<F: PrimeField> DistributedCircuit<F> for BigMerkleTree<F> {
    fn part_witness(&self, part: usize) -> Vec<u8> {
        let leaf = self.leaves.get(part);
        leaf.map(|words| words.iter().flat_map(|word| word.to_be_bytes()).collect())
            .unwrap_or_default()
    }

    fn with_part_witness(&self, part: usize, bytes: &[u8]) -> Result<Self, String> {
        let expected = if part < self.num_leaves() { 64 } else { 0 };
        if bytes.len() != expected {
            let found = bytes.len();
            return Err(format!("{found} bytes, where the part takes {expected}"));
        }
        let mut circuit = self.clone();
        if let Some(leaf) = bytes.as_chunks::<64>().0.first() {
            let words = leaf.as_chunks::<4>().0;
            circuit.leaves = vec![[0; 16]; part];
            circuit
                .leaves
                .push(std::array::from_fn(|i| u32::from_be_bytes(words[i])));
        }
        Ok(circuit)
    }
}

impl<F: PrimeField> PartitionedCircuit<F> for BigMerkleTree<F> {
    fn num_parts(&self) -> usize {
        2 * self.num_leaves()
    }

    fn class(&self, part: usize) -> &'static str {
        match part {
            0 => "first leaf",
            part if part < self.num_leaves() => "leaf",
            part if part < self.root() => "parent",
            part if part == self.root() => "root",
            _ => "padding",
        }
    }

    fn num_public_inputs(&self) -> usize {
        3
    }

    fn public_inputs(&self) -> Vec<F> {
        self.public_inputs.clone()
    }

    fn synthesize(&self, part: usize, wires: &mut Part<'_, F>) -> Result<(), PartitionError> {
        match part <= self.root() {
            true => self.hashing_part(part, wires),
            false => self.last_part(part, wires),
        }
    }
}

fn hash_natively(words: &[u32]) -> Digest8 {
    let mut hasher = Sha256::new();
    words
        .iter()
        .for_each(|word| hasher.update(word.to_be_bytes()));
    let digest = hasher.finalize();
    std::array::from_fn(|i| {
        let bytes = &digest[4 * i..4 * i + 4];
        bytes
            .iter()
            .fold(0, |word, byte| word << 8 | u32::from(*byte))
    })
}

/// Four words as a number, the first the most significant.
fn half_value<F: PrimeField>(words: &[u32]) -> F {
    let number = words
        .iter()
        .fold(0u128, |number, word| number << 32 | u128::from(*word));
    F::from(number)
}

/// Four words as a number, and its bits' sum.
fn pack<F: PrimeField>(words: &[Word]) -> (F, Lc<F>) {
    let values: Vec<u32> = words.iter().map(Word::value).collect();
    let mut sum = Lc::default();
    let mut weight = F::one();
    for word in words.iter().rev() {
        sum.add_number(weight, &word.0);
        weight *= F::from(1u64 << 32);
    }
    (half_value(&values), sum)
}

/// The words of a shared wire, each of whose bits is constrained; their number is the wire's value.
fn split<F: PrimeField>(b: &mut Builder<F>, wire: Wire<F>) -> Result<Vec<Word>, PartitionError> {
    let bytes = wire.value.into_bigint().to_bytes_be();
    let low = &bytes[bytes.len() - 4 * HALF..];
    let mut words = Vec::with_capacity(HALF);
    for bytes in low.chunks_exact(4) {
        let value = bytes
            .iter()
            .fold(0, |word, byte| word << 8 | u32::from(*byte));
        words.push(Word::witness(b, value)?);
    }
    let (_, sum) = pack(&words);
    b.enforce_zero(|| sum.variable(-F::one(), wire.variable))?;
    Ok(words)
}
