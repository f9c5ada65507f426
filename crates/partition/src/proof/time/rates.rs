//! Rates of this machine, measured.

use std::sync::Arc;
use std::time::Instant;

use ark_ec::{AffineRepr, CurveGroup};
use ark_ff::UniformRand;
use ark_std::rand::{CryptoRng, RngCore};
use proofmill_aggregation::{MirageClass, MirageIndex, MirageParts, MirageStatement, Srs};
use proofmill_groth16::mirage::{Opening as CommitmentOpening, ProvingKey, ResidentKey, Setup};
use proofmill_groth16::{PointCheck, Proof, ResidentForm};

use crate::applications::Squarings;
use crate::proof::{PartitionCurve, SHARED};
use crate::{Challenges, Opening, PartTrace, Partition, PartitionError, PartitionedCircuit};

/// Lanes and squarings of the part that is proved: just under 2¹³ constraints.
const LANES: usize = 512;
const SQUARINGS: usize = 7;

/// Proofs of that part; the fastest counts.
const PROOFS: usize = 3;

/// Numbers of proofs that are aggregated; the times of both give a line.
const AGGREGATED: [usize; 2] = [16, 128];

/// Seconds on one core of this machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// Of a run of a part's code with its memory check, for each constraint.
    pub run: f64,
    /// Of a commitment, for each committed variable.
    pub commit: f64,
    /// Of a proof without the run, for each variable and for each point of the domain.
    pub prove: f64,
    /// Of drawing the challenges, for each part.
    pub challenge: f64,
    /// Of an aggregation, for each part.
    pub aggregate: f64,
    /// Of an aggregation, whatever the number of parts.
    pub aggregate_least: f64,
    /// Of reading a key that is in the file cache, for each byte.
    pub load: f64,
}

/// A measurement that failed.
#[derive(Debug, thiserror::Error)]
#[error("this machine cannot be measured: {0}")]
pub struct MeasureError(Box<dyn std::error::Error + Send + Sync>);

type Failed = Box<dyn std::error::Error + Send + Sync>;

/// Seconds of a product, and the product.
fn timed<T, X>(work: impl FnOnce() -> Result<T, X>) -> Result<(f64, T), X> {
    let began = Instant::now();
    let made = work()?;
    Ok((began.elapsed().as_secs_f64(), made))
}

// === impl Rates ===

impl Rates {
    /// Measures, on the threads of the current rayon pool, which should be one: proves a part of
    /// [`Squarings`](crate::applications::Squarings), aggregates points that are no proofs, and runs the code of one
    /// part of `circuit`, which needs no witness.
    ///
    /// # Errors
    ///
    /// [`MeasureError`] if the circuit is not the partition's.
    pub fn measure<E: PartitionCurve>(
        partition: &Partition<E::ScalarField>,
        circuit: &impl PartitionedCircuit<E::ScalarField>,
        rng: &mut (impl RngCore + CryptoRng),
    ) -> Result<Self, MeasureError> {
        let of_part = measure_part::<E>(rng).map_err(MeasureError)?;
        let few = measure_aggregation::<E>(AGGREGATED[0], rng).map_err(MeasureError)?;
        let many = measure_aggregation::<E>(AGGREGATED[1], rng).map_err(MeasureError)?;
        let run =
            measure_run(partition, circuit, rng).map_err(|error| MeasureError(error.into()))?;
        let more = (AGGREGATED[1] - AGGREGATED[0]) as f64;
        let aggregate = ((many.aggregate_least - few.aggregate_least) / more).max(0.0);
        let least = few.aggregate_least - aggregate * AGGREGATED[0] as f64;
        Ok(Self {
            run,
            challenge: many.challenge,
            aggregate,
            aggregate_least: least.max(0.0),
            ..of_part
        })
    }

    const ZERO: Self = Self {
        run: 0.0,
        commit: 0.0,
        prove: 0.0,
        challenge: 0.0,
        aggregate: 0.0,
        aggregate_least: 0.0,
        load: 0.0,
    };
}

/// The rates of loading a key, of a commitment and of a proof, on the first of two parts of squarings.
fn measure_part<E: PartitionCurve>(rng: &mut (impl RngCore + CryptoRng)) -> Result<Rates, Failed> {
    let partition = Partition::new(&Squarings::<E::ScalarField>::blank(2, SQUARINGS, LANES)?)?;
    let class = &partition.classes()[0];
    let file = Setup::<E>::new(rng)
        .key(class.committed_system()?, rng)?
        .to_bytes();
    let (load_s, key) = timed(|| ProvingKey::<E>::from_bytes(&file, PointCheck::Skip))?;
    let key = ResidentKey::new(key, Arc::clone(class.system()), ResidentForm::Plain)?;

    let values = (0..LANES).map(|_| E::ScalarField::rand(rng)).collect();
    let circuit = Squarings::new(2, SQUARINGS, values)?;
    let traces = partition.trace(&circuit)?;
    let (alpha, beta) = (E::ScalarField::rand(rng), E::ScalarField::rand(rng));
    let challenges = Challenges { alpha, beta };
    let states = partition.states(&traces, challenges, rng)?;
    let trace = partition.part_trace(&traces, 0)?;
    let assignment = partition.assignment(&circuit, 0, &trace, &challenges, &states.opening(0)?)?;
    let committed = trace.committed();
    let opening = CommitmentOpening::new(&committed, E::ScalarField::rand(rng));
    let prover = key.prover();
    let (mut commit_s, mut prove_s) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..PROOFS {
        let (seconds, _) = timed(|| prover.commit_with(&committed, &opening))?;
        commit_s = commit_s.min(seconds);
        let (seconds, _) = timed(|| prover.prove(assignment.z(), &opening, rng))?;
        prove_s = prove_s.min(seconds);
    }
    let layout = class.layout();
    let instance = class.system().num_instance();
    let domain = (layout.constraints + instance).next_power_of_two();
    Ok(Rates {
        commit: commit_s / layout.committed as f64,
        prove: prove_s / (instance + layout.witness + domain) as f64,
        load: load_s / file.len() as f64,
        ..Rates::ZERO
    })
}

/// The rate of the challenge, and the seconds of an aggregation of so many points that are no proofs.
fn measure_aggregation<E: PartitionCurve>(
    count: usize,
    rng: &mut (impl RngCore + CryptoRng),
) -> Result<Rates, Failed> {
    let srs = Srs::<E>::setup(count, rng)?;
    let first: Vec<_> = (0..count)
        .map(|_| (E::G1Affine::generator() * E::ScalarField::rand(rng)).into_affine())
        .collect();
    let mut second = || (E::G2Affine::generator() * E::ScalarField::rand(rng)).into_affine();
    let proofs: Vec<_> = first
        .iter()
        .map(|point| Proof::<E> {
            a: *point,
            b: second(),
            c: *point,
        })
        .collect();
    let class = MirageClass {
        gamma: second(),
        delta: second(),
        eta: second(),
    };
    let parts = MirageParts {
        alpha: first[0],
        beta: second(),
        classes: vec![class],
        class_of: vec![0; count],
        inputs: vec![first.clone(); 1 + SHARED],
    };
    let index = MirageIndex::new(&srs, parts)?;
    let (challenge_s, commitment) = timed(|| index.commit(&srs, &first))?;
    let inputs = [E::ScalarField::rand(rng); SHARED];
    let statement = MirageStatement {
        context: &[],
        inputs: &inputs,
        commitment: &commitment,
    };
    let (aggregate_s, _) = timed(|| index.aggregate(&srs, statement, &proofs, &first))?;
    Ok(Rates {
        challenge: challenge_s / count as f64,
        aggregate_least: aggregate_s,
        ..Rates::ZERO
    })
}

/// The rate of a run of the code of the circuit: of a part of the class that has the most parts, on random values of
/// shared wires. The assignment satisfies nothing, but is made as any other.
fn measure_run<F: proofmill_kernels::Poseidon2Field>(
    partition: &Partition<F>,
    circuit: &impl PartitionedCircuit<F>,
    rng: &mut impl RngCore,
) -> Result<f64, PartitionError> {
    let mut parts_of = vec![0usize; partition.classes().len()];
    for part in 0..partition.num_parts() {
        parts_of[partition.class_of(part)?] += 1;
    }
    let most = (0..parts_of.len()).max_by_key(|class| parts_of[*class]);
    let class = &partition.classes()[most.unwrap_or(0)];
    let mut random = |count: usize| (0..count).map(|_| F::rand(rng)).collect::<Vec<F>>();
    let trace = PartTrace {
        by_part: random(class.accesses()),
        by_address: random(class.accesses()),
        transfers: random(class.shape().transferred),
    };
    let challenges = Challenges {
        alpha: F::rand(rng),
        beta: F::rand(rng),
    };
    let opening = Opening::zero(class.shape().depth);
    let (seconds, _) =
        timed(|| partition.assignment(circuit, class.first_part(), &trace, &challenges, &opening))?;
    Ok(seconds / class.layout().constraints as f64)
}

#[cfg(test)]
mod tests {
    use ark_std::rand::SeedableRng;
    use ark_std::rand::rngs::StdRng;
    use proofmill_groth16::Bn254;

    use super::*;

    #[test]
    fn a_machine_is_measured() {
        let circuit = Squarings::blank(3, 2, 2).unwrap();
        let partition = Partition::new(&circuit).unwrap();
        let rng = &mut StdRng::seed_from_u64(1);
        let rates = Rates::measure::<Bn254>(&partition, &circuit, rng).unwrap();
        for rate in [
            rates.run,
            rates.commit,
            rates.prove,
            rates.challenge,
            rates.load,
        ] {
            assert!(rate > 0.0 && rate < 1.0, "{rates:?}");
        }
        // The line through two times is level where this test waits for the processor during the shorter one.
        assert!((0.0..1.0).contains(&rates.aggregate), "{rates:?}");
        let aggregation = rates.aggregate + rates.aggregate_least;
        assert!(aggregation > 0.0, "{rates:?}");
    }

    #[test]
    fn the_part_that_is_proved_fills_its_domain() {
        type F = ark_bn254::Fr;
        let partition =
            Partition::new(&Squarings::<F>::blank(2, SQUARINGS, LANES).unwrap()).unwrap();
        let system = partition.classes()[0].system();
        let rows = system.num_constraints() + system.num_instance();
        assert!((7 << 10..=1 << 13).contains(&rows), "{rows}");
    }

    #[test]
    fn another_circuit_is_refused() {
        let partition = Partition::new(&Squarings::blank(3, 2, 2).unwrap()).unwrap();
        let other = Squarings::blank(3, 2, 3).unwrap();
        let rng = &mut StdRng::seed_from_u64(1);
        assert!(measure_run::<ark_bn254::Fr>(&partition, &other, rng).is_err());
    }
}
