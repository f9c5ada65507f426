//! Poseidon2 and the paths of trees made with it: 264 constraints for a permutation, three for each
//! S-box.

use ark_relations::gr1cs::SynthesisError;
use proofmill_kernels::Poseidon2Field;

use super::{Element, Synthesizer};
use crate::tree::ARITY;

type State<F> = [Element<F>; ARITY];

/// [`tree::compress`](crate::tree::compress) of four elements.
pub(crate) fn compress<F: Poseidon2Field>(
    s: &Synthesizer<F>,
    nodes: &State<F>,
) -> Result<Element<F>, SynthesisError> {
    let [permuted, ..] = permute(s, nodes)?;
    Ok(&permuted + &nodes[0])
}

/// The root above a node, given its siblings: on each level all four children, one of which is the
/// node, at the position that two bits say, the less significant one first. At 267 constraints each.
///
/// The bits are not constrained to be bits.
pub(crate) fn climb<F: Poseidon2Field>(
    s: &Synthesizer<F>,
    node: Element<F>,
    position: &[[Element<F>; 2]],
    children: &[[F; ARITY]],
) -> Result<Element<F>, SynthesisError> {
    position
        .iter()
        .zip(children)
        .try_fold(node, |node, ([low, high], values)| {
            let mut children = Vec::with_capacity(ARITY);
            for value in values {
                children.push(s.witness(*value)?);
            }
            let children: State<F> = children.try_into().unwrap_or_else(|_| unreachable!());
            let [first, second, third, fourth] = &children;
            let left = &s.product(&(second - first), low)? + first;
            let right = &s.product(&(fourth - third), low)? + third;
            s.enforce(&(&right - &left), high, &(&node - &left))?;
            compress(s, &children)
        })
}

/// The permutation, as [`Poseidon2Parameters::permute`](proofmill_kernels::Poseidon2Parameters::permute).
fn permute<F: Poseidon2Field>(
    s: &Synthesizer<F>,
    state: &State<F>,
) -> Result<State<F>, SynthesisError> {
    let parameters = F::poseidon2();
    let mut state = multiply_external(state);
    for added in &parameters.initial_full_constants {
        state = full_round(s, &state, added)?;
    }
    for added in &parameters.partial_constants {
        state[0] = fifth_power(s, &state[0].plus(*added))?;
        state = multiply_internal(&state, &parameters.diagonal_less_one);
    }
    for added in &parameters.final_full_constants {
        state = full_round(s, &state, added)?;
    }
    Ok(state)
}

fn full_round<F: Poseidon2Field>(
    s: &Synthesizer<F>,
    state: &State<F>,
    added: &[F; ARITY],
) -> Result<State<F>, SynthesisError> {
    let [a, b, c, d] = state;
    Ok(multiply_external(&[
        fifth_power(s, &a.plus(added[0]))?,
        fifth_power(s, &b.plus(added[1]))?,
        fifth_power(s, &c.plus(added[2]))?,
        fifth_power(s, &d.plus(added[3]))?,
    ]))
}

fn fifth_power<F: Poseidon2Field>(
    s: &Synthesizer<F>,
    x: &Element<F>,
) -> Result<Element<F>, SynthesisError> {
    let square = s.product(x, x)?;
    let fourth = s.product(&square, &square)?;
    s.product(x, &fourth)
}

/// Multiplies by the matrix M₄ of the paper's appendix B.
fn multiply_external<F: Poseidon2Field>(state: &State<F>) -> State<F> {
    const MATRIX: [[u64; ARITY]; ARITY] = [[5, 7, 1, 3], [4, 6, 1, 1], [1, 3, 5, 7], [1, 1, 4, 6]];
    MATRIX.map(|row| {
        let [a, b, c, d] = std::array::from_fn(|i| state[i].scaled(F::from(row[i])));
        &(&a + &b) + &(&c + &d)
    })
}

/// Multiplies by the matrix of ones, plus the diagonal.
fn multiply_internal<F: Poseidon2Field>(state: &State<F>, diagonal: &[F; ARITY]) -> State<F> {
    let [a, b, c, d] = state;
    let sum = &(a + b) + &(c + d);
    std::array::from_fn(|i| &state[i].scaled(diagonal[i]) + &sum)
}

#[cfg(test)]
mod tests {
    use ark_ff::MontFp;
    use ark_relations::gr1cs::ConstraintSystem;
    use ark_std::test_rng;

    use super::*;
    use crate::tree;

    fn check<F: Poseidon2Field>() {
        let rng = &mut test_rng();
        let cs = ConstraintSystem::new_ref();
        let s = Synthesizer::new(cs.clone());
        let values: [F; ARITY] = std::array::from_fn(|_| F::rand(rng));
        let nodes = values.map(|value| s.witness(value).unwrap());
        let before = s.constraints();
        let mut permuted = values;
        F::poseidon2().permute(&mut permuted);
        let state = permute(&s, &nodes).unwrap();
        assert_eq!(state.map(|element| element.value()), permuted);
        assert_eq!(s.constraints() - before, 264);
        let compressed = compress(&s, &nodes).unwrap();
        assert_eq!(compressed.value(), tree::compress(&values));
        // The sums are what their values say.
        let claimed = s.witness(compressed.value()).unwrap();
        s.enforce_equal(&compressed, &claimed).unwrap();
        assert!(cs.is_satisfied().unwrap());
    }

    #[test]
    fn permutations_are_the_native_ones_over_bn254() {
        check::<ark_bn254::Fr>();
    }

    #[test]
    fn permutations_are_the_native_ones_over_bls12_381() {
        check::<ark_bls12_381::Fr>();
    }

    /// `TEST_VECTOR_OUTPUT` of barretenberg's `poseidon2_params.hpp`, and `poseidon2_tests_bls12::kats`
    /// of HorizenLabs/poseidon2, for 0, 1, 2, 3.
    #[test]
    fn permutations_are_the_published_ones() {
        fn first<F: Poseidon2Field>() -> F {
            let s = Synthesizer::new(ConstraintSystem::new_ref());
            let input = [0u64, 1, 2, 3].map(|value| s.witness(F::from(value)).unwrap());
            permute(&s, &input).unwrap()[0].value()
        }
        let barretenberg: ark_bn254::Fr =
            MontFp!("0x01bd538c2ee014ed5141b29e9ae240bf8db3fe5b9a38629a9647cf8d76c01737");
        assert_eq!(first::<ark_bn254::Fr>(), barretenberg);
        let reference: ark_bls12_381::Fr =
            MontFp!("0x28ff6c4edf9768c08ae26290487e93449cc8bc155fc2fad92a344adceb3ada6d");
        assert_eq!(first::<ark_bls12_381::Fr>(), reference);
    }

    /// Every variable of a compression but the inputs is determined: no other value satisfies the
    /// constraints that it is in.
    #[test]
    fn no_other_value_is_a_permutation() {
        use ark_bn254::Fr;
        use ark_relations::gr1cs::SynthesisMode;
        let cs = ConstraintSystem::<Fr>::new_ref();
        cs.set_mode(SynthesisMode::Prove {
            construct_matrices: true,
            generate_lc_assignments: false,
        });
        let s = Synthesizer::new(cs.clone());
        let nodes = [1u64, 2, 3, 4].map(|value| s.witness(Fr::from(value)).unwrap());
        compress(&s, &nodes).unwrap();
        cs.finalize();
        let inner = cs.borrow().unwrap();
        let matrices = inner.to_matrices().unwrap();
        let [a, b, c] = &matrices[ark_relations::gr1cs::R1CS_PREDICATE_LABEL][..] else {
            panic!("three matrices");
        };
        let mut z = inner.assignments.instance_assignment.clone();
        z.extend_from_slice(&inner.assignments.witness_assignment);
        assert_eq!(
            z.len(),
            1 + ARITY + a.len(),
            "a variable for each constraint"
        );
        let dot = |row: &[(Fr, usize)], z: &[Fr]| -> Fr {
            row.iter()
                .map(|(weight, column)| *weight * z[*column])
                .sum()
        };
        for (row, column) in (1 + ARITY..z.len()).enumerate() {
            // Each constraint makes its variable from those before.
            assert_eq!(c[row], [(Fr::from(1u64), column)]);
            let known = |terms: &[(Fr, usize)]| terms.iter().all(|(_, of)| *of < column);
            assert!(known(&a[row]) && known(&b[row]), "constraint {row}");
            assert_eq!(dot(&a[row], &z) * dot(&b[row], &z), z[column]);
        }
    }
}
