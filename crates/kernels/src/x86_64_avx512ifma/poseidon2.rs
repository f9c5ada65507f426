//! Poseidon2 permutations of eight states side by side.
//!
//! Ranges are in multiples of p, as in [`VectorField`]. A product of factors below α and β is below
//! 1 + αβ/35 ([`Fp::multiply`]); [`Fp::reduce`] takes values below 8 and returns values below 1.13.

use ark_bn254::{Fr, FrConfig};
use ark_ff::PrimeField;

use super::field::Fp;
use super::modulus::{LIMB_BITS, limbs};
use super::vector_field::VectorField;
use crate::InstructionSet;
use crate::instruction_set::checked;
use crate::poseidon2::Poseidon2Parameters;

type Vector = Fp<FrConfig, 5, 4>;
/// An element in this back end's Montgomery form, canonical.
type Limbs = [u64; 5];
type State = [Vector; 4];

/// The parameters in this back end's form.
#[derive(Debug)]
pub(crate) struct Parameters {
    diagonal_less_one: [Limbs; 4],
    initial_full_constants: Vec<[Limbs; 4]>,
    partial_constants: Vec<Limbs>,
    final_full_constants: Vec<[Limbs; 4]>,
}

// === impl Parameters ===

impl Parameters {
    pub(crate) fn new(parameters: &Poseidon2Parameters) -> Self {
        let rounds = |added: &[[Fr; 4]]| added.iter().map(|added| added.map(to_limbs)).collect();
        Self {
            diagonal_less_one: parameters.diagonal_less_one.map(to_limbs),
            initial_full_constants: rounds(&parameters.initial_full_constants),
            partial_constants: parameters
                .partial_constants
                .iter()
                .copied()
                .map(to_limbs)
                .collect(),
            final_full_constants: rounds(&parameters.final_full_constants),
        }
    }
}

/// Converts from arkworks' radix 2²⁵⁶ to the radix 2²⁶⁰ of five limbs: the words of 16 times the number.
fn to_limbs(element: Fr) -> Limbs {
    const {
        assert!(LIMB_BITS * 5 == 256 + 4 && Fr::MODULUS_BIT_SIZE <= 256);
    }
    limbs(&(element * Fr::from(16u64)).0.0)
}

/// Applies the permutation to one to eight states.
///
/// # Panics
///
/// If this machine lacks the instructions, or there are more states.
pub(crate) fn permute_each(parameters: &Parameters, states: &mut [[Fr; 4]]) {
    checked(InstructionSet::Avx512Ifma);
    assert!((1..=8).contains(&states.len()), "{} states", states.len());
    // SAFETY: the instructions are there.
    unsafe { permute(parameters, states) }
}

/// # Safety
///
/// The instructions of this back end. There is at least one state.
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma,avx512vbmi2")]
unsafe fn permute(parameters: &Parameters, states: &mut [[Fr; 4]]) {
    // SAFETY: as the caller promises; the places are elements of states, of which the first takes the
    // lanes that no other does.
    unsafe {
        let place = |lane: usize| &states[if lane < states.len() { lane } else { 0 }];
        let mut vectors: State = [Vector::zero_limbs(); 4];
        for (i, vector) in vectors.iter_mut().enumerate() {
            *vector = Vector::load_ark(std::array::from_fn(|lane| &raw const place(lane)[i]));
        }
        multiply_external(&mut vectors);
        for added in &parameters.initial_full_constants {
            full_round(&mut vectors, added);
        }
        partial_rounds(
            &mut vectors,
            &parameters.partial_constants,
            &parameters.diagonal_less_one,
        );
        for added in &parameters.final_full_constants {
            full_round(&mut vectors, added);
        }
        for (i, vector) in vectors.iter().enumerate() {
            for (state, element) in states.iter_mut().zip(vector.to_ark_lanes()) {
                state[i] = element;
            }
        }
    }
}

/// Inputs and outputs are below 1.3.
///
/// # Safety
///
/// The instructions of this back end; so below.
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma,avx512vbmi2")]
unsafe fn full_round(state: &mut State, added: &[Limbs; 4]) {
    // SAFETY: as the caller promises.
    unsafe {
        for (element, added) in state.iter_mut().zip(added) {
            // Below 2.3.
            *element = Vector::add_raw(*element, Vector::splat_limbs(added)).carry();
        }
        let [a, b, c, d] = *state;
        // Squares are below 1.16, fourth powers below 1.04, fifth ones below 1.07.
        let [a2, b2] = Vector::multiply_two([&a, &b], [&a, &b]);
        let [c2, d2] = Vector::multiply_two([&c, &d], [&c, &d]);
        let [a4, b4] = Vector::multiply_two([&a2, &b2], [&a2, &b2]);
        let [c4, d4] = Vector::multiply_two([&c2, &d2], [&c2, &d2]);
        let [a, b] = Vector::multiply_two([&a4, &b4], [&a, &b]);
        let [c, d] = Vector::multiply_two([&c4, &d4], [&c, &d]);
        *state = [a, b, c, d];
        multiply_external(state);
    }
}

/// Like the portable one. Inputs are below 1.3, outputs below 1.13.
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma,avx512vbmi2")]
unsafe fn multiply_external(state: &mut State) {
    // SAFETY: as the caller promises.
    unsafe {
        let add = |a, b| Vector::add_raw(a, b);
        let [a, b, c, d] = *state;
        // Below 2.6.
        let (ab, cd) = (add(a, b), add(c, d));
        // Below 5.2.
        let left = add(add(b, b), cd);
        let right = add(add(d, d), ab);
        // Reduced before it is doubled again: below 2.26 + 5.2.
        let (twice_ab, twice_cd) = (add(ab, ab).reduce(), add(cd, cd).reduce());
        let last = add(add(twice_cd, twice_cd), right).reduce();
        let second = add(add(twice_ab, twice_ab), left).reduce();
        *state = [
            add(right, second).reduce(),
            second,
            add(left, last).reduce(),
            last,
        ];
    }
}

/// Inputs are below 1.3, outputs below 1.13.
///
/// After the first round, element i is a product mᵢ plus the sum of the elements before, which all share.
/// Three products depend only on that sum, so they fill the latency of the S-box.
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma,avx512vbmi2")]
unsafe fn partial_rounds(state: &mut State, added: &[Limbs], diagonal: &[Limbs; 4]) {
    // SAFETY: as the caller promises.
    unsafe {
        let add = |a, b| Vector::add_raw(a, b);
        let diagonal = [
            Vector::splat_limbs(&diagonal[0]),
            Vector::splat_limbs(&diagonal[1]),
            Vector::splat_limbs(&diagonal[2]),
            Vector::splat_limbs(&diagonal[3]),
        ];
        for added in added {
            // Below 3.3, of elements below 2.2.
            let x = add(state[0], Vector::splat_limbs(added)).carry();
            let [_, b, c, d] = *state;
            // Below 1.32, 1.05 and 1.1; the others below 1.07.
            let [square, m1] = Vector::multiply_two([&x, &b], [&x, &diagonal[1]]);
            let [fourth, m2] = Vector::multiply_two([&square, &c], [&square, &diagonal[2]]);
            let [fifth, m3] = Vector::multiply_two([&fourth, &d], [&x, &diagonal[3]]);
            // Below 1.1 + 3·2.2.
            let sum = add(add(fifth, b), add(c, d)).reduce();
            let m0 = Vector::multiply(fifth, diagonal[0]);
            // Below 1.07 + 1.13.
            *state = [
                add(m0, sum).carry(),
                add(m1, sum).carry(),
                add(m2, sum).carry(),
                add(m3, sum).carry(),
            ];
        }
        for element in state {
            *element = element.reduce();
        }
    }
}
