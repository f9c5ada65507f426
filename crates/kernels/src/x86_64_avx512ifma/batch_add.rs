//! Affine additions, eight at a time, that share one inversion by Montgomery's trick.
//!
//! The forward pass multiplies up the differences of the x; their product is inverted; in the backward pass
//! each vector extracts its own inverse and adds by slope. That is 5 products and a square for each addition.
//! Even and odd vectors have separate chains of products: a product depends on the one before it in its
//! chain, and two chains hide that latency.

use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};

use ark_ec::AffineRepr;
use ark_ec::short_weierstrass::{Affine, SWCurveConfig};

use super::points::Stored;
use super::vector_field::VectorField;
use crate::msm::point_kernel::PointAddition;
use crate::portable::batch_add::batch_add_assign;
use crate::portable::inversion::invert_all;

/// Prefetch distance, in vectors of eight jobs.
const AHEAD: usize = 4;

/// Working memory of a batch of additions, kept between batches.
pub(crate) struct Scratch<V> {
    /// For each vector of jobs, the differences and the product of those before it in its chain.
    steps: Vec<(V, V)>,
    jobs: Vec<PointAddition>,
    /// Lanes whose points have the same x: they cannot be added by a slope between them.
    equal: Vec<u8>,
}

impl<V> Default for Scratch<V> {
    fn default() -> Self {
        Self {
            steps: Vec::new(),
            jobs: Vec::new(),
            equal: Vec::new(),
        }
    }
}

/// Runs the jobs and returns the targets whose sum is the point at infinity.
pub(crate) fn batch_add<P, V>(
    targets: &mut Stored<V>,
    sources: Option<&Stored<V>>,
    jobs: &[PointAddition],
    scratch: &mut Scratch<V>,
) -> Vec<u32>
where
    P: SWCurveConfig<BaseField = V::Ark>,
    V: VectorField,
{
    let source_len = sources.map_or(targets.len(), Stored::len);
    let spare_source = sources.map_or(targets.spare_source(), Stored::spare_source);
    let (highest_source, highest_target) = jobs.iter().fold((0, 0), |(source, target), job| {
        (job.source.max(source), job.target.max(target))
    });
    assert!(
        jobs.is_empty()
            || ((highest_source >> 1) as usize) < source_len
                && (highest_target as usize) < targets.len(),
        "jobs of points that are there"
    );
    let spare_target = targets.len();
    scratch.jobs.clear();
    scratch.jobs.extend_from_slice(jobs);
    for lane in 0..jobs.len().next_multiple_of(8) - jobs.len() {
        scratch.jobs.push(PointAddition {
            source: (spare_source as u32) << 1,
            target: (spare_target + lane) as u32,
        });
    }
    let target_points = targets.as_mut_ptr();
    let source_points = sources.map_or(target_points.cast_const(), Stored::as_ptr);
    // SAFETY: this back end runs only where its instructions are. The jobs' points were checked to
    // be there, and the spares are.
    let exceptions = unsafe {
        reset_spares::<V>(target_points, spare_target);
        add::<V>(target_points, source_points, scratch)
    };
    if exceptions.is_empty() {
        return Vec::new();
    }
    add_exceptions::<P, V>(targets, sources, &exceptions)
}

/// Sets the spare targets to (1, 0), the spare source being (0, 0): points of different x.
unsafe fn reset_spares<V: VectorField>(targets: *mut u64, first: usize) {
    // SAFETY: eight spares begin there.
    unsafe {
        let spares = targets.add(first * 2 * V::WORDS);
        spares.write_bytes(0, 8 * 2 * V::WORDS);
        for lane in 0..8 {
            spares.add(lane * 2 * V::WORDS).write(1);
        }
    }
}

/// Runs the jobs whose points differ in x, and returns the others.
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma,avx512vbmi2")]
unsafe fn add<V: VectorField>(
    targets: *mut u64,
    sources: *const u64,
    scratch: &mut Scratch<V>,
) -> Vec<PointAddition> {
    let Scratch { steps, jobs, equal } = scratch;
    // SAFETY: as the caller promises.
    unsafe {
        equal.clear();
        let mut products = forward::<V>(targets, sources, jobs, steps, equal, false);
        if V::mul_by_call(products[0], products[1]).zero_lanes() != 0 {
            products = forward::<V>(targets, sources, jobs, steps, equal, true);
        }
        backward::<V>(targets, sources, jobs, steps, equal, inverses(products));
    }
    jobs.chunks(8)
        .zip(equal)
        .flat_map(|(jobs, lanes)| {
            jobs.iter()
                .enumerate()
                .filter(|(lane, _)| *lanes >> lane & 1 == 1)
                .map(|(_, job)| *job)
        })
        .collect()
}

/// Addresses of the x of eight jobs' points.
#[inline(always)]
unsafe fn places<V: VectorField>(
    jobs: &[PointAddition; 8],
    targets: *mut u64,
    sources: *const u64,
) -> ([*mut u64; 8], [*const u64; 8]) {
    // SAFETY: jobs of points that are there, as the caller promises.
    unsafe {
        (
            jobs.map(|job| targets.add(job.target as usize * 2 * V::WORDS)),
            jobs.map(|job| sources.add((job.source >> 1) as usize * 2 * V::WORDS)),
        )
    }
}

/// Fetches the points of eight jobs.
#[inline(always)]
unsafe fn prefetch<V: VectorField>(
    jobs: &[PointAddition; 8],
    targets: *mut u64,
    sources: *const u64,
) {
    // SAFETY: a prefetch has no effect but on caches.
    unsafe {
        let (targets, sources) = places::<V>(jobs, targets, sources);
        for (target, source) in targets.into_iter().zip(sources) {
            for line in (0..2 * V::WORDS).step_by(8) {
                _mm_prefetch::<_MM_HINT_T0>(target.add(line).cast());
                _mm_prefetch::<_MM_HINT_T0>(source.add(line).cast());
            }
        }
    }
}

/// The jobs as vectors.
fn vectors(jobs: &[PointAddition]) -> &[[PointAddition; 8]] {
    let (vectors, rest) = jobs.as_chunks();
    debug_assert!(rest.is_empty(), "spare jobs fill up the last vector");
    vectors
}

/// Multiplies up `x_target − x_source`: the products of the even and of the odd vectors.
///
/// If `careful`, lanes where the two are equal are noted, and a one takes the difference's place.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma,avx512vbmi2")]
unsafe fn forward<V: VectorField>(
    targets: *mut u64,
    sources: *const u64,
    jobs: &[PointAddition],
    steps: &mut Vec<(V, V)>,
    equal: &mut Vec<u8>,
    careful: bool,
) -> [V; 2] {
    let jobs = vectors(jobs);
    // SAFETY: as the caller promises.
    unsafe {
        let mut products = [V::one(); 2];
        steps.resize(jobs.len(), (products[0], products[0]));
        for (i, (lanes, step)) in jobs.iter().zip(steps).enumerate() {
            if let Some(next) = jobs.get(i + AHEAD) {
                prefetch::<V>(next, targets, sources);
            }
            let (to, from) = places::<V>(lanes, targets, sources);
            let mut difference = V::sub(V::load(to.map(|p| p.cast_const())), V::load(from));
            if careful {
                let zero = difference.zero_lanes();
                equal.push(zero);
                difference = V::select(zero, difference, V::one());
            }
            let product = &mut products[i % 2];
            *step = (difference, *product);
            *product = V::mul(*product, difference);
        }
        products
    }
}

/// The inverses of two products, neither of which is zero in any lane.
#[inline(always)]
unsafe fn inverses<V: VectorField>(products: [V; 2]) -> [V; 2] {
    // SAFETY: as the caller promises.
    unsafe {
        let mut lanes = V::mul_by_call(products[0], products[1]).to_ark();
        invert_all(&mut lanes, &mut Vec::with_capacity(8));
        let inverse = V::load_ark(lanes.each_ref().map(std::ptr::from_ref));
        [
            V::mul_by_call(inverse, products[1]),
            V::mul_by_call(inverse, products[0]),
        ]
    }
}

/// Adds by `λ = (y_t − y_s)/(x_t − x_s)`, `x = λ² − x_t − x_s`, `y = λ·(x_s − x) − y_s`, except in lanes
/// that are marked as equal.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma,avx512vbmi2")]
unsafe fn backward<V: VectorField>(
    targets: *mut u64,
    sources: *const u64,
    jobs: &[PointAddition],
    steps: &[(V, V)],
    equal: &[u8],
    mut inverses: [V; 2],
) {
    let jobs = vectors(jobs);
    // SAFETY: as the caller promises.
    unsafe {
        for (i, lanes) in jobs.iter().enumerate().rev() {
            if let Some(next) = i.checked_sub(AHEAD).map(|i| &jobs[i]) {
                prefetch::<V>(next, targets, sources);
            }
            let (difference, before) = steps[i];
            let rest = &mut inverses[i % 2];
            let inverse = V::mul(*rest, before);
            *rest = V::mul(*rest, difference);

            let (to, from) = places::<V>(lanes, targets, sources);
            let negative = lanes.iter().enumerate().fold(0u8, |mask, (lane, job)| {
                mask | ((job.source as u8 & 1) << lane)
            });
            let (to_y, from_y) = (to.map(|p| p.add(V::WORDS)), from.map(|p| p.add(V::WORDS)));
            let target_y = V::load(to_y.map(|p| p.cast_const()));
            let source_y = V::load(from_y);
            let slope = V::mul(V::sub_signed(target_y, source_y, negative), inverse);
            let target_x = V::load(to.map(|p| p.cast_const()));
            let source_x = V::load(from);
            let mut x = V::sub_two_reduced(V::square(slope), target_x, source_x);
            let mut y =
                V::sub_signed_reduced(V::mul(slope, V::sub(source_x, x)), source_y, negative);
            if let Some(equal) = equal.get(i).filter(|lanes| **lanes != 0) {
                x = V::select(*equal, x, target_x);
                y = V::select(*equal, y, target_y);
            }
            x.store(to);
            y.store(to_y);
        }
    }
}

/// Additions of points with the same x, equal or opposite: by arkworks' arithmetic, in a batch.
#[cold]
fn add_exceptions<P, V>(
    targets: &mut Stored<V>,
    sources: Option<&Stored<V>>,
    jobs: &[PointAddition],
) -> Vec<u32>
where
    P: SWCurveConfig<BaseField = V::Ark>,
    V: VectorField,
{
    // SAFETY: this back end runs only where its instructions are.
    let points = |points: &Stored<V>, index: &dyn Fn(&PointAddition) -> usize| {
        jobs.chunks(8)
            .flat_map(|jobs| {
                let indices: [usize; 8] =
                    std::array::from_fn(|lane| index(jobs.get(lane).unwrap_or(&jobs[0])));
                // SAFETY: see above.
                let (x, y) = unsafe { points.export(indices) };
                (0..jobs.len())
                    .map(move |lane| Affine::<P>::new_unchecked(x[lane], y[lane]))
                    .collect::<Vec<_>>()
            })
            .collect::<Vec<_>>()
    };
    let mut left = points(targets, &|job| job.target as usize);
    let mut right = points(sources.unwrap_or(targets), &|job| {
        (job.source >> 1) as usize
    });
    for (point, job) in right.iter_mut().zip(jobs) {
        if job.source & 1 == 1 {
            *point = -*point;
        }
    }
    batch_add_assign(&mut left, &right);
    let mut infinite = Vec::new();
    for (sums, jobs) in left.chunks(8).zip(jobs.chunks(8)) {
        let lane = |lane: usize| if lane < jobs.len() { lane } else { 0 };
        let x = std::array::from_fn(|i| sums[lane(i)].x);
        let y = std::array::from_fn(|i| sums[lane(i)].y);
        let indices = std::array::from_fn(|i| jobs[lane(i)].target as usize);
        // SAFETY: see above.
        unsafe { targets.import(indices, &x, &y) };
        for (sum, job) in sums.iter().zip(jobs) {
            if sum.is_zero() {
                infinite.push(job.target);
            }
        }
    }
    infinite
}
