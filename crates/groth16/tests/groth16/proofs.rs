//! Proofs of a small circuit: completeness, soundness against tampering, and agreement with
//! arkworks' own verifier.

use ark_bls12_381::{Bls12_381, Fr, G1Affine, G1Projective, G2Affine, G2Projective};
use ark_ec::{AffineRepr, CurveGroup};
use ark_ff::{One, UniformRand, Zero};
use ark_serialize::CanonicalDeserialize;
use ark_snark::SNARK;
use ark_std::rand::{Rng, RngCore, SeedableRng, rngs::StdRng};
use proofmill_groth16::{
    Bls12_377, Bn254, MultiplesCache, PreparedVerifyingKey, Proof, ProofError, ProveError,
    ProvingKey, SnarkCurve, VerifyError, Weight, WeightedProof, prove, setup, verify, verify_batch,
    weighted_product,
};
use proofmill_r1cs::{Assignment, R1cs};
use proptest::prelude::*;

use crate::points::outside_subgroup;

type Row = Vec<(Fr, usize)>;

/// A random satisfiable system: witness variable k is the product of two random combinations of
/// the variables before it, minus a third. Variable 0 is one, then the public inputs.
fn random_system(rng: &mut StdRng, inputs: usize, products: usize) -> (R1cs<Fr>, Assignment<Fr>) {
    let mut z: Vec<Fr> = vec![Fr::one()];
    z.extend((0..inputs).map(|_| {
        if rng.gen_bool(0.5) {
            Fr::one()
        } else {
            Fr::rand(rng)
        }
    }));
    z.push(Fr::rand(rng));
    let mut rows: [Vec<Row>; 3] = Default::default();
    let combination = |rng: &mut StdRng, variables: usize| -> Row {
        (0..rng.gen_range(0..4))
            .map(|_| {
                (
                    Fr::from(rng.gen_range(-3i64..4)),
                    rng.gen_range(0..variables),
                )
            })
            .collect()
    };
    let eval = |row: &Row, z: &[Fr]| -> Fr { row.iter().map(|(c, i)| *c * z[*i]).sum() };
    for _ in 0..products {
        let [a, b, mut c] = [0; 3].map(|_| combination(rng, z.len()));
        c.push((Fr::one(), z.len()));
        z.push(eval(&a, &z) * eval(&b, &z) - eval(&c[..c.len() - 1].to_vec(), &z));
        for (matrix, row) in rows.iter_mut().zip([a, b, c]) {
            matrix.push(row);
        }
    }
    let system = R1cs::from_rows(1 + inputs, z.len() - 1 - inputs, rows).unwrap();
    let assignment = Assignment::new(&z[1..=inputs], &z[1 + inputs..]);
    assert_eq!(system.is_satisfied(assignment.z()), Ok(()));
    (system, assignment)
}

struct Case {
    system: R1cs<Fr>,
    assignment: Assignment<Fr>,
    key: ProvingKey<Bls12_381>,
    verifier: PreparedVerifyingKey<Bls12_381>,
    proof: Proof<Bls12_381>,
}

fn case(seed: u64, inputs: usize, products: usize) -> Case {
    let rng = &mut StdRng::seed_from_u64(seed);
    let (system, assignment) = random_system(rng, inputs, products);
    let key = setup::<Bls12_381>(&system, rng).unwrap();
    let (proof, _) = prove(&key, &system, &assignment, rng).unwrap();
    let verifier = key.vk.clone().into();
    Case {
        system,
        assignment,
        key,
        verifier,
        proof,
    }
}

/// Whether arkworks' verifier accepts a proof under the case's key.
fn ark_accepts(case: &Case, inputs: &[Fr], proof: &Proof<Bls12_381>) -> bool {
    let vk = case.key.vk.clone();
    let vk = ark_groth16::VerifyingKey::<Bls12_381> {
        alpha_g1: vk.alpha_g1,
        beta_g2: vk.beta_g2,
        gamma_g2: vk.gamma_g2,
        delta_g2: vk.delta_g2,
        gamma_abc_g1: vk.instance,
    };
    let proof = ark_groth16::Proof {
        a: proof.a,
        b: proof.b,
        c: proof.c,
    };
    ark_groth16::Groth16::<Bls12_381>::verify(&vk, inputs, &proof).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn true_statements_are_provable(seed: u64, inputs in 0usize..5, products in 0usize..40) {
        let case = case(seed, inputs, products);
        prop_assert_eq!(verify(&case.verifier, case.assignment.inputs(), &case.proof), Ok(()));
        prop_assert!(ark_accepts(&case, case.assignment.inputs(), &case.proof));
    }

    #[test]
    fn false_statements_are_not(seed: u64, products in 1usize..30) {
        let case = case(seed, 2, products);
        let mut witness = case.assignment.witness().to_vec();
        let rng = &mut StdRng::seed_from_u64(seed);
        // The last product's value occurs nowhere else, and always matters.
        *witness.last_mut().unwrap() += Fr::from(rng.gen_range(1u64..100));
        let wrong = Assignment::new(case.assignment.inputs(), &witness);
        let error = prove(&case.key, &case.system, &wrong, rng).unwrap_err();
        prop_assert!(matches!(error, ProveError::Unsatisfied(at) if at.row == products - 1));
    }

    #[test]
    fn proofs_decode_or_are_refused(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        prop_assert!(Proof::<Bls12_381>::from_bytes(&bytes).is_err());
    }
}

#[test]
fn every_tampering_is_refused() {
    let case = case(7, 4, 20);
    let inputs = case.assignment.inputs().to_vec();
    let refused = |inputs: &[Fr], proof: &Proof<Bls12_381>| {
        assert!(!ark_accepts(&case, inputs, proof));
        assert_eq!(
            verify(&case.verifier, inputs, proof),
            Err(VerifyError::Invalid)
        );
    };
    for index in 0..inputs.len() {
        for change in [Fr::one(), -Fr::one(), Fr::from(1u64 << 32)] {
            let mut wrong = inputs.clone();
            wrong[index] += change;
            refused(&wrong, &case.proof);
        }
    }
    let rng = &mut StdRng::seed_from_u64(8);
    let (g1, g2) = (
        G1Projective::rand(rng).into_affine(),
        G2Projective::rand(rng).into_affine(),
    );
    for point in [
        g1,
        G1Affine::zero(),
        G1Affine::generator(),
        (-case.proof.a.into_group()).into(),
    ] {
        refused(
            &inputs,
            &Proof {
                a: point,
                ..case.proof
            },
        );
        refused(
            &inputs,
            &Proof {
                c: point,
                ..case.proof
            },
        );
    }
    for point in [
        g2,
        G2Affine::zero(),
        G2Affine::generator(),
        (-case.proof.b.into_group()).into(),
    ] {
        refused(
            &inputs,
            &Proof {
                b: point,
                ..case.proof
            },
        );
    }
    refused(
        &inputs,
        &Proof {
            a: case.proof.c,
            c: case.proof.a,
            ..case.proof
        },
    );

    for count in [0, 3, 5] {
        let mut wrong = inputs.clone();
        wrong.resize(count, Fr::zero());
        let expected = VerifyError::InputCount {
            expected: 4,
            found: count,
        };
        assert_eq!(verify(&case.verifier, &wrong, &case.proof), Err(expected));
    }
}

/// Two proofs of one statement differ in every element, and both verify.
#[test]
fn proofs_are_blinded() {
    let case = case(9, 2, 10);
    let rng = &mut StdRng::seed_from_u64(10);
    let (other, timings) = prove(&case.key, &case.system, &case.assignment, rng).unwrap();
    assert_eq!(
        verify(&case.verifier, case.assignment.inputs(), &other),
        Ok(())
    );
    assert!(other.a != case.proof.a && other.b != case.proof.b && other.c != case.proof.c);
    assert!(timings.total() > std::time::Duration::ZERO);
}

#[test]
fn keys_of_another_circuit_are_refused() {
    let one = case(11, 2, 10);
    let two = case(12, 2, 11);
    let rng = &mut StdRng::seed_from_u64(13);
    let error = prove(&one.key, &two.system, &two.assignment, rng).unwrap_err();
    assert!(matches!(error, ProveError::WrongKey), "{error}");
    let error = prove(&one.key, &one.system, &two.assignment, rng).unwrap_err();
    assert!(matches!(error, ProveError::Assignment(_)), "{error}");
    assert!(verify(&two.verifier, one.assignment.inputs(), &one.proof).is_err());
}

#[test]
fn a_batch_isolates_what_is_wrong() {
    let case = case(14, 3, 12);
    let rng = &mut StdRng::seed_from_u64(15);
    let inputs = case.assignment.inputs();
    let good: Vec<Proof<Bls12_381>> = (0..9)
        .map(|_| {
            prove(&case.key, &case.system, &case.assignment, rng)
                .unwrap()
                .0
        })
        .collect();
    let wrong_inputs = [inputs[0] + Fr::one(), inputs[1], inputs[2]];
    for bad in [
        vec![],
        vec![0],
        vec![8],
        vec![3, 4],
        vec![0, 2, 4, 6, 8],
        (0..9).collect(),
    ] {
        let mut proofs = good.clone();
        let mut batch_inputs = [inputs; 9];
        for (nth, index) in bad.iter().enumerate() {
            match nth % 4 {
                0 => proofs[*index].c = G1Affine::generator(),
                1 => batch_inputs[*index] = &wrong_inputs,
                2 => batch_inputs[*index] = &inputs[..2],
                _ => proofs[*index].b = G2Affine::zero(),
            }
        }
        let batch: Vec<(&[Fr], &Proof<Bls12_381>)> =
            batch_inputs.iter().copied().zip(&proofs).collect();
        let verdicts = verify_batch(&case.verifier, &batch, rng);
        for (index, verdict) in verdicts.iter().enumerate() {
            assert_eq!(
                verdict.is_err(),
                bad.contains(&index),
                "{bad:?}: {index}: {verdict:?}"
            );
            assert_eq!(
                *verdict,
                verify(&case.verifier, batch[index].0, batch[index].1)
            );
        }
    }
    assert!(verify_batch(&case.verifier, &[], rng).is_empty());
}

/// Errors that cancel in the plain sum do not cancel in the weighted one.
#[test]
fn errors_in_a_batch_do_not_cancel() {
    let case = case(16, 1, 5);
    let rng = &mut StdRng::seed_from_u64(17);
    let inputs = case.assignment.inputs();
    let (mut one, mut two) = (case.proof, case.proof);
    let shift = G1Projective::rand(rng);
    one.c = (one.c + shift).into_affine();
    two.c = (two.c.into_group() - shift).into_affine();
    let verdicts = verify_batch(&case.verifier, &[(inputs, &one), (inputs, &two)], rng);
    assert_eq!(verdicts, [Err(VerifyError::Invalid); 2]);
}

/// The product of one proof is computed in another way than that of several.
#[test]
fn a_weighted_product_is_that_of_its_parts() {
    let case = case(16, 1, 5);
    let rng = &mut StdRng::seed_from_u64(23);
    let inputs = case.assignment.inputs();
    let mut forged = case.proof;
    forged.c = G1Projective::rand(rng).into_affine();
    let weighted = |proof, factor, rng: &mut StdRng| WeightedProof {
        key: &case.verifier,
        inputs,
        proof,
        weight: Weight::draw(rng).checked_mul(factor).unwrap(),
        multiples: None,
    };
    for factor in [1, 3, u64::MAX] {
        let parts = [
            weighted(&case.proof, factor, rng),
            weighted(&forged, factor, rng),
        ];
        let [good, bad] = parts.map(|part| weighted_product(&[part]).unwrap());
        assert!(good.is_zero() && !bad.is_zero());
        assert_eq!(weighted_product(&parts).unwrap(), good + bad);
    }
}

/// Multiples that a product caches are used again under multiples of the same weight, but not under another weight or
/// for another proof.
#[test]
fn kept_multiples_are_of_one_proof_under_one_weight() {
    let case = case(16, 1, 5);
    let rng = &mut StdRng::seed_from_u64(24);
    let mut forged = case.proof;
    forged.c = G1Projective::rand(rng).into_affine();
    let (caches, weights) = (
        [MultiplesCache::new(), MultiplesCache::new()],
        [(); 2].map(|()| Weight::draw(rng)),
    );
    let other = Weight::draw(rng);
    let product = |proofs: [&Proof<Bls12_381>; 2], weights: [Weight; 2], use_caches: bool| {
        let [first, second] = [0, 1].map(|i| WeightedProof {
            key: &case.verifier,
            inputs: case.assignment.inputs(),
            proof: proofs[i],
            weight: weights[i],
            multiples: use_caches.then_some(&caches[i]),
        });
        weighted_product(&[first, second]).unwrap()
    };
    let pair = [&case.proof, &forged];
    let times = |factors: [u64; 2]| [0, 1].map(|i| weights[i].checked_mul(factors[i]).unwrap());
    for (proofs, weights) in [
        (pair, times([1, 1])),
        (pair, times([1, 1])),
        (pair, times([0, 63])),
        (pair, times([7, u64::MAX])),
        (pair, [weights[0], other]),
        ([&forged, &case.proof], times([2, 3])),
        ([&forged, &forged], times([2, 3])),
    ] {
        let expected = product(proofs, weights, false);
        assert!(!expected.is_zero());
        assert_eq!(product(proofs, weights, true), expected);
    }
}

/// The proof that arkworks decodes; `None` if it refuses the bytes or they are not the canonical encoding.
fn read_by_arkworks<E: SnarkCurve>(bytes: &[u8]) -> Option<Proof<E>> {
    let rest = &mut &bytes[..];
    let proof = Proof {
        a: E::G1Affine::deserialize_compressed(&mut *rest).ok()?,
        b: E::G2Affine::deserialize_compressed(&mut *rest).ok()?,
        c: E::G1Affine::deserialize_compressed(&mut *rest).ok()?,
    };
    (proof.to_bytes() == bytes).then_some(proof)
}

/// Compares the decoded proofs with those of arkworks: for valid encodings, points at infinity, changed bits and bytes,
/// and wrong lengths. More than `valid` of them are valid.
fn assert_decoded_as_by_arkworks<E: SnarkCurve>(valid: usize) {
    let rng = &mut StdRng::seed_from_u64(31);
    let mut encodings: Vec<Vec<u8>> = Vec::new();
    for number in 0..120 {
        let is_infinity = |rng: &mut StdRng| rng.gen_range(0..8) == 0;
        let mut proof = Proof::<E> {
            a: E::G1::rand(rng).into_affine(),
            b: E::G2::rand(rng).into_affine(),
            c: E::G1::rand(rng).into_affine(),
        };
        if is_infinity(rng) {
            proof.a = E::G1Affine::zero();
        }
        if is_infinity(rng) {
            proof.b = E::G2Affine::zero();
        }
        let mut bytes = proof.to_bytes();
        let size = bytes.len();
        match number % 4 {
            0 => {}
            // Flags lie in the first or the last byte of a point.
            1 => {
                bytes[[0, size / 4 - 1, size / 4, 3 * size / 4 - 1, size - 1][number % 5]] ^=
                    1 << rng.gen_range(0..8)
            }
            2 => bytes[rng.gen_range(0..size)] = rng.r#gen(),
            _ => rng.fill_bytes(&mut bytes[size / 4..3 * size / 4]),
        }
        if number % 17 == 0 {
            bytes.pop();
        }
        encodings.push(bytes);
    }
    let expected: Vec<_> = encodings
        .iter()
        .map(|bytes| read_by_arkworks::<E>(bytes))
        .collect();
    assert!(expected.iter().flatten().count() > valid && expected.contains(&None));
    let references: Vec<_> = encodings.iter().map(Vec::as_slice).collect();
    for size in [1, 5, 120] {
        let found: Vec<_> = references
            .chunks(size)
            .flat_map(Proof::<E>::from_bytes_each)
            .collect();
        for ((found, expected), bytes) in found.iter().zip(&expected).zip(&references) {
            assert_eq!(found.as_ref().ok(), expected.as_ref(), "{bytes:?}");
        }
        assert_eq!(found.len(), expected.len());
    }
}

#[test]
fn many_proofs_are_decoded_as_arkworks_decodes_each() {
    assert_decoded_as_by_arkworks::<Bn254>(30);
    assert_decoded_as_by_arkworks::<Bls12_381>(30);
    // 28 are unchanged, and fewer of the others than over the other curves happen to be valid.
    assert_decoded_as_by_arkworks::<Bls12_377>(27);
}

#[test]
fn a_proof_has_one_encoding() {
    let case = case(18, 1, 4);
    let bytes = case.proof.to_bytes();
    assert_eq!(bytes.len(), 192);
    assert_eq!(Proof::from_bytes(&bytes), Ok(case.proof));
    for length in (0..192).chain([193]) {
        let mut wrong = bytes.clone();
        wrong.resize(length, 0);
        let expected = ProofError::Length {
            expected: 192,
            found: length,
        };
        assert_eq!(Proof::<Bls12_381>::from_bytes(&wrong), Err(expected));
    }
    // A changed bit gives another proof, which does not verify, or none at all.
    for bit in 0..8 * bytes.len() {
        let mut wrong = bytes.clone();
        wrong[bit / 8] ^= 1 << (bit % 8);
        if let Ok(proof) = Proof::from_bytes(&wrong) {
            assert_eq!(proof.to_bytes(), wrong);
            assert!(verify(&case.verifier, case.assignment.inputs(), &proof).is_err());
        }
    }
    // A point of the curve outside the subgroup, and x beyond the modulus.
    let outside = outside_subgroup::<ark_bls12_381::g1::Config>();
    let wrong = Proof::<Bls12_381> {
        a: outside,
        ..case.proof
    }
    .to_bytes();
    assert_eq!(
        Proof::<Bls12_381>::from_bytes(&wrong),
        Err(ProofError::Point { element: 'A' })
    );
    let mut wrong = bytes;
    wrong[144..].fill(0xff);
    assert_eq!(
        Proof::<Bls12_381>::from_bytes(&wrong),
        Err(ProofError::Point { element: 'C' })
    );
}
