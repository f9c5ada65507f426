//! Commitments to vectors of points: CM_D, CM₁ and CM₂ of section 5.1 of the Hekaton paper, which are those of
//! SnarkPack (eprint.iacr.org/2021/529, section 3.2).
//!
//! With the key (v₁, v₂, w₁, w₂) = (aⁱ·H, bⁱ·H, a^(N+i)·G, b^(N+i)·G), i below N:
//!
//! * CM_D(A, B) = (Σ e(Aᵢ, v₁ᵢ) + Σ e(w₁ᵢ, Bᵢ), Σ e(Aᵢ, v₂ᵢ) + Σ e(w₂ᵢ, Bᵢ)),
//! * CM₁(A) = CM_D(A, 0) and CM₂(B) = CM_D(0, B).
//!
//! Binding, not hiding. The target group is written as a sum, as arkworks does.

use std::ops::Range;

use ark_ec::CurveGroup;
use ark_ec::pairing::{MillerLoopOutput, PairingOutput};
use ark_ff::AdditiveGroup;
use proofmill_kernels::pairing::{Product, final_exponentiation_each};
use rayon::prelude::*;

use crate::srs::CommitmentKey;
use crate::torus::{AggregationCurve, TorusError, element_bytes, read_elements, write_elements};

/// A commitment, T and U of the paper: one element under the powers of a, one under those of b.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Commitment<E: AggregationCurve>(pub(crate) [PairingOutput<E>; 2]);

// === impl Commitment ===

impl<E: AggregationCurve> Commitment<E> {
    /// The bytes of a commitment: 576 over BLS12-381.
    pub fn encoded_size() -> usize {
        2 * element_bytes::<E>()
    }

    /// Both elements, compressed.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(Self::encoded_size());
        write_elements(&self.0, &mut bytes);
        bytes
    }

    /// Decodes an untrusted commitment.
    ///
    /// # Errors
    ///
    /// [`TorusError`] for any bytes that [`to_bytes`](Self::to_bytes) does not make.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, TorusError> {
        let wrong_length = TorusError::Length {
            size: Self::encoded_size(),
            found: bytes.len(),
        };
        match read_elements(bytes)?[..] {
            [t, u] => Ok(Self([t, u])),
            _ => Err(wrong_length),
        }
    }
}

impl<E: AggregationCurve> std::iter::Sum for Commitment<E> {
    /// The commitment to the sum of the vectors: of parts of one vector, to the vector.
    fn sum<I: Iterator<Item = Self>>(commitments: I) -> Self {
        let mut sum = Self([PairingOutput::ZERO; 2]);
        for commitment in commitments {
            add_each(&mut sum.0, &commitment.0);
        }
        sum
    }
}

// === impl CommitmentKey ===

impl<E: AggregationCurve> CommitmentKey<'_, E> {
    /// CM₁ of up to N points; the rest are infinity.
    ///
    /// # Panics
    ///
    /// If there are more points.
    pub fn commit_first(&self, points: &[E::G1Affine]) -> Commitment<E> {
        self.commit_both(points, &[])
    }

    /// CM_D of up to N points of either group; the rest are infinity.
    ///
    /// # Panics
    ///
    /// If there are more points.
    pub fn commit_both(&self, first: &[E::G1Affine], second: &[E::G2Affine]) -> Commitment<E> {
        let size = self.size;
        assert!(
            first.len() <= size && second.len() <= size,
            "a key for {size} points, not for {} and {}",
            first.len(),
            second.len()
        );
        let (v, w) = (self.v(), self.w());
        Commitment([0, 1].map(|side: usize| {
            let mut product = Product::new();
            multiply_all(&mut product, first, v[side]);
            multiply_all(&mut product, w[side], second);
            product.value()
        }))
    }

    /// CM₂ of a vector of few values, given as the places where each value is: as many pairings as there
    /// are values.
    pub(crate) fn commit_values(
        &self,
        values: &[(E::G2Affine, Vec<Range<usize>>)],
    ) -> Commitment<E> {
        Commitment(self.w().map(|w| {
            let sums: Vec<E::G1> = values
                .par_iter()
                .map(|(_, places)| {
                    let terms = places.iter().flat_map(|places| &w[places.clone()]);
                    terms.fold(E::G1::default(), |sum, term| sum + term)
                })
                .collect();
            let sums = E::G1::normalize_batch(&sums);
            let mut product = Product::new();
            for (sum, (value, _)) in sums.iter().zip(values) {
                product.multiply(*sum, *value);
            }
            product.value()
        }))
    }
}

/// Multiplies by the pairings of points with the same number, as far as both lists go.
pub(crate) fn multiply_all<E: AggregationCurve>(
    product: &mut Product<'_, E>,
    left: &[E::G1Affine],
    right: &[E::G2Affine],
) {
    for (left, right) in left.iter().zip(right) {
        product.multiply(*left, *right);
    }
}

/// Adds each element to the one with the same number.
pub(crate) fn add_each<E: AggregationCurve>(
    sums: &mut [PairingOutput<E>],
    elements: &[PairingOutput<E>],
) {
    for (sum, element) in sums.iter_mut().zip(elements) {
        *sum += element;
    }
}

/// The elements of Miller loops of points in the subgroups, exponentiated side by side.
pub(crate) fn exponentiate<E: AggregationCurve, const COUNT: usize>(
    loops: [MillerLoopOutput<E>; COUNT],
) -> [PairingOutput<E>; COUNT] {
    let values = final_exponentiation_each(&loops);
    std::array::from_fn(|i| values[i].expect("points of the second group are in the subgroup"))
}
