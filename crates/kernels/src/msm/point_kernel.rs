//! The interface of a back end's arithmetic of affine points.

use ark_ec::CurveConfig;
use ark_ec::short_weierstrass::SWCurveConfig;

use super::plan::Costs;

/// An addition of a source point, or its negative, to a target point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PointAddition {
    /// `index << 1 | negative` of the source.
    pub(crate) source: u32,
    /// Index of the target.
    pub(crate) target: u32,
}

/// Affine points in a back end's own layout, and their arithmetic.
///
/// Points at infinity have no place here: callers leave them out.
pub(crate) trait PointKernel: Send + Sync + 'static {
    /// The curve.
    type Curve: SWCurveConfig;
    /// An array of points.
    type Points: Send + Sync;
    /// Working memory of [`add`](Self::add), kept between calls.
    type Scratch: Default + Send;
    /// Additions that share an inversion: as many as stay in a core's second-level cache.
    const BATCH: usize;
    /// Bytes of a stored point.
    const POINT_BYTES: usize;
    /// Costs of the steps of a product on this back end.
    const COSTS: Costs;

    /// An array of `len` points of unspecified value.
    fn allocate(len: usize) -> Self::Points;

    /// An array of `len` points, the first of them `bases`, converted on the current pool's threads. The value
    /// stored for a point at infinity is unspecified.
    fn load(bases: &[Affine<Self>], len: usize) -> Self::Points;

    /// Stores `(β·x, y)` of the points `0..count` at `count..2·count`, on the pool's threads.
    fn map_endomorphism(points: &mut Self::Points, count: usize, beta: &Base<Self>);

    /// Stores `2^doublings` times the points `from..from + count` at `to..to + count`, on the pool's
    /// threads. The ranges must not overlap.
    fn double(points: &mut Self::Points, from: usize, to: usize, count: usize, doublings: usize);

    /// Stores a source, `index << 1 | negative`, at `target`.
    fn copy(targets: &mut Self::Points, target: usize, sources: &Self::Points, source: u32);

    /// Stores the point at `source` at `target` as well.
    fn copy_within(points: &mut Self::Points, target: usize, source: usize);

    /// `targets[job.target] ±= sources[job.source]` for every job; without `sources`, the sources are among the
    /// targets.
    ///
    /// No target may occur twice, nor be a source. Returns the targets whose sum is the point at infinity; their
    /// contents are unspecified.
    fn add(
        targets: &mut Self::Points,
        sources: Option<&Self::Points>,
        jobs: &[PointAddition],
        scratch: &mut Self::Scratch,
    ) -> Vec<u32>;

    /// `numbers[i]·points[i]` for a few points in the subgroup of prime order; `None` if this back end has
    /// no faster way than arkworks' arithmetic.
    fn multiply_each(points: &[Affine<Self>], numbers: &[u128]) -> Option<Vec<Affine<Self>>> {
        let _ = (points, numbers);
        None
    }

    /// A point as arkworks has it.
    fn get(points: &Self::Points, index: usize) -> Affine<Self>;
}

/// A kernel's points as arkworks has them.
pub(crate) type Affine<K> = ark_ec::short_weierstrass::Affine<<K as PointKernel>::Curve>;
/// A kernel's group.
pub(crate) type Projective<K> = ark_ec::short_weierstrass::Projective<<K as PointKernel>::Curve>;
/// A kernel's coordinates.
pub(crate) type Base<K> = <<K as PointKernel>::Curve as CurveConfig>::BaseField;
/// A kernel's scalars.
pub(crate) type Scalar<K> = <<K as PointKernel>::Curve as CurveConfig>::ScalarField;
