//! Transforms in safe Rust over any field's arithmetic: a decimation in time, level by level.
//!
//! The levels within a block that fits the second-level cache are done block by block. Against
//! arkworks' transforms, which are the same arithmetic, this keeps the powers of the root and orders
//! them for each level, and does not multiply by 1.

use std::sync::OnceLock;

use ark_ff::FftField;
use ark_poly::{EvaluationDomain, Radix2EvaluationDomain};
use rayon::prelude::*;

use crate::ntt::Transforms;

/// Elements of a block whose levels are computed together: 128 KiB of 256-bit elements, and as much of powers.
const BLOCK: usize = 1 << 12;
/// Elements from which on work is divided among threads, and the least that one gets.
const PARALLEL: usize = 1 << 10;

/// The transforms of one domain. The powers of its root, n elements in all, are made when first
/// needed and kept.
pub(crate) struct NttPlan<F: FftField> {
    subgroup: Radix2EvaluationDomain<F>,
    coset: Radix2EvaluationDomain<F>,
    /// For each level, which joins two transforms of h points to one of 2h, the h powers of its root.
    levels: OnceLock<Vec<Vec<F>>>,
}

// === impl NttPlan ===

impl<F: FftField> NttPlan<F> {
    pub(crate) fn new(
        subgroup: Radix2EvaluationDomain<F>,
        coset: Radix2EvaluationDomain<F>,
    ) -> Self {
        Self {
            subgroup,
            coset,
            levels: OnceLock::new(),
        }
    }

    fn levels(&self) -> &[Vec<F>] {
        self.levels.get_or_init(|| {
            let mut levels = Vec::new();
            let mut root = self.subgroup.group_gen;
            // From the last level down: each has every second power of the one above.
            let mut size = self.subgroup.size();
            while size > 1 {
                let mut powers = vec![F::ONE; size / 2];
                multiply_by_powers(&mut powers, F::ONE, root);
                levels.push(powers);
                root.square_in_place();
                size /= 2;
            }
            levels.reverse();
            levels
        })
    }

    /// Σ value(j)·rootʲᵏ in natural order.
    fn transform(&self, values: &mut [F]) {
        reverse_indices(values);
        let levels = self.levels();
        // A block for each thread, if they are not too small.
        let share = values.len() / rayon::current_num_threads().next_power_of_two();
        let within = share.clamp(PARALLEL, BLOCK).trailing_zeros() as usize;
        let within = within.min(levels.len());
        let (within, across) = levels.split_at(within);
        let block = 1 << within.len();
        let blocks = |block: &mut [F]| {
            for powers in within {
                for pair in block.chunks_exact_mut(2 * powers.len()) {
                    let (low, high) = pair.split_at_mut(powers.len());
                    // The first power is 1.
                    (low[0], high[0]) = (low[0] + high[0], low[0] - high[0]);
                    butterflies(&mut low[1..], &mut high[1..], &powers[1..]);
                }
            }
        };
        if values.len() <= PARALLEL {
            blocks(values);
            return;
        }
        values.par_chunks_mut(block).for_each(blocks);
        for powers in across {
            for pair in values.chunks_exact_mut(2 * powers.len()) {
                let (low, high) = pair.split_at_mut(powers.len());
                low.par_chunks_mut(PARALLEL)
                    .zip(high.par_chunks_mut(PARALLEL))
                    .zip(powers.par_chunks(PARALLEL))
                    .for_each(|((low, high), powers)| butterflies(low, high, powers));
            }
        }
    }

    /// n⁻¹·scaleᵏ·Σ value(j)·root⁻ʲᵏ in natural order: the forward transform read backwards.
    fn transform_back(&self, values: &mut [F], scale: F) {
        self.transform(values);
        values[1..].reverse();
        multiply_by_powers(values, self.subgroup.size_inv, scale);
    }
}

impl<F: FftField> Transforms<F> for NttPlan<F> {
    fn forward(&self, values: &mut [F]) {
        self.transform(values);
    }

    fn inverse(&self, values: &mut [F]) {
        self.transform_back(values, F::ONE);
    }

    fn coset_forward(&self, values: &mut [F]) {
        multiply_by_powers(values, F::ONE, self.coset.offset);
        self.transform(values);
    }

    fn coset_inverse(&self, values: &mut [F]) {
        self.transform_back(values, self.coset.offset_inv);
    }

    fn coset_extend(&self, values: &mut [F]) {
        // Between the transforms coefficients are scaled once.
        self.transform_back(values, self.coset.offset);
        self.transform(values);
    }
}

/// `u ± power·v` for each pair.
fn butterflies<F: FftField>(low: &mut [F], high: &mut [F], powers: &[F]) {
    for ((u, v), power) in low.iter_mut().zip(high).zip(powers) {
        let product = *v * power;
        *v = *u - product;
        *u += product;
    }
}

/// Exchanges values whose indices are each other's bit reversal.
fn reverse_indices<F>(values: &mut [F]) {
    let bits = values.len().trailing_zeros();
    if bits == 0 {
        return;
    }
    for i in 0..values.len() {
        let j = i.reverse_bits() >> (usize::BITS - bits);
        if i < j {
            values.swap(i, j);
        }
    }
}

/// Multiplies value i by `factor·baseⁱ`.
fn multiply_by_powers<F: FftField>(values: &mut [F], factor: F, base: F) {
    let multiply = |(chunk, values): (usize, &mut [F])| {
        if base.is_one() {
            for value in values {
                *value *= factor;
            }
            return;
        }
        let mut power = factor * base.pow([(chunk * PARALLEL) as u64]);
        for value in values {
            *value *= power;
            power *= base;
        }
    };
    if values.len() <= PARALLEL {
        multiply((0, values));
    } else {
        values
            .par_chunks_mut(PARALLEL)
            .enumerate()
            .for_each(multiply);
    }
}
