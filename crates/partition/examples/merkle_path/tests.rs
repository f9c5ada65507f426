//! Tests that every circuit in parts should have: the same statement as in one piece, at the expected cost, and nothing
//! left to a prover's choice.

use ark_bn254::Fr;
use ark_std::UniformRand;
use ark_std::rand::rngs::StdRng;
use ark_std::rand::{Rng, SeedableRng};
use proofmill_partition::{
    Challenges, Check, DistributedCircuit, Monolithic, Partition, PartitionedCircuit,
};
use proofmill_r1cs::{Assignment, R1cs};

use crate::circuit::Membership;
use crate::parts::MembershipInParts;
use crate::proving::Keys;
use crate::random;

fn rng(seed: u64) -> StdRng {
    StdRng::seed_from_u64(seed)
}

/// The assignments of all parts, without commitments or keys: a test may choose the challenges.
fn assignments(partition: &Partition<Fr>, circuit: &MembershipInParts) -> Vec<Assignment<Fr>> {
    let traces = partition.trace(circuit).expect("a trace");
    let rng = &mut rng(1);
    let (alpha, beta) = (Fr::rand(rng), Fr::rand(rng));
    let challenges = Challenges { alpha, beta };
    let states = partition.states(&traces, challenges, rng).expect("states");
    let assignment = |part| {
        let (trace, opening) = (partition.part_trace(&traces, part)?, states.opening(part)?);
        partition.assignment(circuit, part, &trace, &challenges, &opening)
    };
    let parts = 0..partition.num_parts();
    parts
        .map(|part| assignment(part).expect("an assignment"))
        .collect()
}

/// The first unsatisfied constraint of the circuit in parts: its part and its purpose.
fn refusal(partition: &Partition<Fr>, circuit: &MembershipInParts) -> Option<(usize, Check)> {
    let assignments = assignments(partition, circuit);
    let mut parts = assignments.iter().enumerate();
    parts.find_map(|(part, assignment)| {
        let class = &partition.classes()[partition.class_of(part).expect("a part")];
        let refused = class.system().is_satisfied(assignment.z()).err()?;
        class.check_of(refused.row).map(|check| (part, check))
    })
}

#[test]
fn parts_and_one_piece_accept_the_same() {
    for (parts, levels, seed) in [(1, 3, 1), (3, 1, 2), (4, 2, 3)] {
        let blank = MembershipInParts::blank(parts, levels);
        let partition = Partition::new(&blank).expect("a partition");
        let whole = R1cs::from_circuit(Monolithic::new(&blank)).expect("one piece");
        let rng = &mut rng(seed);
        let valid = random(parts * levels, rng);
        let mut wrong_root = valid.clone();
        wrong_root.root += Fr::from(1);
        let mut wrong_leaf = valid.clone();
        wrong_leaf.leaf += Fr::from(1);
        let mut wrong_step = valid.clone();
        let level = rng.gen_range(0..parts * levels);
        wrong_step.steps[level].is_right ^= true;
        for (membership, is_valid) in [
            (valid, true),
            (wrong_root, false),
            (wrong_leaf, false),
            (wrong_step, false),
        ] {
            let original = Assignment::from_circuit(membership.clone()).expect("an assignment");
            let system = R1cs::from_circuit(membership.clone()).expect("a system");
            assert_eq!(system.is_satisfied(original.z()).is_ok(), is_valid);
            let circuit = blank.with_witness(membership);
            let together = Assignment::from_circuit(Monolithic::new(&circuit));
            let together = together.expect("an assignment");
            assert_eq!(original.inputs(), together.inputs());
            assert_eq!(whole.is_satisfied(together.z()).is_ok(), is_valid);
            // A wrong value arrives at the root, which the last part compares.
            let expected = (!is_valid).then_some((parts - 1, Check::Circuit));
            assert_eq!(refusal(&partition, &circuit), expected);
        }
    }
}

/// The costs that `docs/partition-your-circuit.md` states.
#[test]
fn costs_are_those_of_the_guide() {
    let whole = R1cs::from_circuit(random(32, &mut rng(1))).expect("one piece");
    assert_eq!(whole.num_constraints(), 32 * 333 + 1);
    // Parts, levels in each, levels of the tree of states.
    for (parts, levels, depth) in [(1, 32, 1), (4, 8, 2), (32, 1, 3)] {
        let partition = Partition::new(&MembershipInParts::blank(parts, levels)).expect("one");
        let [class] = partition.classes() else {
            panic!("the first and the last part are of the same class");
        };
        // Reads a node, and sets one or compares it.
        assert_eq!(class.accesses(), 2);
        assert_eq!(class.constraints_of(Check::Circuit), levels * 333 + 1);
        let layout = class.layout();
        assert_eq!(layout.committed, 4);
        let added = 3 * 2 + 532 + 534 * depth;
        assert_eq!(layout.constraints, levels * 333 + 1 + added);
        // Two positions, the flag of the last part, an address before, two of each trace; a constant for each level.
        assert_eq!(layout.preprocessed, 4 * depth + 2 + 2 * 2 + levels);
    }
}

/// A change of any witness variable by itself violates a constraint, so nothing is left to a prover's choice. Every
/// seventh is changed, to save time.
#[test]
fn every_variable_is_constrained() {
    let blank = MembershipInParts::blank(2, 1);
    let partition = Partition::new(&blank).expect("a partition");
    let circuit = blank.with_witness(random(2, &mut rng(1)));
    let system = partition.classes()[0].system();
    for assignment in assignments(&partition, &circuit) {
        let mut z = assignment.z().to_vec();
        for column in (system.num_instance()..z.len()).step_by(7) {
            z[column] += Fr::from(1);
            assert!(system.is_satisfied(&z).is_err(), "variable {column}");
            z[column] -= Fr::from(1);
        }
        assert!(system.is_satisfied(&z).is_ok());
    }
}

#[test]
fn a_part_is_made_again_from_its_witness() {
    let blank = MembershipInParts::blank(3, 2);
    let circuit = blank.with_witness(random(6, &mut rng(1)));
    for part in 0..3 {
        let bytes = circuit.part_witness(part);
        let again = blank.with_part_witness(part, &bytes).expect("a circuit");
        assert_eq!(again.part_witness(part), bytes);
        for wrong in [&bytes[1..], &[]] {
            assert!(blank.with_part_witness(part, wrong).is_err());
        }
    }
}

/// With s accesses, no transfers, and w bytes of the part's witness: 81 + 64·s, and 389 + 256·d + 64·s + w.
#[test]
fn tasks_have_the_bytes_of_the_guide() {
    let rng = &mut rng(1);
    let blank = MembershipInParts::blank(2, 1);
    let keys = Keys::new(Partition::new(&blank).expect("a partition"), rng).expect("keys");
    let circuit = blank.with_witness(random(2, rng));
    let witness = circuit.part_witness(1).len();
    let [committed, proved] = keys.bytes_of_tasks(circuit, 1).expect("tasks");
    assert_eq!(committed, 81 + 64 * 2);
    assert_eq!(proved, 389 + 256 + 64 * 2 + witness);
}

#[test]
fn proofs_of_one_process_and_of_workers_verify() {
    let rng = &mut rng(1);
    let blank = MembershipInParts::blank(3, 1);
    let partition = Partition::new(&blank).expect("a partition");
    let keys = Keys::new(partition, rng).expect("keys");
    let membership: Membership = random(3, rng);
    let circuit = blank.with_witness(membership);
    let mut inputs = circuit.public_inputs();
    let here = keys.prove(&circuit, rng).expect("a proof");
    let elsewhere = keys.prove_with_workers(&blank, circuit).expect("a proof");
    let key = keys.index.verifying_key();
    for proof in [&here, &elsewhere] {
        key.verify(&inputs, proof).expect("valid");
    }
    inputs[1] += Fr::from(1);
    for proof in [&here, &elsewhere] {
        assert!(key.verify(&inputs, proof).is_err());
    }
}
