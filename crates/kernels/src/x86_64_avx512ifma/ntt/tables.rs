//! Powers of roots of unity, in the forms that the kernels take.

use ark_ff::{Field, PrimeField};

use super::arithmetic::{Constants, Factor, LaneFactors};
use super::network::Network;
use crate::x86_64_avx512ifma::modulus::{Scalar, limbs};

/// 2²⁶⁰ as a field element.
fn radix<P: Constants>() -> Scalar<P, 4> {
    Scalar::<P, 4>::from(2u64).pow([260])
}

fn factor<P: Constants>(value: Scalar<P, 4>, radix: Scalar<P, 4>) -> Factor {
    Factor::new::<P>(&value.into_bigint().0, &(value * radix).into_bigint().0)
}

/// 1, base, base², … .
pub(super) fn powers<F: Field>(base: F) -> impl Iterator<Item = F> {
    std::iter::successors(Some(F::ONE), move |power| Some(*power * base))
}

/// The network of a transform of `size` points, a power of two and at least 8, by `root` of that
/// order: output k is Σ input(j)·scaleʲ·rootʲᵏ.
pub(super) fn network<P: Constants>(
    size: usize,
    root: Scalar<P, 4>,
    scale: Scalar<P, 4>,
) -> Network {
    let radix = radix::<P>();
    // Two transforms of m/2 points make one of m by factors scale^(size/m)·(root^(size/m))ʲ.
    let power = |m: usize| {
        (
            scale.pow([(size / m) as u64]),
            root.pow([(size / m) as u64]),
        )
    };
    let triples = |h: usize| {
        let ((a_scale, a_root), (b_scale, b_root)) = (power(2 * h), power(4 * h));
        let quarter = root.pow([(size / 4) as u64]);
        powers(a_root)
            .zip(powers(b_root))
            .take(h)
            .map(move |(a, b)| {
                [a_scale * a, b_scale * b, b_scale * b * quarter]
                    .map(|value| factor::<P>(value, radix))
            })
    };
    let mut factors = Vec::new();
    let (first, mut h) = if size.trailing_zeros().is_multiple_of(2) {
        (triples(1).next(), 4)
    } else {
        (Some([factor::<P>(power(2).0, radix); 3]), 2)
    };
    while 4 * h <= size {
        factors.extend(triples(h));
        h *= 4;
    }
    Network {
        size,
        first: first.expect("h is 1"),
        shifted: scale != Scalar::<P, 4>::ONE,
        factors,
    }
}

/// The factors `factor·lane_baseˡ·(step_baseˡ·step)ᵏ` for the outputs k of the transforms in lanes
/// l = 8·block .. 8·block + 8.
pub(super) struct Twist<P: Constants> {
    pub(super) factor: Scalar<P, 4>,
    pub(super) lane_base: Scalar<P, 4>,
    pub(super) step_base: Scalar<P, 4>,
    pub(super) step: Scalar<P, 4>,
}

/// The one of eight consecutive transforms that each lane does. This order makes eight adjacent elements
/// cheapest to load and store.
pub(super) const LANE_ORDER: [usize; 8] = [0, 2, 1, 3, 4, 6, 5, 7];

/// Factors for one block of eight lanes: the factor of each quarter's first output, times 2²⁶⁰, and the
/// step from an output's factor to the next one's. 1,920 bytes.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Chain {
    pub(super) starts: [[[u64; 8]; 5]; 4],
    pub(super) step: LaneFactors,
}

impl<P: Constants> Twist<P> {
    /// The chains of `lanes / 8` blocks, for transforms of `size` points.
    pub(super) fn chains(&self, lanes: usize, size: usize) -> Vec<Chain> {
        let radix = radix::<P>();
        let mut chains = Vec::with_capacity(lanes / 8);
        let mut lane_powers = powers(self.lane_base).zip(powers(self.step_base));
        for _ in 0..lanes / 8 {
            let mut chain = Chain {
                starts: [[[0; 8]; 5]; 4],
                step: LaneFactors {
                    value: [[0; 8]; 5],
                    quotient: [[0; 8]; 5],
                },
            };
            // The order is its own inverse.
            for (lane, (lane_power, step_power)) in
                LANE_ORDER.into_iter().zip(lane_powers.by_ref().take(8))
            {
                let step = step_power * self.step;
                let Factor { value, quotient } = factor::<P>(step, radix);
                for i in 0..5 {
                    chain.step.value[i][lane] = value[i];
                    chain.step.quotient[i][lane] = quotient[i];
                }
                let quarter = step.pow([(size / 4) as u64]);
                let first = self.factor * lane_power * radix;
                for (start, power) in chain.starts.iter_mut().zip(powers(quarter)) {
                    let cut: [u64; 5] = limbs(&(first * power).into_bigint().0);
                    for i in 0..5 {
                        start[i][lane] = cut[i];
                    }
                }
            }
            chains.push(chain);
        }
        chains
    }
}

/// The powers 1, base, … base^(count−1).
pub(super) fn scale<P: Constants>(base: Scalar<P, 4>, count: usize) -> Vec<Factor> {
    let radix = radix::<P>();
    powers(base)
        .take(count)
        .map(|value| factor::<P>(value, radix))
        .collect()
}
