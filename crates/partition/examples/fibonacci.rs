//! A first circuit in parts: Fibonacci numbers modulo the field, 20 steps in each part.
//! `cargo run -p proofmill-partition --example fibonacci -- 8`

use ark_bn254::Fr;
use ark_relations::gr1cs::{LinearCombination, Variable};
use ark_std::rand::{SeedableRng, rngs::StdRng};
use proofmill_partition::{Challenges, Part, Partition, PartitionError, PartitionedCircuit};

struct Fibonacci {
    parts: usize,
}

impl PartitionedCircuit<Fr> for Fibonacci {
    fn num_parts(&self) -> usize {
        self.parts
    }

    fn class(&self, part: usize) -> &'static str {
        let classes = [["middle", "last"], ["first", "only"]];
        classes[usize::from(part == 0)][usize::from(part + 1 == self.parts)]
    }

    fn num_public_inputs(&self) -> usize {
        2
    }

    fn public_inputs(&self) -> Vec<Fr> {
        let steps = 0..20 * self.parts;
        let (a, b) = steps.fold((Fr::from(0), Fr::from(1)), |(a, b), _| (b, a + b));
        vec![a, b]
    }

    fn synthesize(&self, part: usize, wires: &mut Part<'_, Fr>) -> Result<(), PartitionError> {
        let mut pair = match part {
            0 => [wires.constant(Fr::from(0))?, wires.constant(Fr::from(1))?],
            _ => [wires.get(("a", part))?, wires.get(("b", part))?],
        };
        for _ in 0..20 {
            let [a, b] = pair;
            let next = wires.witness(a.value + b.value)?;
            wires.cs().enforce_r1cs_constraint(
                || LinearCombination::from(a.variable) + b.variable,
                || Variable::One.into(),
                || next.variable.into(),
            )?;
            pair = [b, next];
        }
        for (i, name) in ["a", "b"].into_iter().enumerate() {
            if part + 1 < self.parts {
                wires.set((name, part + 1), pair[i])?;
                continue;
            }
            let expected = wires.public_input(i)?.variable;
            wires.cs().enforce_r1cs_constraint(
                || pair[i].variable.into(),
                || Variable::One.into(),
                || expected.into(),
            )?;
        }
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let parts = std::env::args().nth(1).map_or(Ok(8), |text| text.parse())?;
    let circuit = Fibonacci { parts };
    let partition = Partition::new(&circuit)?;
    for class in partition.classes() {
        println!("class {:?}: {:?}", class.name(), class.layout());
    }
    let traces = partition.trace(&circuit)?;
    // A prover commits to each part's share of the traces here, and a transcript draws these.
    let (alpha, beta) = (Fr::from(1001), Fr::from(1002));
    let challenges = Challenges { alpha, beta };
    let states = partition.states(&traces, challenges, &mut StdRng::from_entropy())?;
    for part in 0..parts {
        let (trace, opening) = (partition.part_trace(&traces, part)?, states.opening(part)?);
        let z = partition.assignment(&circuit, part, &trace, &challenges, &opening)?;
        let class = &partition.classes()[partition.class_of(part)?];
        class.system().is_satisfied(z.z())?;
    }
    println!("{parts} parts are satisfied");
    Ok(())
}
