//! The permutation Poseidon2 (Grassi, Khovratovich and Schofnegger, eprint.iacr.org/2023/323) over
//! BN254's scalar field, with states of four elements and the S-box x⁵: many states side by side.

use ark_bn254::Fr;
use ark_ff::{AdditiveGroup, Field};

use crate::InstructionSet;
use crate::instruction_set::checked;
#[cfg(target_arch = "x86_64")]
use crate::x86_64_avx512ifma::poseidon2 as vector;

/// Elements of a state.
const WIDTH: usize = 4;
/// States a vector must have to be faster than one state after the other.
#[cfg(target_arch = "x86_64")]
const FEWEST: usize = 2;

/// The numbers that tell one instance of the permutation from others.
#[derive(Clone, Debug)]
pub struct Poseidon2Parameters {
    /// The diagonal of the internal matrix, less the one that all entries of that matrix have.
    pub diagonal_less_one: [Fr; WIDTH],
    /// What is added in the full rounds before the partial ones.
    pub first: Vec<[Fr; WIDTH]>,
    /// What is added to the first element in the partial rounds.
    pub partial: Vec<Fr>,
    /// What is added in the full rounds after the partial ones.
    pub last: Vec<[Fr; WIDTH]>,
}

/// An instance of the permutation.
#[derive(Debug)]
pub struct Poseidon2 {
    parameters: Poseidon2Parameters,
    #[cfg(target_arch = "x86_64")]
    vector: Option<vector::Parameters>,
}

// === impl Poseidon2 ===

impl Poseidon2 {
    /// The instance with these parameters.
    pub fn new(parameters: Poseidon2Parameters) -> Self {
        Self::new_on(InstructionSet::current(), parameters)
    }

    /// As [`new`](Self::new), on a chosen back end.
    ///
    /// # Panics
    ///
    /// If this machine has not the instructions.
    pub fn new_on(set: InstructionSet, parameters: Poseidon2Parameters) -> Self {
        checked(set);
        Self {
            #[cfg(target_arch = "x86_64")]
            vector: (set == InstructionSet::Avx512Ifma)
                .then(|| vector::Parameters::new(&parameters)),
            parameters,
        }
    }

    /// How many states take about as long together as one alone.
    pub fn lanes(&self) -> usize {
        #[cfg(target_arch = "x86_64")]
        if self.vector.is_some() {
            return 8;
        }
        1
    }

    /// Applies the permutation to a state.
    pub fn permute(&self, state: &mut [Fr; WIDTH]) {
        let Poseidon2Parameters {
            diagonal_less_one,
            first,
            partial,
            last,
        } = &self.parameters;
        multiply_external(state);
        first.iter().for_each(|added| full_round(state, added));
        for added in partial {
            state[0] = fifth_power(state[0] + added);
            multiply_internal(state, diagonal_less_one);
        }
        last.iter().for_each(|added| full_round(state, added));
    }

    /// Applies the permutation to each state, on this thread.
    pub fn permute_each(&self, states: &mut [[Fr; WIDTH]]) {
        #[cfg(target_arch = "x86_64")]
        if let Some(parameters) = &self.vector {
            for states in states.chunks_mut(8) {
                if states.len() < FEWEST {
                    states.iter_mut().for_each(|state| self.permute(state));
                } else {
                    vector::permute_each(parameters, states);
                }
            }
            return;
        }
        states.iter_mut().for_each(|state| self.permute(state));
    }
}

fn full_round(state: &mut [Fr; WIDTH], added: &[Fr; WIDTH]) {
    for (element, added) in state.iter_mut().zip(added) {
        *element = fifth_power(*element + added);
    }
    multiply_external(state);
}

#[inline]
fn fifth_power(x: Fr) -> Fr {
    x.square().square() * x
}

/// Multiplies by the matrix M₄ of the paper's appendix B:
/// (5 7 1 3; 4 6 1 1; 1 3 5 7; 1 1 4 6).
#[inline]
fn multiply_external(state: &mut [Fr; WIDTH]) {
    let [a, b, c, d] = *state;
    let (ab, cd) = (a + b, c + d);
    let left = b.double() + cd;
    let right = d.double() + ab;
    let last = cd.double().double() + right;
    let second = ab.double().double() + left;
    *state = [right + second, second, left + last, last];
}

/// Multiplies by the matrix of ones, plus the diagonal.
#[inline]
fn multiply_internal(state: &mut [Fr; WIDTH], diagonal_less_one: &[Fr; WIDTH]) {
    let sum = state[0] + state[1] + state[2] + state[3];
    for (element, factor) in state.iter_mut().zip(diagonal_less_one) {
        *element = *element * factor + sum;
    }
}
