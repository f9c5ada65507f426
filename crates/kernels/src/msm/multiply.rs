//! The products, as callers see them.

use ark_ec::AffineRepr;
use ark_ff::{BigInteger, PrimeField};

use super::endomorphism::Endomorphism;
use super::pippenger::{Terms, pippenger};
use super::plan::{Bases, MsmPlan, Shape};
use super::point_kernel::{Affine, PointKernel, Projective, Scalar};
use super::recode::{Recoded, Split, Windows};
use crate::{InstructionSet, MsmGroup, portable};

/// Below this each base is multiplied for itself.
const FEW: usize = 12;

/// The most bases of one product: a point's number and a sign fit 32 bits, for a base and its image.
pub const MAX_BASES: usize = 1 << 30;

/// `Σ scalars[i] · bases[i]`, on all threads of the current rayon pool.
///
/// Bases must lie in the prime-order subgroup, or be the point at infinity. Time and memory access
/// depend on the scalars: do not use it where an attacker measures either.
///
/// # Panics
///
/// If the slices differ in length, or hold more than [`MAX_BASES`].
pub fn msm<G: MsmGroup>(bases: &[G::Affine], scalars: &[G::ScalarField]) -> G {
    msm_on(InstructionSet::current(), bases, scalars)
}

/// Like [`msm`], on a chosen back end.
///
/// # Panics
///
/// As for [`msm`], and if this machine lacks the instructions.
pub fn msm_on<G: MsmGroup>(
    set: InstructionSet,
    bases: &[G::Affine],
    scalars: &[G::ScalarField],
) -> G {
    assert_eq!(bases.len(), scalars.len(), "one scalar for each base");
    G::multiply(set, bases, &|i| scalars[i].into_bigint())
}

/// Like [`msm`], for scalars already out of Montgomery form. They must be below the group's order.
///
/// Where all scalars are below 2³² the bases may be any points of the curve.
///
/// # Panics
///
/// As for [`msm`].
pub fn msm_bigint<G: MsmGroup>(
    bases: &[G::Affine],
    scalars: &[<G::ScalarField as PrimeField>::BigInt],
) -> G {
    assert_eq!(bases.len(), scalars.len(), "one scalar for each base");
    G::multiply(InstructionSet::current(), bases, &|i| scalars[i])
}

/// `scalars[i] · base` for every `i`: windowed, with a table of `base`'s multiples.
///
/// Not in constant time: meant for key generation on a machine without other users.
pub fn fixed_base<G: MsmGroup>(base: G, scalars: &[G::ScalarField]) -> Vec<G::Affine> {
    portable::fixed_base::fixed_base(base, scalars)
}

/// A function that returns the scalar of an index.
pub(crate) type ScalarAt<'a, K> = &'a (dyn Fn(usize) -> BigIntOf<K> + Sync);
/// A kernel's scalars out of Montgomery form.
pub(crate) type BigIntOf<K> = <Scalar<K> as PrimeField>::BigInt;

/// `Σ scalar(i) · bases[i]`.
pub(crate) fn multiply<K: PointKernel>(
    bases: &[Affine<K>],
    scalar: ScalarAt<'_, K>,
) -> Projective<K> {
    let count = bases.len();
    assert!(count <= MAX_BASES, "{count} bases: at most {MAX_BASES}");
    let endomorphism = Endomorphism::<K::Curve>::of_curve();
    if count < FEW {
        return few::<K>(bases, scalar, endomorphism);
    }
    let shape = shape::<K>(count, scalar);
    let mut splits = vec![Split::Whole];
    splits.extend(endomorphism.map(Split::Halves));
    let plan = choose::<K>(&shape, Bases::Unprepared, &splits);
    let split = &splits[usize::from(plan.split)];

    multiply_by(bases, scalar, split, &plan.windows, |terms| {
        pippenger::<K>(&[terms], &plan)
    })
}

/// Like [`multiply`], each base for itself: by halves of the scalars, side by side, where the back end can.
fn few<K: PointKernel>(
    bases: &[Affine<K>],
    scalar: ScalarAt<'_, K>,
    endomorphism: Option<&Endomorphism<K::Curve>>,
) -> Projective<K> {
    let scalars: Vec<_> = (0..bases.len()).map(scalar).collect();
    // With small scalars, bases may be outside the subgroup, where splitting is wrong.
    let is_small = scalars.iter().all(|scalar| scalar.num_bits() <= 32);
    if let (Some(endomorphism), false) = (endomorphism, is_small) {
        let (mut points, mut numbers) = (Vec::new(), Vec::new());
        for (base, scalar) in bases.iter().zip(&scalars) {
            let mut image = *base;
            image.x *= endomorphism.beta;
            for (half, point) in endomorphism
                .split(scalar.as_ref())
                .iter()
                .zip([*base, image])
            {
                points.push(if half.negative { -point } else { point });
                numbers.push(half.magnitude);
            }
        }
        if let Some(multiples) = K::multiply_each(&points, &numbers) {
            return multiples.iter().map(|multiple| multiple.into_group()).sum();
        }
    }
    let terms = bases.iter().zip(scalars);
    terms.map(|(base, scalar)| base.mul_bigint(scalar)).sum()
}

/// Converts bases, recodes their scalars, and gives both to `then`.
pub(crate) fn multiply_by<K: PointKernel>(
    bases: &[Affine<K>],
    scalar: ScalarAt<'_, K>,
    split: &Split<'_, K::Curve>,
    windows: &Windows,
    then: impl FnOnce(Terms<'_, K>) -> Projective<K>,
) -> Projective<K> {
    let count = bases.len();
    let mut points = K::load(bases, split.parts() * count);
    if let Split::Halves(map) = split {
        K::map_endomorphism(&mut points, count, &map.beta);
    }
    let zero = BigIntOf::<K>::from(0u64);
    let recoded = Recoded::new(windows, split, count, &|i| {
        // The stored value for the point at infinity is not a point.
        if bases[i].is_zero() { zero } else { scalar(i) }
    });
    then(Terms {
        points: &points,
        count,
        recoded: &recoded,
    })
}

/// The properties of a product's scalars that a plan depends on.
pub(crate) fn shape<K: PointKernel>(count: usize, scalar: ScalarAt<'_, K>) -> Shape {
    let whole = Split::<K::Curve>::Whole;
    Shape::new(count, |i| whole.split(&scalar(i))[0].words)
}

/// The cheapest plan for any of these ways to split scalars.
pub(crate) fn choose<K: PointKernel>(
    shape: &Shape,
    bases: Bases,
    splits: &[Split<'_, K::Curve>],
) -> MsmPlan {
    let ways: Vec<_> = splits
        .iter()
        .map(|split| (split.parts() == 2, split.largest()))
        .collect();
    MsmPlan::choose(shape, &K::COSTS, bases, &ways)
}
