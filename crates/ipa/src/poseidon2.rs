//! Poseidon2 (Grassi, Khovratovich and Schofnegger, eprint.iacr.org/2023/323) over Grumpkin's base
//! field, which is BN254's scalar field: states of four elements, S-box x⁵, 8 full and 56 partial
//! rounds, with the parameters and the sponge of barretenberg (`crypto/poseidon2`).

use std::sync::LazyLock;

use ark_ff::AdditiveGroup;
use proofmill_kernels::{Poseidon2, Poseidon2Field};

use crate::Base;

/// Elements of a state.
pub const WIDTH: usize = 4;
/// Elements of a state that take input.
pub const RATE: usize = 3;

static PERMUTATION: LazyLock<Poseidon2> =
    LazyLock::new(|| Poseidon2::new(Base::poseidon2().clone()));

/// Applies the permutation.
pub fn permute(state: &mut [Base; WIDTH]) {
    PERMUTATION.permute(state);
}

/// The hash of any number of elements: a sponge of rate [`RATE`] with the number of elements,
/// times 2⁶⁴, in the capacity; the last block is padded with zeros.
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

/// The number of hashes that take about as long side by side as one alone: 8 with AVX-512, otherwise 1.
pub fn lanes() -> usize {
    PERMUTATION.lanes()
}

/// The initial state of the sponge for an input of `length` elements.
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

#[cfg(test)]
mod tests {
    use ark_ff::MontFp;

    use super::*;

    /// `HashConsistencyCheck` of barretenberg's `poseidon2.test.cpp`: four equal elements, so two
    /// blocks, the second of them padded.
    #[test]
    fn hashes_as_barretenberg() {
        let element = MontFp!("0x9a807b615c4d3e2fa0b1c2d3e4f56789fedcba9876543210abcdef0123456789");
        let expected =
            MontFp!("0x2f43a0f83b51a6f5fc839dea0ecec74947637802a579fa9841930a25a0bcec11");
        assert_eq!(hash(&[element; 4]), expected);
    }

    /// One to three blocks, alone and in partly filled lanes.
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
