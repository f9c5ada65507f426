//! Affine points as arkworks has them.

use std::marker::PhantomData;

use ark_ec::short_weierstrass::{Affine, Projective, SWCurveConfig};
use ark_ec::{AffineRepr, CurveGroup};
use ark_ff::AdditiveGroup;
use rayon::prelude::*;

use super::batch_add::batch_add_assign;
use super::inversion::Invertible;
use crate::msm::plan::Costs;
use crate::msm::point_kernel::{PointAddition, PointKernel};

/// Points one task converts or multiplies.
const CHUNK: usize = 1 << 10;

/// The points of a curve.
pub(crate) struct PortablePoints<P>(PhantomData<P>);

/// Working memory of a batch of additions, kept between batches.
pub(crate) struct Scratch<P: SWCurveConfig> {
    left: Vec<Affine<P>>,
    right: Vec<Affine<P>>,
}

impl<P: SWCurveConfig> Default for Scratch<P> {
    fn default() -> Self {
        Self {
            left: Vec::new(),
            right: Vec::new(),
        }
    }
}

/// The point that `index << 1 | negative` names.
fn signed<P: SWCurveConfig>(points: &[Affine<P>], source: u32) -> Affine<P> {
    let point = points[(source >> 1) as usize];
    if source & 1 == 1 { -point } else { point }
}

impl<P: SWCurveConfig<BaseField: Invertible>> PointKernel for PortablePoints<P> {
    type Curve = P;
    type Points = Vec<Affine<P>>;
    type Scratch = Scratch<P>;
    const BATCH: usize = 1 << 11;
    const POINT_BYTES: usize = size_of::<Affine<P>>();
    /// BLS12-381's; the ratios, which decide, are much the same for all.
    const COSTS: Costs = Costs {
        addition: 390.0,
        bucket: 725.0,
        load: 7.0,
        split: 92.0,
        inversion: 7_000.0,
    };

    fn allocate(len: usize) -> Self::Points {
        vec![Affine::identity(); len]
    }

    fn load(bases: &[Affine<P>], len: usize) -> Self::Points {
        let mut points = Vec::with_capacity(len);
        points.extend_from_slice(bases);
        points.resize(len, Affine::identity());
        points
    }

    fn map_endomorphism(points: &mut Self::Points, count: usize, beta: &P::BaseField) {
        let (bases, images) = points.split_at_mut(count);
        images[..count]
            .par_iter_mut()
            .zip(bases)
            .with_min_len(CHUNK)
            .for_each(|(image, base)| {
                *image = *base;
                image.x *= beta;
            });
    }

    fn double(points: &mut Self::Points, from: usize, to: usize, count: usize, doublings: usize) {
        let (bases, multiples) = points.split_at_mut(to);
        multiples[..count]
            .par_chunks_mut(CHUNK)
            .zip(bases[from..from + count].par_chunks(CHUNK))
            .for_each(|(multiples, bases)| {
                let projective: Vec<Projective<P>> = bases
                    .iter()
                    .map(|base| {
                        let mut point = base.into_group();
                        for _ in 0..doublings {
                            point.double_in_place();
                        }
                        point
                    })
                    .collect();
                multiples.copy_from_slice(&Projective::normalize_batch(&projective));
            });
    }

    fn copy(targets: &mut Self::Points, target: usize, sources: &Self::Points, source: u32) {
        targets[target] = signed(sources, source);
    }

    fn copy_within(points: &mut Self::Points, target: usize, source: usize) {
        points[target] = points[source];
    }

    fn add(
        targets: &mut Self::Points,
        sources: Option<&Self::Points>,
        jobs: &[PointAddition],
        scratch: &mut Self::Scratch,
    ) -> Vec<u32> {
        let Scratch { left, right } = scratch;
        left.clear();
        left.extend(jobs.iter().map(|job| targets[job.target as usize]));
        right.clear();
        let sources = sources.unwrap_or(targets);
        right.extend(jobs.iter().map(|job| signed(sources, job.source)));
        batch_add_assign(left, right);
        let mut infinite = Vec::new();
        for (job, sum) in jobs.iter().zip(left) {
            targets[job.target as usize] = *sum;
            if sum.is_zero() {
                infinite.push(job.target);
            }
        }
        infinite
    }

    fn get(points: &Self::Points, index: usize) -> Affine<P> {
        points[index]
    }
}
