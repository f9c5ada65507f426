//! A range check by a table: each part shows that secret numbers are bytes, by looking them up.
//! `cargo run -p proofmill-partition --example lookup -- 4 100` (parts with numbers, numbers in each)

use ark_bn254::Fr;
use ark_relations::gr1cs::{LinearCombination, Variable};
use ark_std::rand::{Rng, SeedableRng, rngs::StdRng};
use proofmill_partition::{
    Challenges, Check, Part, Partition, PartitionError, PartitionedCircuit, Wire,
};

/// Parts with numbers, and one part with the table: it is the last, as the order is irrelevant. The public input is
/// the sum of all numbers.
struct Bytes {
    numbers: Vec<Vec<u64>>,
}

impl PartitionedCircuit<Fr> for Bytes {
    fn num_parts(&self) -> usize {
        self.numbers.len() + 1
    }

    fn class(&self, part: usize) -> &'static str {
        match part {
            0 => "first",
            _ if part < self.numbers.len() => "numbers",
            _ => "table",
        }
    }

    fn num_public_inputs(&self) -> usize {
        1
    }

    fn public_inputs(&self) -> Vec<Fr> {
        vec![Fr::from(self.numbers.iter().flatten().sum::<u64>())]
    }

    fn synthesize(&self, part: usize, wires: &mut Part<'_, Fr>) -> Result<(), PartitionError> {
        let Some(numbers) = self.numbers.get(part) else {
            return self.table(wires);
        };
        let mut sum = Vec::new();
        let mut total = Fr::from(0);
        if part > 0 {
            let before = wires.get(("sum", part - 1))?;
            sum.push((Fr::from(1), before.variable));
            total = before.value;
        }
        for number in numbers {
            let number = wires.witness(Fr::from(*number))?;
            wires.take(number)?;
            sum.push((Fr::from(1), number.variable));
            total += number.value;
        }
        wires.set_sum(("sum", part), total, || LinearCombination(sum))
    }
}

impl Bytes {
    /// Puts each byte as often as it is looked up, and compares the sum.
    fn table(&self, wires: &mut Part<'_, Fr>) -> Result<(), PartitionError> {
        for row in 0..256 {
            let looked_up = self.numbers.iter().flatten();
            let times = looked_up.filter(|number| **number == row).count();
            let times = wires.witness(Fr::from(times as u64))?;
            let row = Fr::from(row);
            wires.put_sum_times(row, || LinearCombination(vec![(row, Variable::One)]), times)?;
        }
        let sum: Wire<Fr> = wires.get(("sum", self.numbers.len() - 1))?;
        let expected = wires.public_input(0)?;
        wires.cs().enforce_r1cs_constraint(
            || sum.variable.into(),
            || Variable::One.into(),
            || expected.variable.into(),
        )?;
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments = std::env::args().skip(1).map(|text| text.parse::<usize>());
    let arguments: Vec<usize> = arguments.collect::<Result<_, _>>()?;
    let [parts, each] = arguments.try_into().unwrap_or([4, 100]).map(|n| n.max(1));
    let rng = &mut StdRng::from_entropy();
    let mut circuit = Bytes {
        numbers: vec![vec![0; each]; parts],
    };
    let partition = Partition::new(&circuit)?;
    for class in partition.classes() {
        println!(
            "class {:?}: {} transfers, {} constraints for them; {:?}",
            class.name(),
            class.transfers().len(),
            class.constraints_of(Check::Multiset),
            class.layout(),
        );
    }
    circuit.numbers = (0..parts)
        .map(|_| (0..each).map(|_| rng.gen_range(0..256)).collect())
        .collect();
    let traces = partition.trace(&circuit)?;
    // A prover commits to each part's values here, and a transcript draws these.
    let (alpha, beta) = (Fr::from(rng.r#gen::<u128>()), Fr::from(rng.r#gen::<u128>()));
    let challenges = Challenges { alpha, beta };
    let states = partition.states(&traces, challenges, rng)?;
    for part in 0..partition.num_parts() {
        let (trace, opening) = (partition.part_trace(&traces, part)?, states.opening(part)?);
        let z = partition.assignment(&circuit, part, &trace, &challenges, &opening)?;
        let class = &partition.classes()[partition.class_of(part)?];
        class.system().is_satisfied(z.z())?;
    }
    println!("{} parts are satisfied", partition.num_parts());

    // A number that is no byte is found before anything is proved.
    circuit.numbers[0][0] = 256;
    match partition.trace(&circuit) {
        Err(error) => println!("256 is refused: {error}"),
        Ok(_) => return Err("256 is no byte".into()),
    }
    Ok(())
}
