//! Poseidon2 permutations: every back end against the definition, one state at a time.

use ark_bn254::Fr;
use ark_ff::{AdditiveGroup, Field, UniformRand};
use ark_std::rand::{SeedableRng, rngs::StdRng};
use proofmill_kernels::{InstructionSet, Poseidon2, Poseidon2Parameters};

/// M₄ of the paper's appendix B, row by row.
const EXTERNAL: [[u64; 4]; 4] = [[5, 7, 1, 3], [4, 6, 1, 1], [1, 3, 5, 7], [1, 1, 4, 6]];

/// The product of a matrix and the state.
fn multiply(matrix: impl Fn(usize, usize) -> Fr, state: [Fr; 4]) -> [Fr; 4] {
    std::array::from_fn(|row| {
        (0..4)
            .map(|column| matrix(row, column) * state[column])
            .sum()
    })
}

/// The permutation by its definition.
fn expected(parameters: &Poseidon2Parameters, state: [Fr; 4]) -> [Fr; 4] {
    let external = |state| multiply(|row, column| Fr::from(EXTERNAL[row][column]), state);
    let internal = |row: usize, column: usize| match row == column {
        true => parameters.diagonal_less_one[row] + Fr::ONE,
        false => Fr::ONE,
    };
    let full = |state: [Fr; 4], added: &[Fr; 4]| {
        external(std::array::from_fn(|i| (state[i] + added[i]).pow([5])))
    };
    let mut state = parameters
        .initial_full_constants
        .iter()
        .fold(external(state), full);
    for added in &parameters.partial_constants {
        state[0] = (state[0] + added).pow([5]);
        state = multiply(internal, state);
    }
    parameters.final_full_constants.iter().fold(state, full)
}

fn parameters(mut element: impl FnMut() -> Fr, partial: usize) -> Poseidon2Parameters {
    let mut row = || [element(), element(), element(), element()];
    Poseidon2Parameters {
        diagonal_less_one: row(),
        initial_full_constants: (0..4).map(|_| row()).collect(),
        final_full_constants: (0..4).map(|_| row()).collect(),
        partial_constants: (0..partial).map(|_| row()[0]).collect(),
    }
}

/// The element whose Montgomery form is all that fits below the modulus, 0, 1, and −1.
fn edges() -> [Fr; 4] {
    let mut largest = <Fr as ark_ff::PrimeField>::MODULUS;
    largest.0[0] -= 1;
    [Fr::new_unchecked(largest), Fr::ZERO, Fr::ONE, -Fr::ONE]
}

#[test]
fn permutations_are_those_of_the_definition() {
    let rng = &mut StdRng::seed_from_u64(1);
    let mut cases = vec![
        parameters(|| Fr::rand(rng), 56),
        parameters(|| Fr::rand(rng), 0),
    ];
    cases.extend(edges().map(|edge| parameters(|| edge, 56)));
    for set in InstructionSet::ALL {
        if !set.is_available() {
            eprintln!("skipped: this machine has no {set}");
            continue;
        }
        for parameters in &cases {
            let permutation = Poseidon2::new_on(set, parameters.clone());
            let mut states: Vec<[Fr; 4]> = edges().map(|edge| [edge; 4]).to_vec();
            states.push(edges());
            states.extend((0..14).map(|_| std::array::from_fn(|_| Fr::rand(rng))));
            for count in 0..=states.len() {
                let mut permuted = states[..count].to_vec();
                permutation.permute_each(&mut permuted);
                for (before, after) in states.iter().zip(&permuted) {
                    assert_eq!(expected(parameters, *before), *after, "{count} on {set}");
                    let mut alone = *before;
                    permutation.permute(&mut alone);
                    assert_eq!(alone, *after);
                }
            }
        }
    }
}
