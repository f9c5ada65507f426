//! The constraints of a batch's parts.

use ark_ff::PrimeField;
use proofmill_circuits::gadgets::{Bit, Builder, Lc, Word};
use proofmill_circuits::sha256::compress;
use proofmill_partition::{Name, Part, PartitionError, PartitionedCircuit, Wire};

use super::UpdateBatch;
use super::path::{
    DigestWords, HALF, digest_witness, map_words, node, pack, pack_bits, split_bits, split_digest,
};
use crate::Record;
use crate::chain::{ROOT_INPUTS, public_inputs};
use crate::digest::{LEAF_MESSAGE_BITS, leaf_state};

/// The digests on both paths at one height: before the update, and after it.
type Pair = [DigestWords; 2];

/// A part under synthesis, and the gadgets' builder for it.
struct PartBuilder<'p, 'w, F: PrimeField> {
    batch: &'p UpdateBatch,
    wires: &'p mut Part<'w, F>,
    b: Builder<F>,
    /// The update, from 0.
    update: usize,
    /// The part of the update, from 0.
    position: usize,
}

// === impl UpdateBatch ===

impl<F: PrimeField> PartitionedCircuit<F> for UpdateBatch {
    fn num_parts(&self) -> usize {
        self.shape.parts()
    }

    fn class(&self, part: usize) -> &'static str {
        let parts = self.shape.parts_per_update();
        match (part.is_multiple_of(parts), (part + 1).is_multiple_of(parts)) {
            (true, true) => "update",
            (true, false) => "leaf",
            (false, true) => "root",
            (false, false) => "path",
        }
    }

    fn num_public_inputs(&self) -> usize {
        ROOT_INPUTS
    }

    fn public_inputs(&self) -> Vec<F> {
        public_inputs(&self.root_before, &self.root_after)
    }

    fn synthesize(&self, part: usize, wires: &mut Part<'_, F>) -> Result<(), PartitionError> {
        let parts = self.shape.parts_per_update();
        let b = Builder::new(wires.cs())?;
        let (update, position) = self.shape.place(part);
        let mut part = PartBuilder {
            batch: self,
            wires,
            b,
            update,
            position,
        };
        let (below, bits) = match part.position {
            0 => part.leaves()?,
            _ => part.receive()?,
        };
        let above = part.climb(below, &bits)?;
        match part.position + 1 == parts {
            true => part.roots(&above)?,
            false => part.pass_on(&above)?,
        }
        part.b.finish()?;
        Ok(())
    }
}

// === impl PartBuilder ===

impl<F: PrimeField> PartBuilder<'_, '_, F> {
    /// Both leaves, of the first part of an update, and the path's bits of this part. Hands the path's other bits to
    /// the update's other parts.
    fn leaves(&mut self) -> Result<(Pair, Vec<Bit>), PartitionError> {
        let (transition, is_idle) = self.batch.transition(self.update);
        let key = digest_witness(&mut self.b, &transition.key.0)?;
        let present = self.b.bit(transition.before.is_some())?;
        let idle = self.b.bit(is_idle)?;
        let record = transition.before.unwrap_or_default();
        let (version_before, before) = self.leaf(&key, &record)?;
        let (version_after, after) = self.leaf(&key, &transition.after)?;
        // After a present version the next one, else 0. Both are numbers of 64 bits: the next one of the last is none.
        let number = |version: [Word; 2], lc: Lc<F>| {
            let mut lc = lc;
            let low_first = version.iter().rev().flat_map(|word| word.0.iter());
            lc.add_number(F::one(), low_first);
            lc
        };
        self.b.enforce(
            || number(version_before, Lc::constant(F::one())),
            || Lc::default().bit(F::one(), &present),
            || number(version_after, Lc::default()),
        )?;
        let zero = [Word::constant(0); 8];
        let before = map_words(&mut self.b, [&before, &zero], |b, [leaf, zero]| {
            present.choose(b, leaf, zero)
        })?;
        let after = map_words(&mut self.b, [&before, &after], |b, [before, after]| {
            idle.choose(b, before, after)
        })?;

        let path = self.path_bits(&key);
        for position in 1..self.batch.shape.parts_per_update() {
            let (value, sum) = pack_bits(&path[self.batch.shape.levels_of(position)]);
            let name = ("path", self.update, position);
            self.wires.set_sum(name, value, || sum)?;
        }
        Ok((
            [before, after],
            path[self.batch.shape.levels_of(0)].to_vec(),
        ))
    }

    /// The version of a record and the digest of its leaf. The first block of the leaf's message is constant.
    fn leaf(
        &mut self,
        key: &DigestWords,
        record: &Record,
    ) -> Result<([Word; 2], DigestWords), PartitionError> {
        let value = digest_witness(&mut self.b, &record.value.0)?;
        let version = [(record.version >> 32) as u32, record.version as u32];
        let version = [
            Word::witness(&mut self.b, version[0])?,
            Word::witness(&mut self.b, version[1])?,
        ];
        let block = std::array::from_fn(|i| if i < 8 { key[i] } else { value[i - 8] });
        let state = compress(&mut self.b, &leaf_state().map(Word::constant), &block)?;
        let mut block = [Word::constant(0); 16];
        block[..2].copy_from_slice(&version);
        block[2] = Word::constant(1 << 31);
        block[15] = Word::constant(LEAF_MESSAGE_BITS);
        Ok((version, compress(&mut self.b, &state, &block)?))
    }

    /// The bits of the path by level: level 0, of the leaf, has the last.
    fn path_bits(&self, key: &DigestWords) -> Vec<Bit> {
        let depth = self.batch.shape.depth() as usize;
        let bit = |index: usize| key[index / 32].0[31 - index % 32];
        (0..depth).rev().map(bit).collect()
    }

    /// Both digests and the path's bits, from the parts before.
    fn receive(&mut self) -> Result<(Pair, Vec<Bit>), PartitionError> {
        let mut pair = [[Word::constant(0); 8]; 2];
        for (side, digest) in pair.iter_mut().enumerate() {
            let halves = [
                self.wires.get(self.node_name(self.position - 1, side, 0))?,
                self.wires.get(self.node_name(self.position - 1, side, 1))?,
            ];
            *digest = split_digest(&mut self.b, halves)?;
        }
        let packed = self.wires.get(("path", self.update, self.position))?;
        let levels = self.batch.shape.levels_per_part() as usize;
        let bits = split_bits(&mut self.b, packed, levels)?;
        Ok((pair, bits))
    }

    /// Hashes the part's levels of both paths, with the same siblings.
    fn climb(&mut self, below: Pair, bits: &[Bit]) -> Result<Pair, PartitionError> {
        let (transition, _) = self.batch.transition(self.update);
        let [mut before, mut after] = below;
        for (level, bit) in self.batch.shape.levels_of(self.position).zip(bits) {
            let sibling = transition.siblings.get(level).copied().unwrap_or_default();
            let sibling = digest_witness(&mut self.b, &sibling)?;
            before = node(&mut self.b, *bit, &before, &sibling)?;
            after = node(&mut self.b, *bit, &after, &sibling)?;
        }
        Ok([before, after])
    }

    /// Hands both digests to the next part.
    fn pass_on(&mut self, above: &Pair) -> Result<(), PartitionError> {
        for (side, digest) in above.iter().enumerate() {
            for (half, words) in digest.chunks_exact(HALF).enumerate() {
                let (value, sum) = pack(words);
                let name = self.node_name(self.position, side, half);
                self.wires.set_sum(name, value, || sum)?;
            }
        }
        Ok(())
    }

    /// The root before is the one after the update before, or the public one. The root after goes to the next update,
    /// or is the public one: a portal that is set and a public input that is compared are the same constraints, so that
    /// all last parts are of one class.
    fn roots(&mut self, [before, after]: &Pair) -> Result<(), PartitionError> {
        for (half, words) in before.chunks_exact(HALF).enumerate() {
            let expected = match self.update {
                0 => self.wires.public_input(half)?,
                update => self.wires.get(("root", update, half))?,
            };
            let (_, sum) = pack(words);
            self.equal(sum, expected)?;
        }
        let next = self.update + 1;
        for (half, words) in after.chunks_exact(HALF).enumerate() {
            let (value, sum) = pack(words);
            if next < self.batch.shape.updates() {
                self.wires.set_sum(("root", next, half), value, || sum)?;
            } else {
                let expected = self.wires.public_input(2 + half)?;
                self.equal(sum, expected)?;
            }
        }
        Ok(())
    }

    fn equal(&mut self, sum: Lc<F>, expected: Wire<F>) -> Result<(), PartitionError> {
        let difference = || sum.variable(-F::one(), expected.variable);
        Ok(self.b.enforce_zero(difference)?)
    }

    /// The name of half a digest after a part: on the path before (side 0) or after the update (side 1).
    fn node_name(&self, position: usize, side: usize, half: usize) -> Name {
        ("node", self.update, 4 * position + 2 * side + half).into()
    }
}
