//! Completeness: true statements are accepted, at the promised cost.

use ark_bn254::Fr;
use ark_std::rand::{SeedableRng, rngs::StdRng};
use proofmill_kernels::Poseidon2Field;
use proofmill_r1cs::{Assignment, R1cs};

use super::attempt::{Attempt, Values, unsatisfied};
use super::chain::Chain;
use crate::applications::{BigMerkleTree, SizeError};
use crate::tree::depth;
use crate::{Challenges, Check, Monolithic, Partition, PartitionedCircuit};

/// Checks that every part is satisfied, and that the circuit in one piece is satisfied with the same public inputs.
fn check<F: Poseidon2Field>(
    blank: &impl PartitionedCircuit<F>,
    circuit: &impl PartitionedCircuit<F>,
) {
    let partition = Partition::new(blank).unwrap();
    let traces = partition.trace(circuit).unwrap();
    let rng = &mut StdRng::seed_from_u64(1);
    let challenges = Challenges {
        alpha: F::rand(rng),
        beta: F::rand(rng),
    };
    let states = partition.states(&traces, challenges, rng).unwrap();
    let (public, path) = (partition.public_state(), states.public_path());
    let inputs = circuit.public_inputs();
    assert_eq!(traces.public_inputs(), inputs);
    assert!(public.holds(&inputs, &challenges, states.root(), &path));
    for part in 0..partition.num_parts() {
        let trace = partition.part_trace(&traces, part).unwrap();
        let opening = states.opening(part).unwrap();
        let assignment = partition
            .assignment(circuit, part, &trace, &challenges, &opening)
            .unwrap();
        let class = &partition.classes()[partition.class_of(part).unwrap()];
        let layout = class.layout();
        assert_eq!(
            class.system().is_satisfied(assignment.z()),
            Ok(()),
            "part {part}"
        );
        let instance = partition.instance(part, states.root(), &challenges);
        let instance = instance.unwrap();
        assert_eq!(assignment.instance(), instance, "part {part}");
        assert_eq!(layout.shared + layout.preprocessed, instance.len());
        assert_eq!(assignment.witness()[..layout.committed], trace.committed());
        assert_eq!(assignment.witness().len(), layout.witness);
    }
    let system = R1cs::from_circuit(Monolithic::new(blank)).unwrap();
    let assignment = Assignment::from_circuit(Monolithic::new(circuit)).unwrap();
    assert_eq!(assignment.inputs(), inputs);
    assert_eq!(system.is_satisfied(assignment.z()), Ok(()));
}

#[test]
fn chains_of_any_length_hold() {
    for parts in [1, 2, 3, 4, 7, 32] {
        check::<Fr>(&Chain::blank(parts), &Chain::new(parts, 5, 9));
    }
}

#[test]
fn chains_over_bls12_381_hold() {
    use ark_bls12_381::Fr;
    for parts in [1, 7] {
        check::<Fr>(&Chain::blank(parts), &Chain::new(parts, 5, 9));
    }
}

#[test]
fn a_false_statement_is_refused_in_parts_and_in_one_piece() {
    let mut circuit = Chain::new(3, 5, 9);
    circuit.public[2] += Fr::from(1u64);
    let partition = Partition::new(&Chain::blank(3)).unwrap();
    let traces = partition.trace(&circuit).unwrap();
    let values = Values::of(&partition, &traces);
    let attempt = Attempt::new(&partition, &circuit, &values);
    let expected = [super::attempt::Refusal::Part(2, Check::Circuit)];
    assert_eq!(attempt.refusals(), expected);
    let system = R1cs::from_circuit(Monolithic::new(&Chain::<Fr>::blank(3))).unwrap();
    let assignment = Assignment::from_circuit(Monolithic::new(&circuit)).unwrap();
    assert!(system.is_satisfied(assignment.z()).is_err());
}

/// Three constraints for an access, one for a transfer, one more for each value that is set, put or taken; what does
/// not depend on their number.
#[test]
fn accesses_cost_three_constraints_and_transfers_one() {
    let partition = Partition::<Fr>::new(&Chain::blank(7)).unwrap();
    let levels = depth(8);
    for class in partition.classes() {
        let accesses = class.accesses();
        assert_eq!(class.constraints_of(Check::SumByPart), accesses);
        assert_eq!(class.constraints_of(Check::SumByAddress), accesses);
        assert_eq!(class.constraints_of(Check::EqualValues), accesses);
        // Of the first: four rows of the table, a digit, and the square of the second part.
        let (transfers, values) = match class.name() {
            "first" => (4 + 1 + 1, 2 * 4 + 1 + 1),
            "middle" => (3, 3),
            _ => (2, 2),
        };
        assert_eq!(class.transfers().len(), transfers);
        assert_eq!(class.constraints_of(Check::Multiset), transfers);
        assert_eq!(class.constraints_of(Check::EqualTraces), 1);
        assert_eq!(class.constraints_of(Check::EmptyMultiset), 1);
        let leaf = 264 + 267 * levels + 1;
        assert_eq!(class.constraints_of(Check::LeafBefore), leaf);
        assert_eq!(class.constraints_of(Check::LeafAfter), leaf);
        let layout = class.layout();
        let own = class.constraints_of(Check::Circuit);
        let all = own + 3 * accesses + transfers + 2 * leaf + 2;
        assert_eq!(layout.constraints, all);
        assert_eq!(layout.committed, 2 * accesses + values);
        assert_eq!(layout.preprocessed, 4 * levels + 2 + 2 * accesses + 1);
        // A square and the sum of the cell, or of the last part; of the others, two sets.
        let expected = if class.name() == "last" { 2 } else { 4 };
        assert_eq!(own, expected + values, "{}", class.name());
        assert_eq!(class.check_of(layout.constraints), None);
    }
}

/// A change of any single witness variable, or of root, α or β, violates a constraint. Preprocessed
/// inputs are not tested, as the prover does not choose them.
#[test]
fn every_variable_of_a_part_is_constrained() {
    let circuit = Chain::<Fr>::new(3, 5, 9);
    let partition = Partition::new(&Chain::blank(3)).unwrap();
    let traces = partition.trace(&circuit).unwrap();
    let rng = &mut StdRng::seed_from_u64(1);
    let challenges = super::attempt::challenges();
    let states = partition.states(&traces, challenges, rng).unwrap();
    for part in 0..3 {
        let trace = partition.part_trace(&traces, part).unwrap();
        let opening = states.opening(part).unwrap();
        let assignment = partition
            .assignment(&circuit, part, &trace, &challenges, &opening)
            .unwrap();
        let system = partition.classes()[partition.class_of(part).unwrap()].system();
        let mut z = assignment.z().to_vec();
        let (shared, instance) = (4, system.num_instance());
        for column in (1..shared).chain(instance..z.len()) {
            z[column] += Fr::from(1u64);
            let refused = system.is_satisfied(&z).is_err();
            assert!(refused, "variable {column} of part {part}");
            z[column] -= Fr::from(1u64);
        }
        assert!(unsatisfied(system, &z).is_empty());
    }
}

/// The paper's benchmark: classes, and their public inputs against natively computed ones.
#[test]
fn big_merkle_trees_hold() {
    for (log_leaves, hashes, portals) in [(1, 1, 0), (2, 2, 3)] {
        let blank = BigMerkleTree::<Fr>::blank(log_leaves, hashes, portals).unwrap();
        let leaf =
            |i: usize| std::array::from_fn(|j| 0x9e37_79b9u32.wrapping_mul((i * 16 + j) as u32));
        let leaves = (0..1 << log_leaves).map(leaf).collect();
        let circuit = BigMerkleTree::new(leaves, hashes, portals).unwrap();
        check(&blank, &circuit);
        let partition = Partition::new(&blank).unwrap();
        let names: Vec<&str> = partition
            .classes()
            .iter()
            .map(|class| class.name())
            .collect();
        let expected: &[&str] = match log_leaves {
            1 => &["first leaf", "leaf", "root", "padding"],
            _ => &["first leaf", "leaf", "parent", "root", "padding"],
        };
        assert_eq!(names, expected);
        assert_eq!(partition.num_parts(), 2 << log_leaves);
    }
}

#[test]
fn trees_of_impossible_sizes_are_refused() {
    let error = |result: Result<BigMerkleTree<Fr>, SizeError>| result.unwrap_err().to_string();
    assert_eq!(
        error(BigMerkleTree::blank(0, 1, 0)),
        "0 binary levels: there must be 1 to 20"
    );
    assert_eq!(
        error(BigMerkleTree::blank(1, 0, 0)),
        "0 hashes in each part: there must be 1 to 4294967295"
    );
    assert_eq!(
        error(BigMerkleTree::new(vec![[0; 16]; 3], 1, 0)),
        "3 leaves: there must be a power of two"
    );
}
