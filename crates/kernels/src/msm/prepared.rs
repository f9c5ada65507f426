//! Bases that stay: converted once, with multiples that let windows share buckets.

use std::{fmt, slice};

use ark_ec::{AffineRepr, PrimeGroup};
use ark_ff::PrimeField;

use super::endomorphism::Endomorphism;
use super::multiply::{BigIntOf, MAX_BASES, ScalarAt, choose, multiply, multiply_by, shape};
use super::pippenger::{Terms, pippenger};
use super::plan::Bases;
use super::point_kernel::{Affine, PointKernel, Projective};
use super::recode::{Recoded, Split, Windows, bit_length};
use crate::{InstructionSet, MsmGroup};

/// The fixed bases of many products, such as a proving key's.
///
/// They are kept in the back end's layout, so that a product need not convert them, and with as
/// many of their multiples as a memory limit allows: with the multiples by `2^(b·j/F)`,
/// j = 0..F, of b-bit scalars the windows of a scalar share the buckets of F of them, and fewer
/// buckets are summed up. The image by the curve's endomorphism counts as one of two such copies.
pub struct PreparedBases<G: MsmGroup> {
    inner: Box<dyn Prepared<G>>,
}

/// Bases in a back end's layout, and products with them.
pub trait Prepared<G: MsmGroup>: Send + Sync {
    fn len(&self) -> usize;
    fn bytes(&self) -> usize;
    fn copies(&self) -> usize;
    /// The product, plus that of other points and their scalars.
    fn msm(&self, scalar: ScalarOf<'_, G>, others: (&[G::Affine], ScalarOf<'_, G>)) -> G;
}

/// A function that returns the scalar of an index, out of Montgomery form.
type ScalarOf<'a, G> =
    &'a (dyn Fn(usize) -> <<G as PrimeGroup>::ScalarField as PrimeField>::BigInt + Sync);

/// [`Prepared`] by a kernel.
pub(crate) struct PreparedByKernel<K: PointKernel> {
    points: K::Points,
    count: usize,
    /// Copies, each with its image if `endomorphism`.
    multiples: usize,
    endomorphism: Option<&'static Endomorphism<K::Curve>>,
    /// The bits of a part that copies are apart.
    copy_bits: usize,
    infinite: Vec<bool>,
}

// === impl PreparedBases ===

impl<G: MsmGroup> PreparedBases<G> {
    /// Prepares `points` in at most `memory_limit` bytes, on the current rayon pool's threads.
    ///
    /// One copy is kept whatever the limit: [`bytes`](Self::bytes) is the memory used, and
    /// [`bytes_for`](Self::bytes_for) the memory that a number of copies would take.
    ///
    /// # Panics
    ///
    /// If there are more than [`MAX_BASES`] points.
    pub fn new(points: &[G::Affine], memory_limit: usize) -> Self {
        Self::new_on(InstructionSet::current(), points, memory_limit)
    }

    /// Like [`new`](Self::new), on a chosen back end.
    ///
    /// # Panics
    ///
    /// As for [`new`](Self::new), and if this machine lacks the instructions.
    pub fn new_on(set: InstructionSet, points: &[G::Affine], memory_limit: usize) -> Self {
        Self {
            inner: G::prepare(set, points, memory_limit),
        }
    }

    /// Bytes of memory that `copies` copies of `count` bases take.
    pub fn bytes_for(set: InstructionSet, count: usize, copies: usize) -> usize {
        count * copies * G::point_bytes(set)
    }

    /// The number of bases.
    pub fn len(&self) -> usize {
        self.inner.len()
    }

    /// Whether the length is zero.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of memory used.
    pub fn bytes(&self) -> usize {
        self.inner.bytes()
    }

    /// The number of points kept for each base: its multiples and their images by the endomorphism.
    pub fn copies(&self) -> usize {
        self.inner.copies()
    }

    /// `Σ scalars[i] · bases[i]`, on all threads of the current rayon pool.
    ///
    /// # Panics
    ///
    /// If there is not one scalar for each base.
    pub fn msm(&self, scalars: &[G::ScalarField]) -> G {
        self.msm_with(scalars, &[], &[])
    }

    /// `Σ scalars[i] · bases[i] + Σ other_scalars[i] · others[i]`, in one product: points that do not
    /// stay share the buckets of those that do.
    ///
    /// # Panics
    ///
    /// As for [`msm`](Self::msm) and, of the others, [`msm`](fn@crate::msm).
    pub fn msm_with(
        &self,
        scalars: &[G::ScalarField],
        others: &[G::Affine],
        other_scalars: &[G::ScalarField],
    ) -> G {
        assert_eq!(self.len(), scalars.len(), "one scalar for each base");
        assert_eq!(others.len(), other_scalars.len(), "one scalar for each");
        let other = |i: usize| other_scalars[i].into_bigint();
        self.inner
            .msm(&|i| scalars[i].into_bigint(), (others, &other))
    }

    /// `Σ scalars[indices[i]] · bases[i]`: a sparse query of a long vector, not gathered first.
    ///
    /// # Panics
    ///
    /// If there is not one index for each base, or one is beyond the scalars.
    pub fn msm_indexed(&self, indices: &[u32], scalars: &[G::ScalarField]) -> G {
        assert_eq!(self.len(), indices.len(), "one index for each base");
        let scalar = |i: usize| scalars[indices[i] as usize].into_bigint();
        self.inner.msm(&scalar, (&[], &scalar))
    }
}

impl<G: MsmGroup> fmt::Debug for PreparedBases<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bases, {} points each", self.len(), self.copies())
    }
}

// === impl PreparedByKernel ===

impl<K: PointKernel> PreparedByKernel<K> {
    /// Keeps at least one copy of the bases, and what else `memory_limit` allows.
    pub(crate) fn new(bases: &[Affine<K>], memory_limit: usize) -> Self {
        let count = bases.len();
        assert!(count <= MAX_BASES, "{count} bases: at most {MAX_BASES}");
        let affordable = (memory_limit / (count * K::POINT_BYTES).max(1))
            .min(2 * MAX_BASES / count.max(1))
            .max(1);
        let endomorphism = Endomorphism::<K::Curve>::of_curve().filter(|_| affordable >= 2);
        let parts = 1 + usize::from(endomorphism.is_some());
        let split = endomorphism.map_or(Split::<K::Curve>::Whole, Split::Halves);
        let part_bits = bit_length(&split.largest()) + 1;
        // More copies than windows of a sensible width would gain nothing.
        let multiples = (affordable / parts).clamp(1, part_bits.div_ceil(MIN_COPY_BITS));
        let copy_bits = Windows::copy_bits_for(multiples, &split.largest());

        let mut points = K::load(bases, count * parts * multiples);
        if let Some(map) = endomorphism {
            K::map_endomorphism(&mut points, count, &map.beta);
        }
        let stride = count * parts;
        for copy in 1..multiples {
            let (from, to) = ((copy - 1) * stride, copy * stride);
            K::double(&mut points, from, to, stride, copy_bits);
        }
        let infinite = if bases.iter().any(|base| base.is_zero()) {
            bases.iter().map(|base| base.is_zero()).collect()
        } else {
            Vec::new()
        };
        Self {
            points,
            count,
            multiples,
            endomorphism,
            copy_bits,
            infinite,
        }
    }

    fn bases(&self) -> Bases {
        Bases::Prepared {
            copies: self.multiples,
            copy_bits: self.copy_bits,
        }
    }

    fn split(&self) -> Split<'static, K::Curve> {
        self.endomorphism.map_or(Split::Whole, Split::Halves)
    }

    fn recoded(
        &self,
        windows: &Windows,
        split: &Split<'_, K::Curve>,
        scalar: ScalarAt<'_, K>,
    ) -> Recoded {
        let zero = BigIntOf::<K>::from(0u64);
        Recoded::new(windows, split, self.count, &|i| {
            if self.infinite.get(i).copied().unwrap_or(false) {
                zero
            } else {
                scalar(i)
            }
        })
    }

    fn terms<'a>(&'a self, recoded: &'a Recoded) -> Terms<'a, K> {
        Terms {
            points: &self.points,
            count: self.count,
            recoded,
        }
    }

    fn multiply(
        &self,
        scalar: ScalarAt<'_, K>,
        (others, other_scalar): (&[Affine<K>], ScalarAt<'_, K>),
    ) -> Projective<K> {
        // Multiples of points that are used once would take longer than buckets of their own.
        if self.count == 0 {
            return multiply::<K>(others, other_scalar);
        }
        if self.multiples > 1 && !others.is_empty() {
            let nothing: (&[_], _) = (&[], other_scalar);
            return self.multiply(scalar, nothing) + multiply::<K>(others, other_scalar);
        }
        let (shape, split) = (shape::<K>(self.count, scalar), self.split());
        let plan = choose::<K>(&shape, self.bases(), slice::from_ref(&split));
        let recoded = self.recoded(&plan.windows, &split, scalar);
        let own = self.terms(&recoded);
        if others.is_empty() {
            return pippenger::<K>(&[own], &plan);
        }
        multiply_by(others, other_scalar, &split, &plan.windows, |others| {
            pippenger::<K>(&[own, others], &plan)
        })
    }
}

/// Copies are not closer than this many bits.
const MIN_COPY_BITS: usize = 12;

impl<G, K> Prepared<G> for PreparedByKernel<K>
where
    K: PointKernel,
    G: MsmGroup<ScalarField = super::point_kernel::Scalar<K>, Affine = Affine<K>>
        + From<Projective<K>>,
{
    fn len(&self) -> usize {
        self.count
    }

    fn bytes(&self) -> usize {
        self.count * self.copies() * K::POINT_BYTES
    }

    fn copies(&self) -> usize {
        self.copies()
    }

    fn msm(&self, scalar: ScalarAt<'_, K>, others: (&[Affine<K>], ScalarAt<'_, K>)) -> G {
        self.multiply(scalar, others).into()
    }
}

impl<K: PointKernel> PreparedByKernel<K> {
    /// Points kept for each base.
    fn copies(&self) -> usize {
        self.multiples * (1 + usize::from(self.endomorphism.is_some()))
    }
}

#[cfg(test)]
mod tests {
    use ark_bls12_381::{Fr, G1Affine, G1Projective, g1};
    use ark_ec::{CurveGroup, VariableBaseMSM};
    use ark_ff::{Field, UniformRand, Zero};

    use super::super::plan::{MsmPlan, divisions};
    use super::*;
    use crate::portable::points::PortablePoints;

    /// Wider windows have more buckets, and are otherwise the same.
    const WIDTH_MAX: u32 = 7;

    /// The product by every plan that could be chosen on three threads.
    fn by_all_plans<K: PointKernel<Curve = g1::Config>>(bases: &[G1Affine], scalars: &[Fr]) {
        let expected = G1Projective::msm(bases, scalars).expect("as many bases as scalars");
        for copies in [1, 2, 4, 6, 14] {
            let limit = copies * bases.len() * K::POINT_BYTES;
            let prepared = PreparedByKernel::<K>::new(bases, limit);
            assert_eq!(prepared.copies(), copies);
            let split = prepared.split();
            for windows in prepared.bases().windows(&split.largest()) {
                if windows.widest() > WIDTH_MAX {
                    continue;
                }
                let recoded = prepared.recoded(&windows, &split, &|i| scalars[i].into_bigint());
                let buckets = 1 << (windows.widest() - 1);
                for (group, chunks) in divisions(windows.widths.len(), buckets, 3) {
                    let plan = MsmPlan {
                        split: split.parts() == 2,
                        windows: windows.clone(),
                        group,
                        chunks,
                    };
                    let product = pippenger::<K>(&[prepared.terms(&recoded)], &plan);
                    assert_eq!(product, expected, "{copies} copies, {plan:?}");
                }
            }
        }
    }

    #[test]
    fn all_plans_make_the_same_product() {
        let rng = &mut ark_std::test_rng();
        let points: Vec<G1Projective> = (0..24)
            .map(|i| match i % 8 {
                0 => G1Projective::zero(),
                1 => G1Projective::generator(),
                2 => -G1Projective::generator(),
                _ => G1Projective::rand(rng),
            })
            .collect();
        let bases = G1Projective::normalize_batch(&points);
        let half = -Fr::ONE / Fr::from(2u64);
        let scalars: Vec<Fr> = (0..24)
            .map(|i| match i % 6 {
                0 => Fr::ONE,
                1 => -Fr::ONE,
                2 => half,
                3 => half + Fr::ONE,
                _ => Fr::rand(rng),
            })
            .collect();
        by_all_plans::<PortablePoints<g1::Config>>(&bases, &scalars);
        #[cfg(target_arch = "x86_64")]
        if InstructionSet::Avx512Ifma.is_available() {
            use crate::x86_64_avx512ifma::{field::Fp, points::VectorPoints};
            type Vector = Fp<ark_bls12_381::FqConfig, 8, 6>;
            by_all_plans::<VectorPoints<g1::Config, Vector>>(&bases, &scalars);
        }
    }
}
