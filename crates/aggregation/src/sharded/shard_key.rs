//! The part of a key that a shard proves with.

use crate::aggregate::AggregateKind;
use crate::commitment::Commitment;
use crate::groth16::Groth16Index;
use crate::index::{AggregateProveError, IndexError, check_count};
use crate::mirage::{MirageClass, MirageParts};
use crate::srs::{CommitmentKey, Powers, Srs, SrsError};
use crate::torus::AggregationCurve;

use super::sharding::Sharding;

/// A shard's part of the reference string and of the key of an aggregate: a k-th of either.
#[derive(Clone, Debug)]
pub struct ShardKey<E: AggregationCurve> {
    pub(super) kind: AggregateKind,
    pub(super) sharding: Sharding,
    pub(super) shard: usize,
    /// Of each secret the powers that the shard's places have: aⁱ for i ≡ j (mod k).
    powers: [Powers<E>; 2],
    /// For each place the number of its class in `constants`.
    pub(super) class_of: Vec<u32>,
    /// The constants in the second group, for each class that the shard has places of.
    pub(super) constants: Vec<Vec<E::G2Affine>>,
    /// S₀ … S_u at the shard's places; none for Groth16.
    pub(super) inputs: Vec<Vec<E::G1Affine>>,
}

/// The reason why there is no such shard.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ShardKeyError {
    /// The parts are inconsistent, or the reference string is too small.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// The division has no such shard.
    #[error("shard {shard}: there are {shards}, numbered from 0")]
    Shard {
        /// The shard.
        shard: usize,
        /// The number of shards.
        shards: usize,
    },
    /// The division is for another number of proofs.
    #[error("a division of {found} proofs: the key is for {expected}")]
    Count {
        /// The key's number of proofs.
        expected: usize,
        /// The division's.
        found: usize,
    },
}

// === impl ShardKey ===

impl<E: AggregationCurve> ShardKey<E> {
    /// A shard's part of the key for these Mirage proofs. The parts must be those of the leader's verifying key.
    ///
    /// # Errors
    ///
    /// [`ShardKeyError`] if the string is too small, the parts are inconsistent, or there is no such shard.
    pub fn mirage(
        srs: &Srs<E>,
        parts: &MirageParts<E>,
        sharding: Sharding,
        shard: usize,
    ) -> Result<Self, ShardKeyError> {
        check_shard(parts.class_of.len(), sharding, shard)?;
        parts.check_shape()?;
        let classes: Vec<_> = parts.classes.iter().map(MirageClass::constants).collect();
        let classes = Classes::of_shard(sharding, shard, &parts.class_of, &classes);
        let inputs = parts.inputs.iter();
        let inputs = inputs.map(|points| sharding.items(shard, points));
        let inputs = inputs.collect();
        Self::assemble(srs, AggregateKind::Mirage, sharding, shard, classes, inputs)
    }

    /// A shard's part of the key for these Groth16 proofs.
    ///
    /// # Errors
    ///
    /// [`ShardKeyError`] if the string is too small or there is no such shard.
    pub fn groth16(
        srs: &Srs<E>,
        index: &Groth16Index<E>,
        sharding: Sharding,
        shard: usize,
    ) -> Result<Self, ShardKeyError> {
        check_shard(index.count(), sharding, shard)?;
        let deltas: Vec<_> = index.keys().iter().map(|key| vec![key.delta_g2]).collect();
        let classes = Classes::of_shard(sharding, shard, index.key_of(), &deltas);
        let kind = AggregateKind::Groth16;
        Self::assemble(srs, kind, sharding, shard, classes, Vec::new())
    }

    fn assemble(
        srs: &Srs<E>,
        kind: AggregateKind,
        sharding: Sharding,
        shard: usize,
        classes: Classes<E>,
        inputs: Vec<Vec<E::G1Affine>>,
    ) -> Result<Self, ShardKeyError> {
        let (count, capacity) = (sharding.count(), srs.capacity());
        if count > capacity {
            return Err(IndexError::Srs(SrsError::Count { count, capacity }).into());
        }
        let residue = sharding.residue(shard);
        let powers = srs.powers.each_ref();
        Ok(Self {
            kind,
            sharding,
            shard,
            powers: powers.map(|powers| powers.of_residue(residue, sharding.size())),
            class_of: classes.class_of,
            constants: classes.constants,
            inputs,
        })
    }

    /// The division.
    pub const fn sharding(&self) -> Sharding {
        self.sharding
    }

    /// The number of the shard, from 0.
    pub const fn shard(&self) -> usize {
        self.shard
    }

    /// The part of CM₁ of the parts' commitments D (Agg.C of figure 6) that is the shard's: of those at its places, in
    /// their order. The sum over all shards is what [`MirageIndex::commit`](crate::MirageIndex::commit) returns.
    ///
    /// # Errors
    ///
    /// [`AggregateProveError::Count`] if there is not one for each place.
    pub fn commit(&self, d: &[E::G1Affine]) -> Result<Commitment<E>, AggregateProveError> {
        check_count("commitments of a shard", self.class_of.len(), d.len())?;
        Ok(self.commitment_key().commit_first(d))
    }

    /// The shard's part of the commitment key, a key of N/k powers.
    pub(super) fn commitment_key(&self) -> CommitmentKey<'_, E> {
        CommitmentKey {
            powers: self.powers.each_ref(),
            size: self.sharding.shard_size(),
        }
    }
}

/// Checks that the division is for that many proofs, and has the shard.
fn check_shard(count: usize, sharding: Sharding, shard: usize) -> Result<(), ShardKeyError> {
    if count != sharding.count() {
        return Err(ShardKeyError::Count {
            expected: count,
            found: sharding.count(),
        });
    }
    let shards = sharding.shards();
    if shard < shards {
        Ok(())
    } else {
        Err(ShardKeyError::Shard { shard, shards })
    }
}

/// The classes that a shard has places of.
struct Classes<E: AggregationCurve> {
    class_of: Vec<u32>,
    constants: Vec<Vec<E::G2Affine>>,
}

// === impl Classes ===

impl<E: AggregationCurve> Classes<E> {
    /// Those of a shard, in ascending order, of the classes of all places.
    fn of_shard(
        sharding: Sharding,
        shard: usize,
        class_of: &[u32],
        constants: &[Vec<E::G2Affine>],
    ) -> Self {
        let mut class_of = sharding.items(shard, class_of);
        let mut present = class_of.clone();
        present.sort_unstable();
        present.dedup();
        for class in &mut class_of {
            let number = present.binary_search(class);
            *class = number.expect("the class of a place is present") as u32;
        }
        let present = present.iter();
        let constants = present.map(|class| constants[*class as usize].clone());
        Self {
            class_of,
            constants: constants.collect(),
        }
    }
}
