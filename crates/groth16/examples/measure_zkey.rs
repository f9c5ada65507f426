//! Measures loading a `.zkey` and proving with it: times, and on Linux the peak memory of each step. The key and the
//! witness are files, or a development key is made for a chain of a given number of multiplications:
//!
//! ```text
//! cargo run --release -p proofmill-groth16 --example measure_zkey -- circuit.zkey witness.wtns
//! cargo run --release -p proofmill-groth16 --example measure_zkey -- chain bn254 131000
//! ```

use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::time::Instant;

use ark_ff::{One, UniformRand};
use ark_std::rand::rngs::OsRng;
use proofmill_files::{MappedFile, Visibility, write_whole};
use proofmill_groth16::snarkjs::{CheckedKeyStore, Trust, Zkey, ZkeyFile, setup_zkey};
use proofmill_groth16::stages::Products;
use proofmill_groth16::{
    Curve, PointCheck, PreparedVerifyingKey, ResidentForm, ResidentKey, SnarkCurve, StageReport,
    verify, with_curve,
};
use proofmill_r1cs::R1cs;
use proofmill_r1cs::iden3::{LabelledR1cs, R1csFile, WtnsFile, write_r1cs, write_wtns};

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let directory = tempfile::tempdir()?;
    let (key, witness) = match &arguments[..] {
        [word, curve, constraints] if word == "chain" => {
            let curve = Curve::ALL
                .into_iter()
                .find(|known| known.name() == curve)
                .ok_or("the curve is bn254 or bls12-381")?;
            let constraints = constraints.parse()?;
            with_curve!(curve, E => chain::<E>(constraints, directory.path())?)
        }
        [key, witness] => (key.into(), witness.into()),
        _ => return Err("a .zkey and a .wtns, or: chain CURVE CONSTRAINTS".into()),
    };
    let file = MappedFile::open(&key)?;
    let curve = ZkeyFile::parse(&file)?.curve();
    with_curve!(curve, E => measure::<E>(&file, &witness, directory.path()))
}

/// A key and a witness for zᵢ₊₁ = zᵢ·zᵢ₋₁, with z₀ and z₁ public.
fn chain<E: SnarkCurve>(
    constraints: usize,
    directory: &Path,
) -> Result<(PathBuf, PathBuf), Failure> {
    let one = E::ScalarField::one();
    let row = |variable| vec![(one, variable)];
    let rows = [0, 1, 2].map(|shift| (0..constraints).map(|i| row(1 + i + shift)).collect());
    let system = R1cs::from_rows(3, constraints, rows)?;
    let mut z = vec![
        one,
        E::ScalarField::rand(&mut OsRng),
        E::ScalarField::rand(&mut OsRng),
    ];
    for i in 0..constraints {
        z.push(z[i + 1] * z[i + 2]);
    }
    let circuit = LabelledR1cs::plain(system).ok_or("a field of circom's")?;
    let circuit = write_r1cs(Cursor::new(Vec::new()), &circuit)?.into_inner();
    let (key, witness) = (directory.join("chain.zkey"), directory.join("chain.wtns"));
    let start = Instant::now();
    let file = std::fs::File::create(&key)?;
    let out = std::io::BufWriter::with_capacity(1 << 20, file);
    setup_zkey::<E, _>(&R1csFile::parse(&circuit)?, &mut OsRng, out, &|_| {})?;
    print_row("development setup", start, 0);
    write_whole(&witness, Visibility::Private, |out| {
        write_wtns(out, &z).map(|_| ())
    })?;
    Ok((key, witness))
}

fn measure<E: SnarkCurve>(file: &MappedFile, witness: &Path, state: &Path) -> Result<(), Failure> {
    let parsed = ZkeyFile::parse(file)?;
    let header = *parsed.header();
    println!(
        "{}: {} variables, {} public inputs, domain of {}, {} entries, {} bytes, {} threads",
        header.curve,
        header.variables,
        header.public,
        header.domain_size,
        parsed.coefficients(),
        file.len(),
        rayon::current_num_threads(),
    );
    println!(
        "{:28} {:>10} {:>14} {:>14}",
        "", "ms", "bytes by us", "peak growth"
    );
    let keys = CheckedKeyStore::in_directory(state.join("checked"));
    timed("digest (BLAKE3)", || CheckedKeyStore::digest(file));
    timed("read, points not checked", || {
        parsed.read::<E>(PointCheck::Skip)
    })?;
    timed("read, points checked", || {
        parsed.read::<E>(PointCheck::Full)
    })?;
    timed("load, first time", || {
        Zkey::<E>::load(file, Trust::Remembered(&keys))
    })?;
    let (key, _) = timed("load, remembered", || {
        Zkey::<E>::load(file, Trust::Remembered(&keys))
    })?;
    let held = std::env::var("RESIDENT_BYTES").ok();
    let residency = match held {
        None => ResidentForm::Plain,
        Some(bytes) => ResidentForm::Prepared {
            memory_limit: bytes.parse()?,
        },
    };
    let resident = timed("make resident", || ResidentKey::from_zkey(key, residency))?;
    println!("{:28} {:>10} {:>14}", "resident", "", resident.bytes());

    let z = {
        let file = MappedFile::read(witness)?;
        WtnsFile::parse(&file)?.read::<E::ScalarField>()?
    };
    let z = z.values();
    let prover = resident.prover();
    for _ in 0..2 {
        let start = Instant::now();
        let evaluations = step(|| prover.evaluate(z))?;
        let quotient = step(|| Ok::<_, Failure>(prover.quotient(evaluations)))?;
        let h = step(|| Ok::<_, Failure>(prover.multiply_h(quotient)))?;
        let products = Products {
            a: step(|| prover.multiply_a(z))?,
            b_g1: step(|| prover.multiply_b_g1(z))?,
            b_g2: step(|| prover.multiply_b_g2(z))?,
            l: step(|| prover.multiply_l(z))?,
            h,
        };
        let proof = step(|| Ok::<_, Failure>(prover.assemble(&products, &mut OsRng)))?;
        print_row("proof", start, 0);
        let inputs = &z[1..=header.public as usize];
        let vk = PreparedVerifyingKey::from(resident.vk().clone());
        timed("verify", || verify(&vk, inputs, &proof))?;
    }
    Ok(())
}

/// Runs a stage and prints its report.
fn step<T, F: Into<Failure>>(
    run: impl FnOnce() -> Result<(T, StageReport), F>,
) -> Result<T, Failure> {
    let before = reset_peak();
    let (value, report) = run().map_err(Into::into)?;
    println!(
        "{:28} {:10.1} {:14} {:14}",
        report.stage.name(),
        report.duration.as_secs_f64() * 1e3,
        report.bytes,
        peak().saturating_sub(before),
    );
    Ok(value)
}

fn timed<T>(what: &str, run: impl FnOnce() -> T) -> T {
    let before = reset_peak();
    let start = Instant::now();
    let value = run();
    print_row(what, start, peak().saturating_sub(before));
    value
}

fn print_row(what: &str, start: Instant, peak: u64) {
    let milliseconds = start.elapsed().as_secs_f64() * 1e3;
    println!("{what:28} {milliseconds:10.1} {:>14} {peak:14}", "");
}

/// Resets the recorded peak of memory to the memory in use, and returns the latter, in bytes.
fn reset_peak() -> u64 {
    let _ = proofmill_memory::reset_peak(std::process::id());
    proofmill_memory::resident().unwrap_or(0)
}

/// Peak of memory since the last reset, in bytes.
fn peak() -> u64 {
    proofmill_memory::peak().unwrap_or(0)
}
