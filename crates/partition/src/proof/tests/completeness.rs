//! True statements are proved, and both verifiers accept the proofs from bytes alone.

use ark_ff::Field;
use ark_relations::gr1cs::LinearCombination;
use proofmill_groth16::{Bls12_381, Bn254};

use super::case::Case;
use crate::applications::BigMerkleTree;
use crate::proof::{PartitionCurve, PartitionProof, ProveError, VerifyError};
use crate::tests::chain::Chain;
use crate::{Part, PartitionError, PartitionedCircuit};

fn a_chain_is_proved<E: PartitionCurve>(parts: usize) {
    let case = Case::<E>::new(&Chain::blank(parts));
    let circuit = Chain::new(parts, 5, 9);
    let proof = case.prove(&circuit, 1);
    assert!(case.holds(&circuit.public, &proof), "{parts} parts");
    let bytes = proof.to_bytes();
    assert_eq!(bytes.len(), PartitionProof::<E>::encoded_size(parts));
    assert_eq!(PartitionProof::from_bytes(&bytes).unwrap(), proof);

    let again = case.prove(&circuit, 2);
    assert!(case.holds(&circuit.public, &again));
    assert_ne!(again.to_bytes(), bytes, "the same witness, other bytes");

    let mut inputs = circuit.public.to_vec();
    inputs[2] += E::ScalarField::ONE;
    assert!(!case.holds(&inputs, &proof));
    let refusal = case.index.verifying_key().verify(&inputs[..2], &proof);
    let (expected, found) = (3, 2);
    assert_eq!(refusal, Err(VerifyError::InputCount { expected, found }));
}

#[test]
fn chains_of_any_length_are_proved() {
    for parts in [1, 2, 3, 7, 32] {
        a_chain_is_proved::<Bn254>(parts);
    }
}

#[test]
fn chains_are_proved_over_bls12_381() {
    a_chain_is_proved::<Bls12_381>(3);
}

/// Parts that share nothing, of a circuit without public inputs: x³ = 27 in each.
struct IndependentParts;

impl<F: Field + ark_ff::PrimeField> PartitionedCircuit<F> for IndependentParts {
    fn num_parts(&self) -> usize {
        5
    }

    fn class(&self, _: usize) -> &'static str {
        "cube"
    }

    fn synthesize(&self, _: usize, wires: &mut Part<'_, F>) -> Result<(), PartitionError> {
        let x = wires.witness(F::from(3u64))?;
        let square = wires.witness(F::from(9u64))?;
        let of = |variable| move || LinearCombination(vec![(F::one(), variable)]);
        let (x, square) = (x.variable, square.variable);
        let cube =
            || LinearCombination(vec![(F::from(27u64), ark_relations::gr1cs::Variable::One)]);
        wires
            .cs()
            .enforce_r1cs_constraint(of(x), of(x), of(square))?;
        wires
            .cs()
            .enforce_r1cs_constraint(of(x), of(square), cube)?;
        Ok(())
    }
}

#[test]
fn parts_that_share_nothing_are_proved() {
    let case = Case::<Bn254>::new(&IndependentParts);
    let proof = case.prove(&IndependentParts, 1);
    assert!(case.holds(&[], &proof));
}

#[test]
fn a_tree_of_five_classes_is_proved() {
    let case = Case::<Bn254>::new(&BigMerkleTree::blank(2, 1, 2).unwrap());
    assert_eq!(case.index.partition().classes().len(), 5);
    let leaves: Vec<[u32; 16]> = (0..4).map(|i| [i; 16]).collect();
    let circuit = BigMerkleTree::new(leaves, 1, 2).unwrap();
    let proof = case.prove(&circuit, 1);
    assert!(case.holds(&circuit.public_inputs(), &proof));
}

/// A false statement is not proved; the prover's error names the part.
#[test]
fn a_false_statement_is_named() {
    let case = Case::<Bn254>::new(&Chain::blank(3));
    let mut circuit = Chain::new(3, 5, 9);
    circuit.public[2] += ark_bn254::Fr::ONE;
    let error = case.try_prove(&circuit, 1).unwrap_err();
    assert!(matches!(error, ProveError::Part { part: 2, .. }), "{error}");
}
