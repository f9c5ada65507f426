//! Measures the engine with a hot key: proofs a minute, processor use, and peak memory beside the bytes
//! that were reserved. Arguments: curve, multiplications in the circuit's chain, partitions of the measured
//! job, partitions under way at once, and the threads of each device (`0`: the device shares the common
//! pool).
//!
//! ```text
//! cargo run --release -p proofmill-engine --example measure_engine -- bn254 60000 12 2 0
//! cargo run --release -p proofmill-engine --example measure_engine -- bn254 60000 12 2 1 1
//! ```
//!
//! Linux only: peak memory and processor time are read from `/proc`.

use std::fs;
use std::io::{BufWriter, Cursor};
use std::path::Path;
use std::time::Instant;

use ark_ff::{BigInteger, One, PrimeField, UniformRand};
use ark_std::rand::rngs::OsRng;
use proofmill_engine::{
    CircuitRef, CircuitSource, DeviceKind, DeviceOptions, EventKind, Input, JobState, Options,
    Partition, PipelineStage, Priority, Registration, RequestId, Secret, Service, Submission, Tier,
};
use proofmill_groth16::snarkjs::setup_zkey;
use proofmill_groth16::{Curve, SnarkCurve, with_curve};
use proofmill_r1cs::R1cs;
use proofmill_r1cs::iden3::{LabelledR1cs, R1csFile, write_r1cs};
use proofmill_shutdown::{Level, channel};

type Failure = Box<dyn std::error::Error>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [curve, numbers @ ..] = &arguments[..] else {
        return Err("CURVE CONSTRAINTS PROOFS PARTITION_WORKERS THREADS_OF_A_DEVICE...".into());
    };
    let numbers: Vec<usize> = numbers
        .iter()
        .map(|number| number.parse())
        .collect::<Result<_, _>>()?;
    let [constraints, proofs, partition_workers, threads @ ..] = &numbers[..] else {
        return Err("numbers are missing: see the file's beginning".into());
    };
    let curve = Curve::ALL
        .into_iter()
        .find(|known| known.name() == curve)
        .ok_or("the curve is bn254 or bls12-381")?;
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("chain.zkey");
    let witness = with_curve!(curve, E => chain::<E>(*constraints, &path)?);
    let devices = (0..).zip(threads).map(|(number, threads)| DeviceOptions {
        name: format!("cpu{number}"),
        kind: DeviceKind::Processors {
            threads: (*threads > 0).then_some(*threads),
        },
    });
    let options = Options {
        partition_workers: *partition_workers,
        devices: devices.collect(),
        ..Options::default()
    };
    let (service, handle) = Service::open(options).await?;
    let (trigger, shutdown) = channel();
    let running = tokio::spawn(service.run(shutdown));
    let circuit = CircuitRef::Name("chain".to_owned());
    let registration = Registration {
        name: "chain".to_owned(),
        source: CircuitSource::Zkey(path),
    };
    handle.register(registration).await?;
    let key = handle.preload(circuit.clone(), Tier::Hot).await?;
    println!(
        "{} variables, a domain of {}: the key takes {} bytes, loaded in {} ms, a partition {}",
        key.variables,
        key.domain,
        key.bytes,
        key.load_ms.unwrap_or_default(),
        key.work_bytes
    );
    let submission = |request: &str, count: usize| -> Result<Submission, Failure> {
        let partition = |_| Partition {
            circuit: circuit.clone(),
            input: Input::Vector(Secret::new(witness.clone())),
        };
        Ok(Submission {
            request: RequestId::new("measure", request)?,
            priority: Priority::Normal,
            deadline: None,
            partitions: (0..count).map(partition).collect(),
            trace: None,
        })
    };
    // The first job makes the tables and allocates the memory; it is not measured.
    handle
        .prove(submission("first", *partition_workers)?)
        .await?;
    let mut events = handle.events();
    let submitted = handle.submit(submission("measured", *proofs)?).await?;
    let before = reset_peak();
    let (start, ticks) = (Instant::now(), processor_ticks()?);
    let result = handle.await_result(submitted.job).await?;
    let (seconds, ticks) = (start.elapsed().as_secs_f64(), processor_ticks()? - ticks);
    if result.state != JobState::Done {
        return Err(result.state.to_string().into());
    }
    let budget = handle.status().await?.budget;
    let mut stages = [0.0; 5];
    while let Ok(event) = events.try_recv() {
        if let EventKind::Ended {
            stage, began_us, ..
        } = event.kind
        {
            stages[stage as usize] += (event.at_us - began_us) as f64 / 1e3;
        }
    }
    let processors = std::thread::available_parallelism()?.get() as f64;
    println!(
        "{:.1} proofs a minute; processors {:.0} % busy; peak {} bytes over what was in use, {} reserved",
        *proofs as f64 * 60.0 / seconds,
        // A tick is 10 ms on Linux.
        ticks as f64 / seconds / processors,
        peak().saturating_sub(before),
        budget.peak.saturating_sub(key.bytes),
    );
    for stage in PipelineStage::ALL {
        println!(
            "{:10} {:8.1} ms",
            stage.name(),
            stages[stage as usize] / *proofs as f64
        );
    }
    trigger.raise(Level::Stop);
    running.await??;
    Ok(())
}

/// A development key for zᵢ₊₂ = zᵢ·zᵢ₊₁, with the first two public, and a witness.
fn chain<E: SnarkCurve>(constraints: usize, key: &Path) -> Result<Vec<u8>, Failure> {
    let one = E::ScalarField::one();
    let rows = [0, 1, 2].map(|shift| {
        (0..constraints)
            .map(|i| vec![(one, 1 + i + shift)])
            .collect()
    });
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
    let out = BufWriter::with_capacity(1 << 20, fs::File::create(key)?);
    setup_zkey::<E, _>(&R1csFile::parse(&circuit)?, &mut OsRng, out, &|_| {})?;
    Ok(z.iter()
        .flat_map(|value| value.into_bigint().to_bytes_le())
        .collect())
}

/// Processor time of this process in user and kernel mode, in ticks.
fn processor_ticks() -> Result<u64, Failure> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    let (_, fields) = stat.rsplit_once(')').ok_or("no fields")?;
    // Fields 14 and 15 of proc_pid_stat(5). The first two fields end with the bracket above.
    let times = fields
        .split_whitespace()
        .skip(11)
        .take(2)
        .map(str::parse::<u64>);
    Ok(times.collect::<Result<Vec<_>, _>>()?.iter().sum())
}

/// Resets the peak of resident memory to the current use, and returns that use in bytes.
fn reset_peak() -> u64 {
    let _ = proofmill_memory::reset_peak(std::process::id());
    proofmill_memory::resident().unwrap_or(0)
}

/// Peak of resident memory since the last reset, in bytes.
fn peak() -> u64 {
    proofmill_memory::peak().unwrap_or(0)
}
