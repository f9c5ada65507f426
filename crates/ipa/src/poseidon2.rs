//! Poseidon2 (Grassi, Khovratovich and Schofnegger, eprint.iacr.org/2023/323) over Grumpkin's base
//! field, which is BN254's scalar field: states of four elements, S-box x⁵, 8 full and 56 partial
//! rounds, with the parameters and the sponge of barretenberg (`crypto/poseidon2`).

use std::sync::LazyLock;

use ark_ff::{AdditiveGroup, BigInt, BigInteger, Field, MontFp, PrimeField};

use crate::Base;

/// Elements of a state.
pub const WIDTH: usize = 4;
/// Elements of a state that take input.
pub const RATE: usize = 3;

const FULL_ROUNDS: usize = 8;
const PARTIAL_ROUNDS: usize = 56;
/// Bits of the field's modulus.
const FIELD_BITS: usize = 254;

/// The diagonal of the internal matrix, less the one that all its entries have: the instance for
/// BN254 and width 4 of the reference implementation (HorizenLabs/poseidon2), which barretenberg
/// has as `internal_matrix_diagonal_minus_one`.
const INTERNAL_DIAGONAL_LESS_ONE: [Base; WIDTH] = [
    MontFp!("0x10dc6e9c006ea38b04b1e03b4bd9490c0d03f98929ca1d7fb56821fd19d3b6e7"),
    MontFp!("0x0c28145b6a44df3e0149b3d0a30b3bb599df9756d4dd9b84a86b38cfb45a740b"),
    MontFp!("0x00544b8338791518b2c7645a50392798b21f75bb60e3596170067d00141cac15"),
    MontFp!("0x222c01175718386f2e2e82eb122789e352e105a3b8fa852613bc534433ee428b"),
];

/// What is added in the rounds.
struct RoundConstants {
    full: [[Base; WIDTH]; FULL_ROUNDS],
    partial: [Base; PARTIAL_ROUNDS],
}

static ROUND_CONSTANTS: LazyLock<RoundConstants> = LazyLock::new(RoundConstants::derive);

/// The Grain LFSR, which Poseidon's parameters come from (eprint.iacr.org/2019/458, appendix F).
struct Grain {
    /// 80 bits, the oldest in bit 0.
    state: u128,
}

/// Applies the permutation.
pub fn permute(state: &mut [Base; WIDTH]) {
    let constants = &*ROUND_CONSTANTS;
    let (first, last) = constants.full.split_at(FULL_ROUNDS / 2);
    multiply_external(state);
    first.iter().for_each(|added| full_round(state, added));
    for added in &constants.partial {
        state[0] = fifth_power(state[0] + added);
        multiply_internal(state);
    }
    last.iter().for_each(|added| full_round(state, added));
}

/// The hash of any number of elements: a sponge of rate [`RATE`] with the number of elements,
/// times 2⁶⁴, in the capacity; what the last block lacks is zero.
pub fn hash(input: &[Base]) -> Base {
    let mut state = [Base::ZERO; WIDTH];
    state[RATE] = Base::from((input.len() as u128) << 64);
    let mut absorb = |block: &[Base]| {
        for (element, added) in state.iter_mut().zip(block) {
            *element += added;
        }
        permute(&mut state);
    };
    if input.is_empty() {
        absorb(&[]);
    }
    input.chunks(RATE).for_each(absorb);
    state[0]
}

fn full_round(state: &mut [Base; WIDTH], added: &[Base; WIDTH]) {
    for (element, added) in state.iter_mut().zip(added) {
        *element = fifth_power(*element + added);
    }
    multiply_external(state);
}

#[inline]
fn fifth_power(x: Base) -> Base {
    x.square().square() * x
}

/// Multiplies by the matrix M₄ of the paper's appendix B:
/// (5 7 1 3; 4 6 1 1; 1 3 5 7; 1 1 4 6).
#[inline]
fn multiply_external(state: &mut [Base; WIDTH]) {
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
fn multiply_internal(state: &mut [Base; WIDTH]) {
    let sum = state[0] + state[1] + state[2] + state[3];
    for (element, factor) in state.iter_mut().zip(&INTERNAL_DIAGONAL_LESS_ONE) {
        *element = *element * factor + sum;
    }
}

// === impl RoundConstants ===

impl RoundConstants {
    /// As the reference implementation does (`poseidon2_rust_params.sage`): elements of the Grain
    /// LFSR in the order of use.
    fn derive() -> Self {
        let mut grain = Grain::new();
        let mut full = [[Base::ZERO; WIDTH]; FULL_ROUNDS];
        let mut partial = [Base::ZERO; PARTIAL_ROUNDS];
        let (first, last) = full.split_at_mut(FULL_ROUNDS / 2);
        for constant in first.as_flattened_mut() {
            *constant = grain.element();
        }
        for constant in &mut partial {
            *constant = grain.element();
        }
        for constant in last.as_flattened_mut() {
            *constant = grain.element();
        }
        Self { full, partial }
    }
}

// === impl Grain ===

impl Grain {
    /// Seeded with the instance: a prime field, a power as S-box, bits of the modulus, width, rounds.
    fn new() -> Self {
        let parts = [
            (1, 2),
            (0, 4),
            (FIELD_BITS, 12),
            (WIDTH, 12),
            (FULL_ROUNDS, 10),
            (PARTIAL_ROUNDS, 10),
            ((1 << 30) - 1, 30),
        ];
        let mut grain = Self { state: 0 };
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

    /// Of two bits the first says whether the second counts.
    fn bit(&mut self) -> bool {
        loop {
            let (counts, bit) = (self.step(), self.step());
            if counts {
                return bit;
            }
        }
    }

    /// The next number of 254 bits, most significant first, that is below the modulus.
    fn element(&mut self) -> Base {
        loop {
            let bits: Vec<bool> = (0..FIELD_BITS).map(|_| self.bit()).collect();
            if let Some(element) = Base::from_bigint(BigInt::from_bits_be(&bits)) {
                return element;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `TEST_VECTOR_INPUT` and `TEST_VECTOR_OUTPUT` of barretenberg's `poseidon2_params.hpp`.
    #[test]
    fn permutes_as_barretenberg() {
        let mut state = [0u64, 1, 2, 3].map(Base::from);
        permute(&mut state);
        let expected = [
            MontFp!("0x01bd538c2ee014ed5141b29e9ae240bf8db3fe5b9a38629a9647cf8d76c01737"),
            MontFp!("0x239b62e7db98aa3a2a8f6a0d2fa1709e7a35959aa6c7034814d9daa90cbac662"),
            MontFp!("0x04cbb44c61d928ed06808456bf758cbf0c18d1e15a7b6dbc8245fa7515d5e3cb"),
            MontFp!("0x2e11c5cff2a22c64d01304b778d78f6998eff1ab73163a35603f54794c30847a"),
        ];
        assert_eq!(state, expected);
    }

    /// `HashConsistencyCheck` of barretenberg's `poseidon2.test.cpp`: four equal elements, so two
    /// blocks, the second of them padded.
    #[test]
    fn hashes_as_barretenberg() {
        let element = MontFp!("0x9a807b615c4d3e2fa0b1c2d3e4f56789fedcba9876543210abcdef0123456789");
        let expected =
            MontFp!("0x2f43a0f83b51a6f5fc839dea0ecec74947637802a579fa9841930a25a0bcec11");
        assert_eq!(hash(&[element; 4]), expected);
    }

    /// The first and last round constants of barretenberg's `poseidon2_params.hpp`.
    #[test]
    fn constants_are_barretenbergs() {
        let constants = RoundConstants::derive();
        assert_eq!(
            constants.full[0][0],
            MontFp!("0x19b849f69450b06848da1d39bd5e4a4302bb86744edc26238b0878e269ed23e5")
        );
        assert_eq!(
            constants.partial[0],
            MontFp!("0x0c6f8f958be0e93053d7fd4fc54512855535ed1539f051dcb43a26fd926361cf")
        );
        assert_eq!(
            constants.full[7][3],
            MontFp!("0x176563472456aaa746b694c60e1823611ef39039b2edc7ff391e6f2293d2c404")
        );
    }

    #[test]
    fn length_is_part_of_the_hash() {
        let zeros = [Base::ZERO; 4];
        let hashes: Vec<_> = (0..=4).map(|length| hash(&zeros[..length])).collect();
        for (length, value) in hashes.iter().enumerate() {
            assert!(!hashes[..length].contains(value), "{length} zeros");
        }
    }
}
