//! Poseidon2 (Grassi, Khovratovich and Schofnegger, eprint.iacr.org/2023/323) over Grumpkin's base
//! field, which is BN254's scalar field: states of four elements, S-box x⁵, 8 full and 56 partial
//! rounds, with the parameters and the sponge of barretenberg (`crypto/poseidon2`).

use std::sync::LazyLock;

use ark_ff::{AdditiveGroup, BigInt, BigInteger, MontFp, PrimeField};
use proofmill_kernels::{Poseidon2, Poseidon2Parameters};

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

static PERMUTATION: LazyLock<Poseidon2> = LazyLock::new(|| Poseidon2::new(parameters()));

/// The Grain LFSR, which Poseidon's parameters come from (eprint.iacr.org/2019/458, appendix F).
struct Grain {
    /// 80 bits, the oldest in bit 0.
    state: u128,
}

/// Applies the permutation.
pub fn permute(state: &mut [Base; WIDTH]) {
    PERMUTATION.permute(state);
}

/// The hash of any number of elements: a sponge of rate [`RATE`] with the number of elements,
/// times 2⁶⁴, in the capacity; what the last block lacks is zero.
pub fn hash(input: &[Base]) -> Base {
    let mut state = empty(input.len());
    if input.is_empty() {
        permute(&mut state);
    }
    for block in input.chunks(RATE) {
        absorb(&mut state, block);
        permute(&mut state);
    }
    state[0]
}

/// The [`hash`] of each input, on this thread: [`lanes`] of them take about as long as one.
pub fn hash_each<const N: usize>(inputs: &[[Base; N]]) -> Vec<Base> {
    const { assert!(N > 0, "an empty input has a block, and is not worth a lane") };
    let mut states = vec![empty(N); inputs.len()];
    for from in (0..N).step_by(RATE) {
        for (state, input) in states.iter_mut().zip(inputs) {
            absorb(state, &input[from..N.min(from + RATE)]);
        }
        PERMUTATION.permute_each(&mut states);
    }
    states.into_iter().map(|state| state[0]).collect()
}

/// How many hashes side by side take about as long as one.
pub fn lanes() -> usize {
    PERMUTATION.lanes()
}

/// The sponge before so many elements.
fn empty(length: usize) -> [Base; WIDTH] {
    let mut state = [Base::ZERO; WIDTH];
    state[RATE] = Base::from((length as u128) << 64);
    state
}

fn absorb(state: &mut [Base; WIDTH], block: &[Base]) {
    for (element, added) in state.iter_mut().zip(block) {
        *element += added;
    }
}

/// The round constants as the reference implementation derives them (`poseidon2_rust_params.sage`):
/// elements of the Grain LFSR in the order of use.
fn parameters() -> Poseidon2Parameters {
    let mut grain = Grain::new();
    let full = |grain: &mut Grain| -> Vec<[Base; WIDTH]> {
        (0..FULL_ROUNDS / 2)
            .map(|_| std::array::from_fn(|_| grain.element()))
            .collect()
    };
    Poseidon2Parameters {
        diagonal_less_one: INTERNAL_DIAGONAL_LESS_ONE,
        first: full(&mut grain),
        partial: (0..PARTIAL_ROUNDS).map(|_| grain.element()).collect(),
        last: full(&mut grain),
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
        let constants = parameters();
        assert_eq!(
            constants.first[0][0],
            MontFp!("0x19b849f69450b06848da1d39bd5e4a4302bb86744edc26238b0878e269ed23e5")
        );
        assert_eq!(
            constants.partial[0],
            MontFp!("0x0c6f8f958be0e93053d7fd4fc54512855535ed1539f051dcb43a26fd926361cf")
        );
        assert_eq!(
            constants.last[3][3],
            MontFp!("0x176563472456aaa746b694c60e1823611ef39039b2edc7ff391e6f2293d2c404")
        );
    }

    /// One to three blocks, by themselves and in lanes that are not all taken.
    #[test]
    fn hashes_side_by_side_are_those_of_each() {
        fn check<const N: usize>() {
            let inputs: Vec<[Base; N]> = (0..11)
                .map(|i| std::array::from_fn(|j| Base::from((i * N + j) as u64)))
                .collect();
            for count in 0..inputs.len() {
                let hashes: Vec<_> = inputs[..count].iter().map(|input| hash(input)).collect();
                assert_eq!(hash_each(&inputs[..count]), hashes, "{count}");
            }
        }
        check::<1>();
        check::<5>();
        check::<6>();
        check::<7>();
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
