//! Keys in this crate's format over every curve: files, proofs with and without a resident key, and round trips
//! through snarkjs's JSON.

use std::sync::Arc;

use ark_ff::{One, UniformRand};
use ark_std::rand::{SeedableRng, rngs::StdRng};
use proofmill_groth16::snarkjs::{
    inputs_from_json, inputs_to_json, proof_from_json, proof_to_json, verifying_key_from_json,
    verifying_key_to_json,
};
use proofmill_groth16::{
    Curve, KeyError, PointCheck, PreparedVerifyingKey, Proof, ProveError, Prover, ProvingKey,
    ResidentForm, ResidentKey, SnarkCurve, Timings, VerifyError, VerifyingKey, prove, setup,
    verify, with_curve,
};
use proofmill_r1cs::{Assignment, R1cs};

/// A system of the constraints zᵢ₊₂ = zᵢ·zᵢ₊₁, whose first two variables are public.
pub(super) fn chain<E: SnarkCurve>(
    length: usize,
    rng: &mut StdRng,
) -> (R1cs<E::ScalarField>, Assignment<E::ScalarField>) {
    let one = E::ScalarField::one();
    let rows = [0, 1, 2].map(|shift| (0..length).map(|i| vec![(one, 1 + i + shift)]).collect());
    let system = R1cs::from_rows(3, length, rows).unwrap();
    let mut z = vec![one, E::ScalarField::rand(rng), E::ScalarField::rand(rng)];
    for i in 0..length {
        z.push(z[i + 1] * z[i + 2]);
    }
    (system, Assignment::from_values(z, 3))
}

fn check_curve<E: SnarkCurve>() {
    let rng = &mut StdRng::seed_from_u64(1);
    let (system, assignment) = chain::<E>(300, rng);
    let key: ProvingKey<E> = setup(&system, rng).unwrap();
    let vk = PreparedVerifyingKey::from(key.vk.clone());
    let holds = |proof: &Proof<E>| verify(&vk, assignment.inputs(), proof);
    let (proof, timings) = prove(&key, &system, &assignment, rng).unwrap();
    assert_eq!(holds(&proof), Ok(()));
    assert!(timings.msm_h > std::time::Duration::ZERO);

    let bytes = key.to_bytes();
    assert!(ProvingKey::<E>::from_bytes(&bytes, PointCheck::Full).unwrap() == key);
    assert_eq!(
        VerifyingKey::<E>::from_bytes(&key.vk.to_bytes()).unwrap(),
        key.vk
    );
    let encoded = proof.to_bytes();
    assert_eq!(Proof::<E>::from_bytes(&encoded), Ok(proof));

    let json = verifying_key_to_json(&key.vk);
    let read = verifying_key_from_json::<E>(json.as_bytes()).unwrap();
    let unknown = VerifyingKey {
        circuit: [0; 32],
        ..key.vk.clone()
    };
    assert_eq!(read, unknown);
    let json = proof_to_json(&proof);
    let read_proof = proof_from_json::<E>(json.as_bytes()).unwrap();
    let json = inputs_to_json(assignment.inputs());
    let inputs = inputs_from_json(json.as_bytes()).unwrap();
    assert_eq!(verify(&read.into(), &inputs, &read_proof), Ok(()));

    let system = Arc::new(system);
    let mut wrong = assignment.z().to_vec();
    wrong[200] += E::ScalarField::one();
    for residency in [
        ResidentForm::Plain,
        ResidentForm::Prepared { memory_limit: 0 },
        ResidentForm::Prepared {
            memory_limit: 4 * key.size_in_bytes(),
        },
    ] {
        let resident = ResidentKey::new(key.clone(), system.clone(), residency).unwrap();
        assert_eq!(resident.vk(), &key.vk);
        let (proof, reports) = resident.prover().prove(assignment.z(), rng).unwrap();
        assert_eq!(holds(&proof), Ok(()), "{residency:?}");
        let timings: Timings = reports.iter().collect();
        let sum: std::time::Duration = reports.iter().map(|report| report.duration).sum();
        assert_eq!(timings.total(), sum);
        let error = resident.prover().prove(&wrong, rng).unwrap_err();
        assert!(
            matches!(error, ProveError::Unsatisfied(at) if at.row == 197),
            "{error}"
        );
    }

    let (other, _) = chain::<E>(301, rng);
    assert!(matches!(
        Prover::new(&key, &other),
        Err(ProveError::WrongKey)
    ));
    let resident = ResidentKey::new(key, Arc::new(other), ResidentForm::Plain);
    assert!(matches!(resident, Err(ProveError::WrongKey)));
    assert_eq!(
        verify(&vk, &[], &proof).unwrap_err(),
        VerifyError::InputCount {
            expected: 2,
            found: 0
        }
    );
}

#[test]
fn keys_of_every_curve_prove_resident_and_not() {
    for curve in Curve::ALL {
        with_curve!(curve, E => check_curve::<E>());
    }
}

#[test]
fn a_key_of_another_curve_is_named() {
    let rng = &mut StdRng::seed_from_u64(2);
    let (system, _) = chain::<proofmill_groth16::Bn254>(3, rng);
    let key: ProvingKey<proofmill_groth16::Bn254> = setup(&system, rng).unwrap();
    let error =
        ProvingKey::<proofmill_groth16::Bls12_381>::from_bytes(&key.to_bytes(), PointCheck::Full)
            .unwrap_err();
    assert!(
        matches!(
            error,
            KeyError::Curve {
                expected: "bls12-381"
            }
        ),
        "{error}"
    );
}
