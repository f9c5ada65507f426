//! Times reading a circuit and multiplying its matrices, the prover's first stage:
//! `cargo run --release -p proofmill-r1cs --example multiply -- circuit.r1cs [witness.wtns]`.
//! Without a witness, and without a file a chain of 2¹⁷ multiplications, values are random.

use std::path::Path;
use std::time::Instant;

use ark_bn254::Fr;
use ark_ff::{Field, UniformRand, Zero};
use proofmill_files::MappedFile;
use proofmill_r1cs::R1cs;
use proofmill_r1cs::iden3::{R1csFile, ReadError, WtnsFile};

const RUNS: usize = 21;

fn median(mut run: impl FnMut()) -> f64 {
    let mut times: Vec<f64> = (0..RUNS)
        .map(|_| {
            let start = Instant::now();
            run();
            start.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[RUNS / 2]
}

fn read_circuit(path: &str) -> Result<R1cs<Fr>, ReadError> {
    let path = Path::new(path);
    let file = MappedFile::open(path)?;
    let read = || R1csFile::parse(&file)?.system();
    println!("read         {:9.2} ms", median(|| drop(read())));
    read().map_err(|error| error.in_file(path))
}

fn read_witness(path: &str) -> Result<Vec<Fr>, ReadError> {
    let path = Path::new(path);
    let file = MappedFile::read(path)?;
    let read = || WtnsFile::parse(&file)?.read();
    println!("read witness {:9.2} ms", median(|| drop(read())));
    let witness = read().map_err(|error| error.in_file(path))?;
    Ok(witness.values().to_vec())
}

/// x·x = x', x'·x = x'', …
fn chain(constraints: usize) -> R1cs<Fr> {
    let row = |column| vec![(Fr::ONE, column)];
    let a = (0..constraints).map(|i| row(1 + i)).collect();
    let b = (0..constraints).map(|_| row(1)).collect();
    let c = (0..constraints).map(|i| row(2 + i)).collect();
    R1cs::from_rows(1, constraints + 1, [a, b, c]).expect("a system")
}

fn main() -> Result<(), ReadError> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let system = match arguments.first() {
        Some(path) => read_circuit(path)?,
        None => chain(1 << 17),
    };
    let rng = &mut ark_std::test_rng();
    let z = match arguments.get(1) {
        Some(path) => read_witness(path)?,
        None => (0..system.num_variables()).map(|_| Fr::rand(rng)).collect(),
    };
    let entries: usize = system
        .matrices()
        .iter()
        .map(|matrix| matrix.entries())
        .sum();
    println!(
        "{} constraints, {} variables, {entries} entries, {} coefficients, {} bytes",
        system.num_constraints(),
        system.num_variables(),
        system.coefficients().len(),
        system.memory(),
    );
    let mut out = vec![Fr::zero(); system.num_constraints()];
    for (name, matrix) in ["A", "B", "C"].into_iter().zip(system.matrices()) {
        let time = median(|| system.multiply(matrix, &z, &mut out).expect("fits"));
        println!(
            "multiply {name}   {time:9.2} ms, {} entries",
            matrix.entries()
        );
    }
    Ok(())
}
