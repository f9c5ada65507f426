//! Products: Pippenger's buckets, by launches of the kernels of a group.

use std::marker::PhantomData;

use ark_ff::PrimeField;

use super::arguments::{AddBases, AddLeftOver, ClearBuckets, DoublePoints, Normalize, Recode};
use super::coordinates::{point_words, sum_words};
use super::machine::{Buffer, Machine, launch_for};
use super::modules::Module;
use super::plan::WindowPlan;
use super::sort::Pairs;
use super::sums::sum_buckets;
use super::words::{Words, write_all};
use crate::error::Error;
use crate::group::DeviceGroup;
use crate::ticket::Cancellation;

/// Most scalars of one round. Their digits are sorted and added while those of the next round are
/// uploaded.
pub(crate) const CARD_CHUNK_SCALARS: usize = 1 << 22;
/// Most bases whose multiples are made in one launch.
pub(crate) const LOAD_CHUNK_POINTS: usize = 1 << 20;
/// Number of points that share one inversion.
const POINTS_PER_INVERSION: usize = 32;
/// Shortest and longest segment, which is the list of items that one thread adds. Long segments leave few
/// sums over, but there must be enough threads to fill a card.
const SEGMENT_LENGTHS: std::ops::RangeInclusive<usize> = 8..=64;
/// Number of segments that fills a card.
const SEGMENTS_WANTED: usize = 1 << 18;
/// Number of left-over sums that one thread adds.
const LEFT_OVER_SEGMENT_LENGTH: usize = 16;

/// Bases in a machine's memory: copies, one behind the other, of their multiples.
pub(crate) struct ResidentBases<G, B> {
    points: B,
    count: usize,
    plan: WindowPlan,
    /// Scalars of a round.
    chunk: usize,
    group: PhantomData<fn() -> G>,
}

/// Working memory of a product, beside the bases.
struct Scratch<B> {
    /// Two buffers, of which one is read while the other is filled.
    scalars: [B; 2],
    pairs: Pairs<B>,
    buckets: B,
    /// Two buffers that rounds of additions use in turn. The second one is smaller, as each round leaves fewer sums
    /// than the one before.
    left_over: [LeftOver<B>; 2],
}

/// The sums that a round of additions leaves over.
struct LeftOver<B> {
    sums: B,
    keys: B,
}

// === impl ResidentBases ===

impl<G: DeviceGroup, B: Buffer> ResidentBases<G, B> {
    const MODULE: Module = Module::Points(G::GROUP);
    const SCALARS: Module = Module::Scalars(G::GROUP.scalar_field());

    /// Uploads bases and makes as many of their multiples as `memory_limit` bytes hold.
    pub(crate) fn load<M: Machine<Buffer = B>>(
        machine: &mut M,
        bases: &[G::Affine],
        memory_limit: usize,
        chunk: usize,
    ) -> Result<Self, Error> {
        let (count, words) = (bases.len(), point_words::<G>());
        let copies = memory_limit / (4 * words * count).max(1);
        // A point's number and its sign share 32 bits.
        let copies = copies.min((1 << 31) / count.max(1));
        let plan = WindowPlan::new(count, G::ScalarField::MODULUS_BIT_SIZE, copies);
        let mut points = machine.allocate(plan.copies() * count * words)?;
        for (i, bases) in bases.chunks(LOAD_CHUNK_POINTS).enumerate() {
            let at = i * LOAD_CHUNK_POINTS * words;
            machine.upload(&mut points, at, bases.len() * words, None, &mut |to| {
                G::write_points(bases, to);
            })?;
        }
        if plan.copies() > 1 {
            Self::make_multiples(machine, &points, count, &plan)?;
        }
        Ok(Self {
            points,
            count,
            plan,
            chunk: chunk.min(count),
            group: PhantomData,
        })
    }

    /// Computes the multiples of the bases, each copy from the one before.
    fn make_multiples<M: Machine<Buffer = B>>(
        machine: &mut M,
        points: &B,
        count: usize,
        plan: &WindowPlan,
    ) -> Result<(), Error> {
        let words = point_words::<G>();
        let chunk = LOAD_CHUNK_POINTS.min(count);
        let multiples = machine.allocate(chunk * sum_words::<G>())?;
        let products = machine.allocate(chunk * G::BaseField::WORDS)?;
        let made = count * (plan.copies() - 1);
        for from in (0..made).step_by(chunk.max(1)) {
            // At most as many points as one copy has, so that each is made from a point that already exists.
            let part = chunk.min(made - from);
            let doubling = DoublePoints {
                points: points.at(from * words),
                multiples: multiples.address(),
                count: part as u32,
                doublings: plan.copy_bits(),
            };
            launch_for(machine, Self::MODULE, &doubling, part)?;
            let stride = part.div_ceil(POINTS_PER_INVERSION);
            let normalize = Normalize {
                from: multiples.address(),
                to: points.at((from + count) * words),
                products: products.address(),
                count: part as u32,
                each: POINTS_PER_INVERSION as u32,
                stride: stride as u32,
            };
            launch_for(machine, Self::MODULE, &normalize, stride)?;
        }
        Ok(())
    }

    /// The number of bases.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// `Σ scalars[i] · bases[i]`. The uploaded scalars and values derived from them are wiped, also after an error.
    pub(crate) fn msm<M: Machine<Buffer = B>>(
        &self,
        machine: &mut M,
        scalars: &[G::ScalarField],
        cancellation: &Cancellation,
    ) -> Result<G, Error> {
        if scalars.is_empty() {
            return Ok(G::zero());
        }
        let mut scratch = self.scratch(machine)?;
        let added = self.add_all(machine, &mut scratch, scalars, cancellation);
        let sum = added.and_then(|()| sum_buckets::<G, M>(machine, &scratch.buckets, &self.plan));
        let Scratch { scalars, pairs, .. } = &mut scratch;
        let wiped = pairs
            .wipe(machine)
            .and_then(|()| scalars.iter_mut().try_for_each(|b| machine.wipe(b)));
        sum.and_then(|sum| wiped.map(|()| sum))
    }

    fn scratch<M: Machine<Buffer = B>>(&self, machine: &mut M) -> Result<Scratch<B>, Error> {
        let pairs = self.chunk * self.plan.windows as usize;
        let scalar_words = self.chunk * G::ScalarField::WORDS;
        let mut left_over = |sums| -> Result<LeftOver<B>, Error> {
            Ok(LeftOver {
                sums: machine.allocate(sums * sum_words::<G>())?,
                keys: machine.allocate(sums)?,
            })
        };
        let first = pairs.div_ceil(segment(pairs));
        let left_over = [
            left_over(first)?,
            left_over(first.div_ceil(LEFT_OVER_SEGMENT_LENGTH))?,
        ];
        Ok(Scratch {
            scalars: [
                machine.allocate(scalar_words)?,
                machine.allocate(scalar_words)?,
            ],
            pairs: Pairs::allocate(machine, pairs)?,
            buckets: machine.allocate(self.plan.buckets() * sum_words::<G>())?,
            left_over,
        })
    }

    /// Adds the bases to the buckets of their digits, chunk by chunk.
    fn add_all<M: Machine<Buffer = B>>(
        &self,
        machine: &mut M,
        scratch: &mut Scratch<B>,
        scalars: &[G::ScalarField],
        cancellation: &Cancellation,
    ) -> Result<(), Error> {
        let clear = ClearBuckets {
            buckets: scratch.buckets.address(),
            count: self.plan.buckets() as u32,
        };
        launch_for(machine, Self::MODULE, &clear, self.plan.buckets())?;
        let mut free = [Some(machine.mark()?), Some(machine.mark()?)];
        for (i, chunk) in scalars.chunks(self.chunk).enumerate() {
            cancellation.check()?;
            let words = chunk.len() * G::ScalarField::WORDS;
            let target = &mut scratch.scalars[i % 2];
            machine.upload(target, 0, words, free[i % 2].take(), &mut |to| {
                write_all(chunk, to);
            })?;
            let recode = Recode {
                scalars: target.address(),
                keys: scratch.pairs.keys.address(),
                values: scratch.pairs.values.address(),
                count: chunk.len() as u32,
                window_bits: self.plan.window_bits,
                windows: self.plan.windows,
                shared_windows: self.plan.shared_windows,
                first_base: (i * self.chunk) as u32,
                bases: self.count as u32,
            };
            launch_for(machine, Self::SCALARS, &recode, chunk.len())?;
            free[i % 2] = Some(machine.mark()?);
            let pairs = chunk.len() * self.plan.windows as usize;
            scratch.pairs.sort(machine, pairs, self.plan.key_bits())?;
            self.add_pairs(machine, scratch, pairs)?;
        }
        Ok(())
    }

    /// Sorted pairs to their buckets, in rounds until nothing is left over.
    fn add_pairs<M: Machine<Buffer = B>>(
        &self,
        machine: &mut M,
        scratch: &Scratch<B>,
        pairs: usize,
    ) -> Result<(), Error> {
        let none = self.plan.buckets() as u32;
        let [mut from, mut to] = scratch.left_over.each_ref();
        let first = AddBases {
            points: self.points.address(),
            values: scratch.pairs.values.address(),
            keys: scratch.pairs.keys.address(),
            buckets: scratch.buckets.address(),
            left_sums: from.sums.address(),
            left_keys: from.keys.address(),
            items: pairs as u32,
            segment: segment(pairs) as u32,
            none,
        };
        let mut items = pairs.div_ceil(segment(pairs));
        launch_for(machine, Self::MODULE, &first, items)?;
        // A single segment begins every run.
        while items > 1 {
            let round = AddLeftOver {
                sums: from.sums.address(),
                unused: 0,
                keys: from.keys.address(),
                buckets: scratch.buckets.address(),
                left_sums: to.sums.address(),
                left_keys: to.keys.address(),
                items: items as u32,
                segment: LEFT_OVER_SEGMENT_LENGTH as u32,
                none,
            };
            items = items.div_ceil(LEFT_OVER_SEGMENT_LENGTH);
            launch_for(machine, Self::MODULE, &round, items)?;
            std::mem::swap(&mut from, &mut to);
        }
        Ok(())
    }
}

/// Pairs of a thread.
fn segment(pairs: usize) -> usize {
    (pairs / SEGMENTS_WANTED).clamp(*SEGMENT_LENGTHS.start(), *SEGMENT_LENGTHS.end())
}
