//! Several products, final exponentiations and powers, each for itself.

use ark_ec::pairing::{MillerLoopOutput, PairingOutput};
use ark_ff::One;
use rayon::prelude::*;

use super::{PairingCurve, Product};
use crate::InstructionSet;

/// Products or values that vectors hold side by side.
const LANES: usize = 8;
/// The most items that take less time one after the other than side by side.
const FEW: usize = 2;

/// Like [`final_exponentiation`](super::final_exponentiation), of each of the values, which take less time
/// together: vector kernels have eight of them side by side. Work is done on the threads of the current rayon
/// pool.
///
/// ```
/// use ark_bn254::{Bn254, G1Affine, G2Affine};
/// use ark_ec::AffineRepr;
/// use ark_ec::pairing::Pairing;
/// use proofmill_kernels::pairing;
///
/// let (p, q) = (G1Affine::generator(), G2Affine::generator());
/// let loops = [
///     pairing::multi_miller_loop::<Bn254>(&[p], &[q]),
///     pairing::multi_miller_loop::<Bn254>(&[p, p], &[q, q]),
/// ];
/// let expected = [Bn254::pairing(p, q), Bn254::multi_pairing([p, p], [q, q])];
/// assert_eq!(pairing::final_exponentiation_each(&loops), expected.map(Some));
/// ```
pub fn final_exponentiation_each<E: PairingCurve>(
    values: &[MillerLoopOutput<E>],
) -> Vec<Option<PairingOutput<E>>> {
    final_exponentiation_each_on(InstructionSet::current(), values)
}

/// Like [`final_exponentiation_each`], on a chosen back end.
///
/// # Panics
///
/// If this machine lacks the instructions.
pub fn final_exponentiation_each_on<E: PairingCurve>(
    set: InstructionSet,
    values: &[MillerLoopOutput<E>],
) -> Vec<Option<PairingOutput<E>>> {
    let values: Vec<_> = values.iter().map(|value| value.0).collect();
    let one = |value: &E::TargetField| E::final_exponentiation_on(set, *value);
    let several = |values: &[_]| E::final_exponentiation_each_on(set, values);
    let powers = each(set, &values, one, several);
    let powers = powers.into_iter();
    powers.map(|power| power.map(PairingOutput)).collect()
}

/// `bases[i]^exponents[i]` in the target group of each of some elements, which take less time together: what
/// arkworks has as `bases[i] * exponents[i]`. See [`multi_power`](super::multi_power).
///
/// # Panics
///
/// If the slices differ in length.
pub fn power_each<E: PairingCurve>(
    bases: &[PairingOutput<E>],
    exponents: &[E::ScalarField],
) -> Vec<PairingOutput<E>> {
    power_each_on(InstructionSet::current(), bases, exponents)
}

/// Like [`power_each`], on a chosen back end.
///
/// # Panics
///
/// As for [`power_each`], and if this machine lacks the instructions.
pub fn power_each_on<E: PairingCurve>(
    set: InstructionSet,
    bases: &[PairingOutput<E>],
    exponents: &[E::ScalarField],
) -> Vec<PairingOutput<E>> {
    assert_eq!(bases.len(), exponents.len(), "one exponent for each base");
    let powers = bases
        .par_chunks(LANES)
        .zip(exponents.par_chunks(LANES))
        .flat_map_iter(|(bases, exponents)| E::power_each_here(set, bases, exponents));
    powers.map(PairingOutput).collect()
}

/// The result for each item, by `one` on single items or by `several` on up to eight of them, whichever takes less
/// time on the threads of the current rayon pool.
fn each<T: Sync, R: Send>(
    set: InstructionSet,
    items: &[T],
    one: impl Fn(&T) -> R + Send + Sync,
    several: impl Fn(&[T]) -> Vec<R> + Send + Sync,
) -> Vec<R> {
    let is_vector = set == InstructionSet::Avx512Ifma;
    if !is_vector || items.len() <= FEW * rayon::current_num_threads() {
        return items.par_iter().with_max_len(1).map(one).collect();
    }
    let chunks = items.par_chunks(LANES).with_max_len(1);
    let results = chunks.flat_map_iter(|items| {
        if items.len() <= FEW {
            items.iter().map(&one).collect()
        } else {
            several(items)
        }
    });
    results.collect()
}

// === impl Product ===

impl<E: PairingCurve> Product<'_, E> {
    /// The value of each product, the same as [`checked_value`](Self::checked_value).
    ///
    /// Many products take less time together than one after the other: vector kernels compute eight side by side, in
    /// the time of the one with the most pairs. Runs on the threads of the current rayon pool.
    ///
    /// # Panics
    ///
    /// If they are on different back ends, or on one whose instructions this machine lacks.
    ///
    /// ```
    /// use ark_bn254::{Bn254, Fr, G1Affine, G2Affine};
    /// use ark_ec::pairing::Pairing;
    /// use ark_ec::{AffineRepr, CurveGroup};
    /// use proofmill_kernels::pairing::{PreparedG2, Product};
    ///
    /// let (p, q) = (G1Affine::generator(), G2Affine::generator());
    /// let prepared = PreparedG2::<Bn254>::new(q);
    /// let products: Vec<_> = (1..=10u64)
    ///     .map(|i| {
    ///         let mut product = Product::new();
    ///         product.multiply((p * Fr::from(i)).into_affine(), q);
    ///         product.multiply_prepared(p, &prepared);
    ///         product
    ///     })
    ///     .collect();
    /// let values = Product::checked_value_each(&products);
    /// assert_eq!(values[4], Some(Bn254::pairing(p, q) * Fr::from(6)));
    /// ```
    pub fn checked_value_each(products: &[Self]) -> Vec<Option<PairingOutput<E>>> {
        let Some(set) = products.first().map(Self::instruction_set) else {
            return Vec::new();
        };
        let is_on_it = |product: &Self| product.instruction_set() == set;
        assert!(products.iter().all(is_on_it), "products on one back end");
        each(set, products, Self::checked_value, |products| {
            let terms: Vec<_> = products.iter().map(Self::terms).collect();
            let values = E::value_each_on(set, &terms).into_iter();
            values.map(|value| value.map(PairingOutput)).collect()
        })
    }

    /// Whether each product exists and is one. See [`checked_value_each`](Self::checked_value_each).
    ///
    /// # Panics
    ///
    /// As for [`checked_value_each`](Self::checked_value_each).
    pub fn is_one_each(products: &[Self]) -> Vec<bool> {
        let values = Self::checked_value_each(products).into_iter();
        let is_one = |value: PairingOutput<E>| value.0.is_one();
        values.map(|value| value.is_some_and(is_one)).collect()
    }
}
