//! Random circuits in parts, against the same circuit in one piece.
//!
//! Some parts put values that others take, before or after them, and some look values up in a table.

use ark_bn254::Fr;
use ark_relations::gr1cs::LinearCombination;
use ark_std::rand::{SeedableRng, rngs::StdRng};
use proofmill_r1cs::{Assignment, R1cs};
use proptest::prelude::*;

use super::attempt::{Attempt, Refusal, Values, challenges};
use crate::{Check, Monolithic, Part, Partition, PartitionError, PartitionedCircuit, Wire};

const NAMES: [&str; 8] = [
    "makes",
    "multiplies",
    "stores",
    "rests",
    "puts",
    "takes",
    "has a table",
    "looks up",
];

/// Rows of a table.
const ROWS: usize = 4;

/// Parts of eight classes, and two choices of each.
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

    /// A part that can read nothing makes a wire; one without a partner rests.
    fn kind(&self, part: usize) -> usize {
        let chosen = self.parts[part].0;
        match chosen {
            0..=2 => {
                let first = self.parts[..part].iter().all(|(kind, _)| *kind > 2);
                if first { 0 } else { chosen }
            }
            4 | 5 if self.partner(part).is_none() => 3,
            7 if self.of_kind(6).is_empty() => 3,
            _ => chosen,
        }
    }

    fn of_kind(&self, kind: usize) -> Vec<usize> {
        let parts = 0..self.parts.len();
        parts.filter(|part| self.parts[*part].0 == kind).collect()
    }

    /// The part that takes what a part puts, or the reverse.
    fn partner(&self, part: usize) -> Option<usize> {
        let kind = self.parts[part].0;
        let (own, others) = (self.of_kind(kind), self.of_kind(9 - kind));
        let number = own.iter().position(|of| *of == part)?;
        others.get(number).copied()
    }

    /// The value that a part puts.
    fn put(&self, part: usize) -> Fr {
        Fr::from(100 + self.parts[part].1[0] as u64) * self.value
    }

    /// The number of times that a table's row is looked up: the first table has them all.
    fn times(&self, part: usize, row: usize) -> Fr {
        let looking = self.of_kind(7).into_iter();
        let looking = looking.filter(|part| self.parts[*part].1[0] % ROWS == row);
        let is_first = self.of_kind(6).first() == Some(&part);
        Fr::from(if is_first { looking.count() as u64 } else { 0 })
    }

    fn synthesize_transfers(
        &self,
        part: usize,
        wires: &mut Part<'_, Fr>,
    ) -> Result<(), PartitionError> {
        match self.kind(part) {
            4 => {
                let value = self.put(part);
                let half = wires.witness(value / Fr::from(2u64))?;
                let terms = vec![(Fr::from(2u64), half.variable)];
                wires.put_sum(value, || LinearCombination(terms))
            }
            5 => {
                let taken = wires.witness(self.put(self.partner(part).unwrap()))?;
                wires.take(taken)
            }
            6 => (0..ROWS).try_for_each(|row| {
                let times = wires.witness(self.times(part, row))?;
                let row = wires.constant(Fr::from(row as u64))?;
                wires.put_times(row, times)
            }),
            7 => {
                let row = wires.witness(Fr::from((self.parts[part].1[0] % ROWS) as u64))?;
                let sum = || LinearCombination(vec![(Fr::from(1u64), row.variable)]);
                wires.take_sum(row.value, sum)
            }
            _ => Ok(()),
        }
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
            _ => self.synthesize_transfers(part, wires),
        }
    }
}

fn circuits() -> impl Strategy<Value = Random> {
    let part = (0..8usize, [0..9usize, 0..9usize]);
    (proptest::collection::vec(part, 1..12), 2..1000u64).prop_map(|(parts, value)| Random {
        parts,
        value: Fr::from(value),
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Every part is satisfied, and so is the circuit in one piece. A changed value in a trace, by part
    /// or by address, or of a transfer is refused.
    #[test]
    fn parts_are_the_circuit(circuit in circuits(), changed in any::<proptest::sample::Index>()) {
        let made = Partition::new(&circuit).unwrap();
        let partition = Partition::from_bytes(&made.to_bytes()).unwrap();
        prop_assert!(partition == made, "a file holds all of a partition");
        let traces = partition.trace(&circuit).unwrap();
        let order = partition.order();
        let sort = |by_part: &[Fr]| order.sorted(0..order.entries(), by_part);
        let values = Values::of(&partition, &traces);
        let attempt = Attempt::new(&partition, &circuit, &values);
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

        let places = values.transfers.iter().enumerate();
        let places: Vec<(usize, usize)> = places
            .flat_map(|(part, of)| (0..of.len()).map(move |place| (part, place)))
            .collect();
        if !places.is_empty() {
            let (part, place) = places[changed.index(places.len())];
            let mut wrong = values.clone();
            wrong.transfers[part][place] += Fr::from(1u64);
            let refusals = Attempt::new(&partition, &circuit, &wrong).refusals();
            let of_circuit = refusals.contains(&Refusal::Part(part, Check::Circuit));
            prop_assert!(of_circuit, "value {} of part {}", place, part);
        }

        let changed = changed.index(values.by_part.len());
        let mut wrong = values.clone();
        wrong.by_part[changed] += Fr::from(1u64);
        let refusals = Attempt::new(&partition, &circuit, &wrong).refusals();
        prop_assert!(!refusals.is_empty(), "entry {} by part", changed);
        wrong.by_address = sort(&wrong.by_part);
        let refusals = Attempt::new(&partition, &circuit, &wrong).refusals();
        // An input that no part reads may be any; all else has a constraint.
        let is_read = order.by_part(0..order.entries()).iter().filter(|of| **of == 1).count() > 1;
        let is_free = changed == 0 && !is_read;
        prop_assert_eq!(refusals.is_empty(), is_free, "entry {}", changed);
        prop_assert!(is_free || refusals != [Refusal::PublicInputs]);
        let mut wrong = values;
        wrong.by_address[changed] += Fr::from(1u64);
        let refusals = Attempt::new(&partition, &circuit, &wrong).refusals();
        prop_assert!(!refusals.is_empty(), "entry {} by address", changed);
    }
}
