//! Random circuits in parts, against the same circuit in one piece.

use ark_bn254::Fr;
use ark_relations::gr1cs::LinearCombination;
use ark_std::rand::{SeedableRng, rngs::StdRng};
use proofmill_r1cs::{Assignment, R1cs};
use proptest::prelude::*;

use super::attempt::{Attempt, Refusal, challenges};
use crate::{Monolithic, Part, Partition, PartitionError, PartitionedCircuit, Wire};

const NAMES: [&str; 4] = ["makes", "multiplies", "stores", "rests"];

/// Parts of four classes, and the reads of each.
#[derive(Clone, Debug)]
struct Random {
    parts: Vec<(usize, [usize; 2])>,
    value: Fr,
}

impl Random {
    /// The part that made the wire that a part reads: a choice among those before.
    fn made_before(&self, part: usize, choice: usize) -> Option<usize> {
        let made: Vec<usize> = (0..part).filter(|part| self.kind(*part) < 2).collect();
        (!made.is_empty()).then(|| made[choice % made.len()])
    }

    /// A part that can read nothing makes a wire.
    fn kind(&self, part: usize) -> usize {
        let chosen = self.parts[part].0;
        let first = self.parts[..part].iter().all(|(kind, _)| *kind == 3);
        if first && chosen != 3 { 0 } else { chosen }
    }

    fn product(
        wires: &mut Part<'_, Fr>,
        a: Wire<Fr>,
        b: Wire<Fr>,
    ) -> Result<Wire<Fr>, PartitionError> {
        let product = wires.witness(a.value * b.value)?;
        wires.cs().enforce_r1cs_constraint(
            || a.variable.into(),
            || b.variable.into(),
            || product.variable.into(),
        )?;
        Ok(product)
    }
}

impl PartitionedCircuit<Fr> for Random {
    fn num_parts(&self) -> usize {
        self.parts.len()
    }

    fn class(&self, part: usize) -> &'static str {
        NAMES[self.kind(part)]
    }

    fn num_public_inputs(&self) -> usize {
        1
    }

    fn public_inputs(&self) -> Vec<Fr> {
        vec![self.value]
    }

    fn synthesize(&self, part: usize, wires: &mut Part<'_, Fr>) -> Result<(), PartitionError> {
        let choices = self.parts[part].1;
        let chosen = choices.map(|choice| self.made_before(part, choice).unwrap_or_default());
        match self.kind(part) {
            0 => {
                let constant = wires.constant(Fr::from(choices[0] as u64))?;
                let public = wires.public_input(0)?;
                let made = Self::product(wires, constant, public)?;
                wires.set(("made", part), made)?;
                wires.store("cell", made)
            }
            1 => {
                let a = wires.get(("made", chosen[0]))?;
                let b = wires.get(("made", chosen[1]))?;
                let c = wires.load("cell")?;
                let product = Self::product(wires, a, b)?;
                let terms = [product, c].map(|wire| (Fr::from(1u64), wire.variable));
                let sum = || LinearCombination(terms.to_vec());
                wires.set_sum(("made", part), product.value + c.value, sum)
            }
            2 => {
                let a = wires.get(("made", chosen[0]))?;
                let cell = wires.load("cell")?;
                let stored = Self::product(wires, a, cell)?;
                wires.store("cell", stored)?;
                wires.store("cell", a)?;
                wires.store(("cell", part), cell)
            }
            _ => Ok(()),
        }
    }
}

fn circuits() -> impl Strategy<Value = Random> {
    let part = (0..4usize, [0..9usize, 0..9usize]);
    (proptest::collection::vec(part, 1..12), 2..1000u64).prop_map(|(parts, value)| Random {
        parts,
        value: Fr::from(value),
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Every part is satisfied, and so is the circuit in one piece. A changed value in a trace, by part
    /// or by address, is refused.
    #[test]
    fn parts_are_the_circuit(circuit in circuits(), changed in any::<proptest::sample::Index>()) {
        let made = Partition::new(&circuit).unwrap();
        let partition = Partition::from_bytes(&made.to_bytes()).unwrap();
        prop_assert!(partition == made, "a file holds all of a partition");
        let traces = partition.trace(&circuit).unwrap();
        let order = partition.order();
        let sort = |by_part: &[Fr]| order.sorted(0..order.entries(), by_part);
        let by_part = partition.values_by_part(&traces);
        let by_address = sort(&by_part);
        let attempt = Attempt::new(&partition, &circuit, &by_part, &by_address);
        prop_assert_eq!(attempt.refusals(), []);
        let states = partition
            .states(&traces, challenges(), &mut StdRng::seed_from_u64(1))
            .unwrap();
        let other = partition
            .states(&traces, challenges(), &mut StdRng::seed_from_u64(2))
            .unwrap();
        prop_assert_ne!(states.root(), other.root(), "salts hide what the leaves have");

        let system = R1cs::from_circuit(Monolithic::new(&circuit)).unwrap();
        let assignment = Assignment::from_circuit(Monolithic::new(&circuit)).unwrap();
        prop_assert_eq!(assignment.inputs(), traces.public_inputs());
        prop_assert_eq!(system.is_satisfied(assignment.z()), Ok(()));

        let changed = changed.index(by_part.len());
        let mut wrong = by_part.clone();
        wrong[changed] += Fr::from(1u64);
        let refusals = Attempt::new(&partition, &circuit, &wrong, &by_address).refusals();
        prop_assert!(!refusals.is_empty(), "entry {} by part", changed);
        let consistent = sort(&wrong);
        let refusals = Attempt::new(&partition, &circuit, &wrong, &consistent).refusals();
        // An input that no part reads may be any; all else has a constraint.
        let is_read = order.by_part(0..order.entries()).iter().filter(|of| **of == 1).count() > 1;
        let is_free = changed == 0 && !is_read;
        prop_assert_eq!(refusals.is_empty(), is_free, "entry {}", changed);
        prop_assert!(is_free || refusals != [Refusal::PublicInputs]);
        let mut wrong = by_address;
        wrong[changed] += Fr::from(1u64);
        let refusals = Attempt::new(&partition, &circuit, &by_part, &wrong).refusals();
        prop_assert!(!refusals.is_empty(), "entry {} by address", changed);
    }
}
