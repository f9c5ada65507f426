//! Separate verification of many proofs side by side gives the same results as one by one.

use ark_ec::pairing::PairingOutput;
use ark_ec::{AffineRepr, CurveGroup};
use ark_ff::{One, UniformRand, Zero};
use ark_std::rand::{SeedableRng, rngs::StdRng};
use proofmill_groth16::{
    Bls12_377, Bls12_381, Bn254, KeyedProof, PreparedVerifyingKey, Proof, SnarkCurve, VerifyError,
    Weight, WeightedProof, prove, setup, verify, verify_each, weighted_product,
    weighted_product_each,
};
use proofmill_r1cs::{Assignment, R1cs};

/// A proof with its claimed public inputs and its key.
struct Case<E: SnarkCurve> {
    key: usize,
    inputs: Vec<E::ScalarField>,
    proof: Proof<E>,
}

/// The rows of a matrix: coefficients with their variables.
type Rows<F> = Vec<Vec<(F, usize)>>;

/// A circuit with `inputs` public inputs, each the square of a witness.
fn circuit<E: SnarkCurve>(
    inputs: usize,
    rng: &mut StdRng,
) -> (R1cs<E::ScalarField>, Assignment<E::ScalarField>) {
    let one = E::ScalarField::one();
    let given: Vec<_> = (0..inputs).map(|_| E::ScalarField::rand(rng)).collect();
    let mut witness: Vec<_> = given.iter().map(|input| *input * input).collect();
    // One more witness, for circuits without inputs.
    witness.push(one);
    let row = |variable: usize| vec![(one, variable)];
    let mut rows: [Rows<E::ScalarField>; 3] = Default::default();
    for input in 0..=inputs {
        let (factor, product) = match input {
            0 => (2 * inputs + 1, 2 * inputs + 1),
            _ => (input, inputs + input),
        };
        for (matrix, variable) in rows.iter_mut().zip([factor, factor, product]) {
            matrix.push(row(variable));
        }
    }
    let system = R1cs::from_rows(1 + inputs, witness.len(), rows).unwrap();
    let assignment = Assignment::new(&given, &witness);
    assert_eq!(system.is_satisfied(assignment.z()), Ok(()));
    (system, assignment)
}

/// Keys for 0, 1, 3 and 14 inputs, and proofs under each of them in turn, some of which are wrong in one of several
/// ways.
fn cases<E: SnarkCurve>(rng: &mut StdRng) -> (Vec<PreparedVerifyingKey<E>>, Vec<Case<E>>) {
    let (mut keys, mut proofs) = (Vec::new(), Vec::new());
    for inputs in [0, 1, 3, 14] {
        let (system, assignment) = circuit::<E>(inputs, rng);
        let key = setup::<E>(&system, rng).unwrap();
        let (proof, _) = prove(&key, &system, &assignment, rng).unwrap();
        keys.push(PreparedVerifyingKey::from(key.vk));
        proofs.push((assignment.inputs().to_vec(), proof));
    }
    let mut cases = Vec::new();
    for number in 0..28 {
        let key = number % proofs.len();
        let (mut inputs, mut proof) = proofs[key].clone();
        match number / proofs.len() {
            1 => proof.c = E::G1::rand(rng).into_affine(),
            2 if !inputs.is_empty() => inputs[0] += E::ScalarField::one(),
            3 => inputs.push(E::ScalarField::one()),
            4 => proof.b = E::G2Affine::zero(),
            5 if number % 2 == 0 => proof.a = (-proof.a.into_group()).into_affine(),
            _ => {}
        }
        cases.push(Case { key, inputs, proof });
    }
    (keys, cases)
}

fn compare_with_one_by_one<E: SnarkCurve>() {
    let rng = &mut StdRng::seed_from_u64(41);
    let (keys, cases) = cases::<E>(rng);
    let keyed: Vec<_> = cases
        .iter()
        .map(|case| KeyedProof {
            key: &keys[case.key],
            inputs: &case.inputs,
            proof: &case.proof,
        })
        .collect();
    let expected: Vec<_> = keyed
        .iter()
        .map(|proof| verify(proof.key, proof.inputs, proof.proof))
        .collect();
    assert!(expected.iter().filter(|verdict| verdict.is_ok()).count() >= 8);
    assert!(expected.contains(&Err(VerifyError::Invalid)));
    for count in [0, 1, 2, 3, 7, 8, 9, 16, 28] {
        assert_eq!(verify_each(&keyed[..count]), expected[..count], "{count}");
    }
    assert_eq!(verify_each(&keyed[20..]), expected[20..]);
    // A product needs the right number of inputs.
    let weighted: Vec<_> = keyed
        .iter()
        .zip(&expected)
        .filter(|(_, verdict)| !matches!(verdict, Err(VerifyError::InputCount { .. })))
        .map(|(proof, _)| WeightedProof {
            key: proof.key,
            inputs: proof.inputs,
            proof: proof.proof,
            weight: Weight::draw(rng).checked_mul(3).unwrap(),
            multiples: None,
        })
        .collect();
    let one_by_one: Vec<_> = weighted
        .iter()
        .map(|proof| weighted_product(&[*proof]))
        .collect();
    assert_eq!(weighted_product_each(&weighted), one_by_one);
    let sum: PairingOutput<E> = one_by_one.iter().flatten().sum();
    assert_eq!(weighted_product(&weighted), Some(sum));
    assert!(!sum.is_zero());
}

#[test]
fn each_is_as_one_by_one_over_both_curves() {
    compare_with_one_by_one::<Bls12_381>();
    compare_with_one_by_one::<Bls12_377>();
    compare_with_one_by_one::<Bn254>();
}
