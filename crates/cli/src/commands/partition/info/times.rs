//! The estimated time of a proof: its critical path, and the time on numbers of cores.

use std::num::NonZero;
use std::thread::available_parallelism;
use std::time::Instant;

use ark_std::rand::rngs::OsRng;
use proofmill_groth16::mirage::ProvingKeyInfo;
use proofmill_partition::Partition;
use proofmill_partition::proof::{PartitionCurve, Rates, StepTimes, TimeNeeds};
use serde_json::{Value, json};

use crate::args::circuits::Threads;
use crate::circuit_folder::AnyCircuit;
use crate::failure::Failure;

/// Numbers of cores beside this machine's, unless others are asked for.
const CORES: [usize; 3] = [1, 64, 1024];

/// The statement that every estimate comes with.
const BASIS: &str = "estimated from a measurement of this machine, just now, on one core; without transfers, an \
                     orchestrator, checks and disks; every core like one of this machine, the aggregation on one";

/// Measures this machine, for about a second, and estimates.
pub(super) fn estimate<E: PartitionCurve>(
    partition: &Partition<E::ScalarField>,
    circuit: &AnyCircuit<E::ScalarField>,
    keys: &[ProvingKeyInfo],
    cores: &[usize],
) -> Result<Value, Failure> {
    let began = Instant::now();
    // One part runs on one core, as many at once as there are cores.
    let one = Threads { threads: Some(1) };
    let rates = one.run(|| Rates::measure::<E>(partition, circuit, &mut OsRng))??;
    let measured_s = began.elapsed().as_secs_f64();
    let needs = TimeNeeds::new::<E>(partition, keys, &rates);
    let on_cores: Vec<Value> = all_cores(cores)
        .into_iter()
        .map(|cores| {
            let mut on_cores = steps(&needs.on_cores(cores));
            on_cores["cores"] = cores.into();
            on_cores
        })
        .collect();
    let classes = partition.classes().iter().zip(needs.classes());
    let classes: Vec<Value> = classes
        .map(|(class, times)| {
            json!({
                "name": class.name(),
                "trace_s": rounded(times.trace),
                "commit_s": rounded(times.commit),
                "prove_s": rounded(times.prove),
            })
        })
        .collect();
    Ok(json!({
        "basis": BASIS,
        "measured_s": rounded(measured_s),
        "rates_s": {
            "run_a_constraint": rates.run,
            "commit_a_variable": rates.commit,
            "prove_a_variable_or_point": rates.prove,
            "challenge_a_part": rates.challenge,
            "aggregate_a_part": rates.aggregate,
            "aggregate_least": rates.aggregate_least,
            "load_a_byte": rates.load,
        },
        "classes": classes,
        "critical_path": steps(&needs.critical_path()),
        "on_cores": on_cores,
    }))
}

/// The numbers of cores that are asked for, or else this machine's and some more, in order.
fn all_cores(asked: &[usize]) -> Vec<usize> {
    if !asked.is_empty() {
        return asked.to_vec();
    }
    let here = available_parallelism().map_or(1, NonZero::get);
    let mut cores = [&CORES[..], &[here]].concat();
    cores.sort_unstable();
    cores.dedup();
    cores
}

fn steps(times: &StepTimes) -> Value {
    json!({
        "keys_s": rounded(times.keys),
        "trace_s": rounded(times.trace),
        "commit_s": rounded(times.commit),
        "challenge_s": rounded(times.challenge),
        "prove_s": rounded(times.prove),
        "aggregate_s": rounded(times.aggregate),
        "total_s": rounded(times.total()),
    })
}

/// To the microsecond.
fn rounded(seconds: f64) -> f64 {
    (seconds * 1e6).round() / 1e6
}
