//! The provers. All prove the matrices of one [`Input`], each with a key of its own setup, and all
//! their first proofs must verify.
//!
//! Our prover checks, as gnark's solver does, that the assignment satisfies every row. That of
//! arkworks does not. arkworks proves from resident matrices, which is faster than its usual way of
//! running the circuit again for each proof.

use std::time::Duration;

use ark_ff::UniformRand;
use ark_groth16::{Groth16, prepare_verifying_key};
use ark_relations::gr1cs::{
    ConstraintSynthesizer, ConstraintSystem, OptimizationGoal, R1CS_PREDICATE_LABEL,
};
use ark_std::rand::{SeedableRng, rngs::StdRng};
use proofmill_accelerator::Device;
use proofmill_groth16::{
    DeviceKey, PreparedVerifyingKey, Proof, ResidentKey, SnarkCurve, StageReport, verify,
};
use rayon::ThreadPool;

use super::Input;
use crate::peers::gnark;
use crate::versus::{Contender, Curve, PeerAnswer, Purpose, Sample, time};

/// Expected result of the check of a first proof.
const VALID: &str = "verifies";

/// Our prover, with the time of each stage.
pub(super) fn ours<'a, E: SnarkCurve>(
    input: &'a Input<E>,
    key: &'a ResidentKey<E>,
    pool: &'a ThreadPool,
) -> Contender<'a> {
    let mut rng = StdRng::seed_from_u64(2);
    let verifying_key = PreparedVerifyingKey::from(key.vk().clone());
    Contender::new("proofmill", move |purpose| {
        let z = input.assignment.z();
        let (elapsed, proof) = pool.install(|| time(|| key.prover().prove(z, &mut rng)));
        let (proof, reports) = proof?;
        Ok(Sample {
            ms: vec![ms_of(elapsed)],
            result: verdict(purpose, &verifying_key, input, &proof),
            stages: stages(&reports),
        })
    })
}

/// Our prover with a device. As stages overlap, the time of a stage is what it added to the proof's; a
/// further entry has the time for which the device was busy.
pub(super) fn ours_on_device<'a, E: SnarkCurve>(
    input: &'a Input<E>,
    key: DeviceKey<E>,
    device: &'a dyn Device,
    pool: &'a ThreadPool,
) -> Contender<'a> {
    let mut rng = StdRng::seed_from_u64(2);
    let verifying_key = PreparedVerifyingKey::from(key.key().vk().clone());
    let name = format!("proofmill on {}", device.caps().name);
    Contender::new(name, move |purpose| {
        let z = input.assignment.z();
        let busy = device.busy();
        let (elapsed, proof) = pool.install(|| time(|| key.prove(z, &mut rng)));
        let busy = device.busy() - busy;
        let (proof, reports) = proof?;
        let mut stages = stages(&reports);
        stages.push(("device busy", ms_of(busy)));
        Ok(Sample {
            ms: vec![ms_of(elapsed)],
            result: verdict(purpose, &verifying_key, input, &proof),
            stages,
        })
    })
}

fn ms_of(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

fn stages(reports: &[StageReport]) -> Vec<(&'static str, f64)> {
    reports
        .iter()
        .map(|report| (report.stage.name(), ms_of(report.duration)))
        .collect()
}

/// The result of verifying the proof of a check run; `None` for measured runs.
fn verdict<E: SnarkCurve>(
    purpose: Purpose,
    key: &PreparedVerifyingKey<E>,
    input: &Input<E>,
    proof: &Proof<E>,
) -> Option<String> {
    let verify = || match verify(key, input.assignment.inputs(), proof) {
        Ok(()) => VALID.to_owned(),
        Err(error) => error.to_string(),
    };
    (purpose == Purpose::Check).then(verify)
}

/// ark-groth16 0.6.
pub(super) fn arkworks<'a, E: SnarkCurve>(
    input: &'a Input<E>,
    pool: &'a ThreadPool,
) -> anyhow::Result<PeerAnswer<'a>> {
    let mut rng = StdRng::seed_from_u64(3);
    let key = Groth16::<E>::generate_random_parameters_with_reduction(input.circuit, &mut rng)?;
    let cs = ConstraintSystem::<E::ScalarField>::new_ref();
    cs.set_optimization_goal(OptimizationGoal::Constraints);
    input.circuit.generate_constraints(cs.clone())?;
    cs.finalize();
    let matrices = cs
        .to_matrices()?
        .remove(R1CS_PREDICATE_LABEL)
        .unwrap_or_default();
    anyhow::ensure!(
        cs.num_constraints() == input.r1cs.num_constraints(),
        "arkworks has {} constraints, we {}",
        cs.num_constraints(),
        input.r1cs.num_constraints()
    );
    let verifying_key = prepare_verifying_key(&key.vk);
    Ok(PeerAnswer::Runs(vec![Contender::in_process(
        "ark-groth16",
        move || {
            let mut random = || E::ScalarField::rand(&mut rng);
            let (r, s) = (random(), random());
            pool.install(|| {
                time(|| {
                    Groth16::<E>::create_proof_with_reduction_and_matrices(
                        &key,
                        r,
                        s,
                        &matrices,
                        input.r1cs.num_instance(),
                        input.r1cs.num_constraints(),
                        input.assignment.z(),
                    )
                })
            })
        },
        move |proof| {
            let verdict = proof.and_then(|proof| {
                Groth16::<E>::verify_proof(&verifying_key, &proof, input.assignment.inputs())
            });
            match verdict {
                Ok(true) => VALID.to_owned(),
                other => format!("{other:?}"),
            }
        },
    )]))
}

/// gnark, with our matrices as its constraint system.
pub(super) fn gnark<'a, E: SnarkCurve>(
    input: &'a Input<E>,
    curve: Curve,
    threads: usize,
) -> anyhow::Result<PeerAnswer<'a>> {
    let job = ["groth16", curve.name()];
    gnark::offer(&[("gnark", &job)], threads, |file| {
        let r1cs = &input.r1cs;
        file.number(r1cs.num_variables())?;
        file.number(r1cs.num_instance())?;
        file.fields(r1cs.coefficients())?;
        file.number(r1cs.num_constraints())?;
        for row in 0..r1cs.num_constraints() {
            for matrix in r1cs.matrices() {
                file.number(matrix.row(row).count())?;
                for (variable, coefficient) in matrix.row(row) {
                    file.index(variable)?;
                    file.index(coefficient)?;
                }
            }
        }
        file.fields(input.assignment.z())
    })
}
