//! The products, as callers see them.

use ark_ec::AffineRepr;
use ark_ec::pairing::{MillerLoopOutput, PairingOutput};
use ark_ff::One;
use rayon::prelude::*;

use super::curve::sealed::{Pair, Terms};
use super::{PairingCurve, PreparedG2};
use crate::InstructionSet;

/// Pairs of a group, the least that a thread is given: those of a vector, or as many as make the
/// squarings of their product cheap beside their lines.
const fn group_size(set: InstructionSet) -> usize {
    match set {
        InstructionSet::Avx512Ifma => 8,
        InstructionSet::Portable => 4,
    }
}

/// A product of pairings, of which some have a prepared point.
///
/// Work is done on the threads of the current rayon pool. Its time depends on the points: do not use
/// it where an attacker measures it and points are secret.
///
/// ```
/// use ark_bn254::{Bn254, Fr, G1Affine, G2Affine};
/// use ark_ec::{AffineRepr, CurveGroup};
/// use proofmill_kernels::pairing::{PreparedG2, Product};
///
/// let (p, q) = (G1Affine::generator(), G2Affine::generator());
/// let prepared = PreparedG2::<Bn254>::new(q);
/// let mut product = Product::new();
/// product.multiply((p * Fr::from(3)).into_affine(), (q * Fr::from(5)).into_affine());
/// product.multiply_prepared((p * -Fr::from(15)).into_affine(), &prepared);
/// assert!(product.is_one());
/// ```
#[derive(Clone, Debug)]
pub struct Product<'a, E: PairingCurve> {
    set: InstructionSet,
    pairs: Vec<Pair<E>>,
    fixed: Vec<(E::G1Affine, &'a PreparedG2<E>)>,
}

/// The product of the Miller loops of `left[i]` and `right[i]`.
///
/// # Panics
///
/// If the slices differ in length.
pub fn multi_miller_loop<E: PairingCurve>(
    left: &[E::G1Affine],
    right: &[E::G2Affine],
) -> MillerLoopOutput<E> {
    Product::of(left, right).miller_loop()
}

/// The final exponentiation, with the same result as arkworks' `Pairing::final_exponentiation`: `None` for
/// zero, which is never the Miller loop of points in the subgroups.
pub fn final_exponentiation<E: PairingCurve>(
    value: MillerLoopOutput<E>,
) -> Option<PairingOutput<E>> {
    E::final_exponentiation_on(InstructionSet::current(), value.0).map(PairingOutput)
}

/// The product of the pairings of `left[i]` and `right[i]`.
///
/// # Panics
///
/// If the slices differ in length, and as [`Product::value`] does.
pub fn product<E: PairingCurve>(left: &[E::G1Affine], right: &[E::G2Affine]) -> PairingOutput<E> {
    Product::of(left, right).value()
}

/// Whether the product of the pairings of `left[i]` and `right[i]` is one.
///
/// # Panics
///
/// If the slices differ in length.
pub fn product_is_one<E: PairingCurve>(left: &[E::G1Affine], right: &[E::G2Affine]) -> bool {
    Product::<E>::of(left, right).is_one()
}

// === impl Product ===

impl<E: PairingCurve> Default for Product<'_, E> {
    fn default() -> Self {
        Self::new()
    }
}

impl<'a, E: PairingCurve> Product<'a, E> {
    /// The empty product, on this process's back end.
    pub fn new() -> Self {
        Self::on(InstructionSet::current())
    }

    /// The empty product, on a chosen back end.
    ///
    /// # Panics
    ///
    /// Evaluating it panics if this machine lacks the instructions.
    pub const fn on(set: InstructionSet) -> Self {
        Self {
            set,
            pairs: Vec::new(),
            fixed: Vec::new(),
        }
    }

    /// The product of `left[i]` paired with `right[i]`, on this process's back end.
    ///
    /// # Panics
    ///
    /// If the slices differ in length.
    pub fn of(left: &[E::G1Affine], right: &[E::G2Affine]) -> Self {
        assert_eq!(left.len(), right.len(), "points of both groups");
        let mut product = Self::new();
        for (left, right) in left.iter().zip(right) {
            product.multiply(*left, *right);
        }
        product
    }

    /// Multiplies by the pairing of two points.
    pub fn multiply(&mut self, left: E::G1Affine, right: E::G2Affine) {
        // Paired with infinity all points give one.
        if !left.is_zero() && !right.is_zero() {
            self.pairs.push((left, right));
        }
    }

    /// Multiplies by the pairing of two points.
    pub fn multiply_prepared(&mut self, left: E::G1Affine, right: &'a PreparedG2<E>) {
        match right.lines() {
            Some(lines) if !left.is_zero() && E::takes(self.set, &(left, lines)) => {
                self.fixed.push((left, right));
            }
            _ => self.multiply(left, right.point()),
        }
    }

    /// The back end that evaluates it.
    pub(super) const fn instruction_set(&self) -> InstructionSet {
        self.set
    }

    /// Its pairs, for a back end.
    pub(super) fn terms(&self) -> Terms<'_, E> {
        let fixed = self.fixed.iter();
        let fixed = fixed.filter_map(|(left, right)| Some((*left, right.lines()?)));
        (&self.pairs, fixed.collect())
    }

    /// The product of the Miller loops.
    pub fn miller_loop(&self) -> MillerLoopOutput<E> {
        let group_size = group_size(self.set);
        let (mut pairs, mut fixed) = (self.pairs.clone(), Vec::new());
        for (left, right) in &self.fixed {
            // A pair in a free lane of a vector costs nothing, prepared or not.
            let is_vector_full = pairs.len() % group_size == 0;
            match right.lines() {
                Some(lines) if self.set == InstructionSet::Portable || is_vector_full => {
                    fixed.push((*left, lines));
                }
                _ => pairs.push((*left, right.point())),
            }
        }
        let groups = pairs.len().div_ceil(group_size) + fixed.len().div_ceil(group_size);
        let threads = rayon::current_num_threads();
        if threads == 1 || groups <= 1 {
            return E::miller_loop_on(self.set, &pairs, &fixed);
        }
        // Each task squares for itself: no more tasks than threads.
        let size = group_size * groups.div_ceil(threads);
        let of_points = pairs.par_chunks(size).map(|pairs| (pairs, &fixed[..0]));
        let of_lines = fixed.par_chunks(size).map(|fixed| (&pairs[..0], fixed));
        let product = of_points
            .chain(of_lines)
            .map(|(pairs, fixed)| E::miller_loop_on(self.set, pairs, fixed).0)
            .product();
        MillerLoopOutput(product)
    }

    /// The product; `None` if it does not exist, for which a point must be outside of its subgroup.
    pub fn checked_value(&self) -> Option<PairingOutput<E>> {
        E::final_exponentiation_on(self.set, self.miller_loop().0).map(PairingOutput)
    }

    /// The product.
    ///
    /// # Panics
    ///
    /// If it does not exist, for which a point of the second group must be outside of the subgroup.
    pub fn value(&self) -> PairingOutput<E> {
        self.checked_value()
            .expect("points of the second group are in the subgroup")
    }

    /// Whether the product exists and is one.
    pub fn is_one(&self) -> bool {
        self.checked_value().is_some_and(|value| value.0.is_one())
    }
}
