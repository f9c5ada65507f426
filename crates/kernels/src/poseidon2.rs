//! The permutation Poseidon2 (Grassi, Khovratovich and Schofnegger, eprint.iacr.org/2023/323) over
//! scalar fields of pairing-friendly curves, with states of four elements, the S-box x⁵, 8 full and
//! 56 partial rounds; over BN254's, many states side by side.

use std::sync::LazyLock;

use ark_bn254::Fr;
use ark_ff::{BigInteger, MontFp, PrimeField};

use crate::InstructionSet;
use crate::instruction_set::checked;
#[cfg(target_arch = "x86_64")]
use crate::x86_64_avx512ifma::poseidon2 as vector;

/// Elements of a state.
const WIDTH: usize = 4;
/// Rounds with an S-box on each element, half of them before the partial rounds.
const FULL_ROUNDS: usize = 8;
/// Rounds with an S-box on the first element only.
const PARTIAL_ROUNDS: usize = 56;
/// The fewest states for which a vector is faster than one state after the other.
#[cfg(target_arch = "x86_64")]
const FEWEST: usize = 2;

/// Parameters of an instance of the permutation.
#[derive(Clone, Debug)]
pub struct Poseidon2Parameters<F = Fr> {
    /// The diagonal of the internal matrix, minus one: all other entries of that matrix are one.
    pub diagonal_less_one: [F; WIDTH],
    /// Round constants of the full rounds before the partial ones.
    pub initial_full_constants: Vec<[F; WIDTH]>,
    /// Round constants of the partial rounds, added to the first element.
    pub partial_constants: Vec<F>,
    /// Round constants of the full rounds after the partial ones.
    pub final_full_constants: Vec<[F; WIDTH]>,
}

/// A field with a published instance of the permutation for states of four elements.
///
/// The diagonals are the reference implementation's (HorizenLabs/poseidon2), which barretenberg has
/// for BN254 too; the round constants follow from the field ([`Poseidon2Parameters::derive`]).
pub trait Poseidon2Field: PrimeField {
    /// The published instance.
    fn poseidon2() -> &'static Poseidon2Parameters<Self>;
}

impl Poseidon2Field for Fr {
    fn poseidon2() -> &'static Poseidon2Parameters<Self> {
        static PARAMETERS: LazyLock<Poseidon2Parameters> = LazyLock::new(|| {
            Poseidon2Parameters::derive([
                MontFp!("0x10dc6e9c006ea38b04b1e03b4bd9490c0d03f98929ca1d7fb56821fd19d3b6e7"),
                MontFp!("0x0c28145b6a44df3e0149b3d0a30b3bb599df9756d4dd9b84a86b38cfb45a740b"),
                MontFp!("0x00544b8338791518b2c7645a50392798b21f75bb60e3596170067d00141cac15"),
                MontFp!("0x222c01175718386f2e2e82eb122789e352e105a3b8fa852613bc534433ee428b"),
            ])
        });
        &PARAMETERS
    }
}

impl Poseidon2Field for ark_bls12_381::Fr {
    fn poseidon2() -> &'static Poseidon2Parameters<Self> {
        static PARAMETERS: LazyLock<Poseidon2Parameters<ark_bls12_381::Fr>> = LazyLock::new(|| {
            Poseidon2Parameters::derive([
                MontFp!("0x07564ad691bf01c8601d68757a561d224f00f313ada673ab83e6255fb4fd5b3d"),
                MontFp!("0x6184e3be38549f7c0850cd069b32f6decbfde312dd4b8c18349b1b3776a6eaa4"),
                MontFp!("0x419289088178ad742be6f78425c0156b6546a18fd338f0169937dea46cfb64d2"),
                MontFp!("0x3244cdec173b71a4659e2529b499362dac10cb2fd17562860c8bb9d0fd45b787"),
            ])
        });
        &PARAMETERS
    }
}

// === impl Poseidon2Parameters ===

impl<F: PrimeField> Poseidon2Parameters<F> {
    /// The instance with this diagonal (less one) of the internal matrix, and round constants as the
    /// reference implementation derives them (`poseidon2_rust_params.sage`): elements of the Grain
    /// LFSR in the order of use.
    pub fn derive(diagonal_less_one: [F; WIDTH]) -> Self {
        let mut grain = Grain::new(F::MODULUS_BIT_SIZE as usize);
        let full = |grain: &mut Grain| -> Vec<[F; WIDTH]> {
            (0..FULL_ROUNDS / 2)
                .map(|_| std::array::from_fn(|_| grain.element()))
                .collect()
        };
        Self {
            diagonal_less_one,
            initial_full_constants: full(&mut grain),
            partial_constants: (0..PARTIAL_ROUNDS).map(|_| grain.element()).collect(),
            final_full_constants: full(&mut grain),
        }
    }

    /// Applies the permutation to a state.
    pub fn permute(&self, state: &mut [F; WIDTH]) {
        multiply_external(state);
        self.initial_full_constants
            .iter()
            .for_each(|added| full_round(state, added));
        for added in &self.partial_constants {
            state[0] = fifth_power(state[0] + added);
            multiply_internal(state, &self.diagonal_less_one);
        }
        self.final_full_constants
            .iter()
            .for_each(|added| full_round(state, added));
    }
}

/// The Grain LFSR, which Poseidon's parameters come from (eprint.iacr.org/2019/458, appendix F).
struct Grain {
    /// 80 bits, the oldest in bit 0.
    state: u128,
    /// Bits of the field's modulus.
    field_bits: usize,
}

// === impl Grain ===

impl Grain {
    /// Seeded with the instance: a prime field, a power as S-box, bits of the modulus, width, rounds.
    fn new(field_bits: usize) -> Self {
        let parts = [
            (1, 2),
            (0, 4),
            (field_bits, 12),
            (WIDTH, 12),
            (FULL_ROUNDS, 10),
            (PARTIAL_ROUNDS, 10),
            ((1 << 30) - 1, 30),
        ];
        let mut grain = Self {
            state: 0,
            field_bits,
        };
        for (value, bits) in parts {
            for bit in (0..bits).rev() {
                grain.push(value >> bit & 1 == 1);
            }
        }
        for _ in 0..160 {
            grain.step();
        }
        grain
    }

    fn push(&mut self, bit: bool) {
        self.state = self.state >> 1 | u128::from(bit) << 79;
    }

    fn step(&mut self) -> bool {
        let bit = [62, 51, 38, 23, 13, 0]
            .iter()
            .fold(0, |sum, tap| sum ^ self.state >> tap)
            & 1
            == 1;
        self.push(bit);
        bit
    }

    /// The next bit: of each pair of raw bits, the second is used if the first is set, and otherwise skipped.
    fn bit(&mut self) -> bool {
        loop {
            let (counts, bit) = (self.step(), self.step());
            if counts {
                return bit;
            }
        }
    }

    /// The next number of the field's bits, most significant first, that is below the modulus.
    fn element<F: PrimeField>(&mut self) -> F {
        loop {
            let bits: Vec<bool> = (0..self.field_bits).map(|_| self.bit()).collect();
            if let Some(element) = F::from_bigint(F::BigInt::from_bits_be(&bits)) {
                return element;
            }
        }
    }
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

    /// Like [`new`](Self::new), on a chosen back end.
    ///
    /// # Panics
    ///
    /// If this machine lacks the instructions.
    pub fn new_on(set: InstructionSet, parameters: Poseidon2Parameters) -> Self {
        checked(set);
        Self {
            #[cfg(target_arch = "x86_64")]
            vector: (set == InstructionSet::Avx512Ifma)
                .then(|| vector::Parameters::new(&parameters)),
            parameters,
        }
    }

    /// The number of states that take about as long together as one alone: 8 with AVX-512, otherwise 1.
    pub fn lanes(&self) -> usize {
        #[cfg(target_arch = "x86_64")]
        if self.vector.is_some() {
            return 8;
        }
        1
    }

    /// Applies the permutation to a state.
    pub fn permute(&self, state: &mut [Fr; WIDTH]) {
        self.parameters.permute(state);
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

fn full_round<F: PrimeField>(state: &mut [F; WIDTH], added: &[F; WIDTH]) {
    for (element, added) in state.iter_mut().zip(added) {
        *element = fifth_power(*element + added);
    }
    multiply_external(state);
}

#[inline]
fn fifth_power<F: PrimeField>(x: F) -> F {
    x.square().square() * x
}

/// Multiplies by the matrix M₄ of the paper's appendix B:
/// (5 7 1 3; 4 6 1 1; 1 3 5 7; 1 1 4 6).
#[inline]
fn multiply_external<F: PrimeField>(state: &mut [F; WIDTH]) {
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
fn multiply_internal<F: PrimeField>(state: &mut [F; WIDTH], diagonal_less_one: &[F; WIDTH]) {
    let sum = state[0] + state[1] + state[2] + state[3];
    for (element, factor) in state.iter_mut().zip(diagonal_less_one) {
        *element = *element * factor + sum;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `poseidon2_tests_bls12::kats` of HorizenLabs/poseidon2.
    #[test]
    fn permutes_over_bls12_381_as_the_reference() {
        let mut state = [0u64, 1, 2, 3].map(ark_bls12_381::Fr::from);
        ark_bls12_381::Fr::poseidon2().permute(&mut state);
        let expected = [
            MontFp!("0x28ff6c4edf9768c08ae26290487e93449cc8bc155fc2fad92a344adceb3ada6d"),
            MontFp!("0x0e56f2b6fad25075aa93560185b70e2b180ed7e269159c507c288b6747a0db2d"),
            MontFp!("0x6d8196f28da6006bb89b3df94600acdc03d0ba7c2b0f3f4409a54c1db6bf30d0"),
            MontFp!("0x07cfb49540ee456cce38b8a7d1a930a57ffc6660737f6589ef184c5e15334e36"),
        ];
        assert_eq!(state, expected);
    }

    /// `TEST_VECTOR_INPUT` and `TEST_VECTOR_OUTPUT` of barretenberg's `poseidon2_params.hpp`.
    #[test]
    fn permutes_over_bn254_as_barretenberg() {
        let mut state = [0u64, 1, 2, 3].map(Fr::from);
        Fr::poseidon2().permute(&mut state);
        let expected = [
            MontFp!("0x01bd538c2ee014ed5141b29e9ae240bf8db3fe5b9a38629a9647cf8d76c01737"),
            MontFp!("0x239b62e7db98aa3a2a8f6a0d2fa1709e7a35959aa6c7034814d9daa90cbac662"),
            MontFp!("0x04cbb44c61d928ed06808456bf758cbf0c18d1e15a7b6dbc8245fa7515d5e3cb"),
            MontFp!("0x2e11c5cff2a22c64d01304b778d78f6998eff1ab73163a35603f54794c30847a"),
        ];
        assert_eq!(state, expected);
    }

    /// The first and last round constants of barretenberg's `poseidon2_params.hpp`.
    #[test]
    fn constants_are_barretenbergs() {
        let constants = Fr::poseidon2();
        assert_eq!(
            constants.initial_full_constants[0][0],
            MontFp!("0x19b849f69450b06848da1d39bd5e4a4302bb86744edc26238b0878e269ed23e5")
        );
        assert_eq!(
            constants.partial_constants[0],
            MontFp!("0x0c6f8f958be0e93053d7fd4fc54512855535ed1539f051dcb43a26fd926361cf")
        );
        assert_eq!(
            constants.final_full_constants[3][3],
            MontFp!("0x176563472456aaa746b694c60e1823611ef39039b2edc7ff391e6f2293d2c404")
        );
    }
}
