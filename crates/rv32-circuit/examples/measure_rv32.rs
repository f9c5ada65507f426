//! Proves the execution of a program and prints sizes and times.
//!
//! `cargo run --release -p proofmill-rv32-circuit --example measure_rv32 -- PROGRAM.elf [STEPS] < INPUT`, where STEPS is
//! the number of steps in a part, 1024 by default. Keys are made in memory, for development.

use std::io::Read;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use ark_bn254::{Bn254, Fr};
use ark_std::rand::SeedableRng;
use ark_std::rand::rngs::StdRng;
use proofmill_aggregation::Srs;
use proofmill_groth16::ResidentForm;
use proofmill_groth16::mirage::{ProvingKey, Setup};
use proofmill_partition::proof::{ClassKeys, Index, Journal, PartitionProof, Prover, Step};
use proofmill_partition::{Partition, PartitionedCircuit};
use proofmill_rv32::elf;
use proofmill_rv32_circuit::{Demand, Rv32Circuit, Shape};

type Failure = Box<dyn std::error::Error>;

/// Times of a proof's phases.
#[derive(Default)]
struct Times {
    trace: Duration,
    commit: Duration,
    prove: Duration,
    aggregate: Duration,
}

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments
        .next()
        .ok_or("the path of an executable is missing")?;
    let per_part = arguments.next().map_or(Ok(1024), |text| text.parse())?;
    let program = elf::load(&std::fs::read(path)?)?;
    let mut input = Vec::new();
    std::io::stdin().read_to_end(&mut input)?;

    let start = Instant::now();
    let demand = Demand::of(&program, &input)?;
    let cycles = demand.steps;
    println!("{cycles} cycles, executed in {:?}", start.elapsed());
    let shape = Shape::fitting(&program, &demand, per_part)?;
    let circuit = Rv32Circuit::new(&program, &input, shape)?;

    let start = Instant::now();
    let partition = Partition::<Fr>::new(&Rv32Circuit::blank(&program, shape)?)?;
    println!(
        "partition of {} parts made in {:?}",
        partition.num_parts(),
        start.elapsed()
    );
    print_sizes(&partition, &circuit, cycles)?;
    prove(partition, &circuit, cycles)
}

fn print_sizes(
    partition: &Partition<Fr>,
    circuit: &Rv32Circuit,
    cycles: u64,
) -> Result<(), Failure> {
    let mut total = 0;
    for class in partition.classes() {
        let layout = class.layout();
        let parts = (0..partition.num_parts())
            .filter(|part| PartitionedCircuit::<Fr>::class(circuit, *part) == class.name());
        let parts = parts.count();
        println!(
            "{:>6} × {:9} {:>9} constraints, {:>7} committed",
            parts,
            class.name(),
            layout.constraints,
            layout.committed,
        );
        total += parts * layout.constraints;
    }
    let per_cycle = total as f64 / cycles as f64;
    println!("{total} constraints, {per_cycle:.1} for each cycle, everything included");
    Ok(())
}

fn prove(partition: Partition<Fr>, circuit: &Rv32Circuit, cycles: u64) -> Result<(), Failure> {
    let rng = &mut StdRng::from_entropy();
    let start = Instant::now();
    let srs = Srs::<Bn254>::setup(partition.num_parts().next_power_of_two().max(2), rng)?;
    let setup = Setup::new(rng);
    let mut keys: Vec<ProvingKey<Bn254>> = Vec::new();
    for class in partition.classes() {
        keys.push(setup.key(class.committed_system()?, rng)?);
    }
    let of_classes = keys.iter().map(ProvingKey::vk).collect();
    let held = ClassKeys::hold(&partition, keys, ResidentForm::Plain)?;
    let index = Index::new(partition, of_classes, &srs)?;
    println!("keys made in {:?}", start.elapsed());

    let prover = Prover {
        index: &index,
        srs: &srs,
        keys: &held,
    };
    let mut times = Times::default();
    let mut phase: Option<(Step, Instant)> = None;
    let start = Instant::now();
    let mut journal = Journal::in_memory(rng);
    let proof = prover.prove(circuit, &mut journal, rng, |step| {
        let now = Instant::now();
        if let Some((before, since)) = phase.replace((step, now)) {
            times.add(before, now - since);
        }
        ControlFlow::Continue(())
    })?;
    if let Some((step, since)) = phase {
        times.add(step, since.elapsed());
    }
    let total = start.elapsed();

    let statement = circuit.statement().ok_or("the circuit has no witness")?;
    let inputs: Vec<Fr> = statement.public_inputs(circuit.shape())?;
    let start = Instant::now();
    index.verifying_key().verify(&inputs, &proof)?;
    println!("verified in {:?}", start.elapsed());
    let cores = std::thread::available_parallelism()?.get();
    let busy = (times.commit + times.prove).as_secs_f64() * cores as f64;
    println!(
        "trace {:?}, commit {:?}, prove {:?}, aggregate {:?}; total {total:?} on {cores} threads",
        times.trace, times.commit, times.prove, times.aggregate,
    );
    println!(
        "{:.1} cycles for each core-second of commit and prove",
        cycles as f64 / busy
    );
    let size = PartitionProof::<Bn254>::encoded_size(index.partition().num_parts());
    println!("proof of {size} bytes");
    Ok(())
}

// === impl Times ===

impl Times {
    fn add(&mut self, step: Step, time: Duration) {
        match step {
            Step::Trace => self.trace += time,
            Step::Commit { .. } => self.commit += time,
            Step::Prove { .. } => self.prove += time,
            _ => self.aggregate += time,
        }
    }
}
