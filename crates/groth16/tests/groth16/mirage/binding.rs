//! Binding: a proof holds with its own commitment only, and a commitment with one value.

use ark_ec::{AffineRepr, CurveGroup};
use ark_ff::{One, UniformRand, Zero};
use ark_std::rand::{SeedableRng, rngs::StdRng};
use proofmill_groth16::mirage::{
    self, Commitment, CommitmentError, CommittedR1cs, Opening, PreparedVerifyingKey, VerifyingKey,
};
use proofmill_groth16::{Bls12_381, Bn254, Curve, Proof, ProveError, SnarkCurve, with_curve};
use proofmill_r1cs::{Assignment, R1cs};
use proptest::prelude::*;

use super::support::{Case, SMALL, holds, random_g1, random_g2, sum};
use crate::points::outside_subgroup;

/// w² = y with y public and w committed to: w and −w satisfy it.
fn square_circuit<E: SnarkCurve>() -> (R1cs<E::ScalarField>, [Assignment<E::ScalarField>; 2]) {
    let row = |column| vec![vec![(E::ScalarField::one(), column)]];
    let system = R1cs::from_rows(2, 1, [row(2), row(2), row(1)]).unwrap();
    let w = E::ScalarField::from(7u64);
    let assignments = [w, -w].map(|w| Assignment::new(&[w * w], &[w]));
    (system, assignments)
}

fn check_one_value<E: SnarkCurve>() {
    let rng = &mut StdRng::seed_from_u64(1);
    let (system, [plus, minus]) = square_circuit::<E>();
    let circuit = CommittedR1cs::new(&system, 1).unwrap();
    let key = mirage::setup::<E>(&[circuit], rng).unwrap().remove(0);
    let verifier = PreparedVerifyingKey::from(key.vk());
    let prover = mirage::Prover::new(&key, &system).unwrap();
    let (commitment, opening) = prover.commit(plus.witness(), rng).unwrap();
    let inputs = plus.inputs();

    let (proof, _) = prover.prove(plus.z(), &opening, rng).unwrap();
    assert!(holds(&verifier, inputs, &commitment, &proof));
    // A prover that uses the wrong opening by mistake is refused.
    let refused = prover.prove(minus.z(), &opening, rng).unwrap_err();
    assert!(matches!(refused, ProveError::OtherCommitment), "{refused}");
    // A prover that uses the other root on purpose, with the same randomness, makes a proof for another commitment.
    let other = Opening::new(minus.witness(), opening.randomness());
    let (proof, _) = prover.prove(minus.z(), &other, rng).unwrap();
    assert!(!holds(&verifier, inputs, &commitment, &proof));
    let to_minus = prover.commit_with(minus.witness(), &other).unwrap();
    assert_ne!(to_minus, commitment);
    assert!(holds(&verifier, inputs, &to_minus, &proof));
    // Other randomness does not open it either.
    let other = Opening::new(plus.witness(), E::ScalarField::rand(rng));
    let (proof, _) = prover.prove(plus.z(), &other, rng).unwrap();
    assert!(!holds(&verifier, inputs, &commitment, &proof));
}

#[test]
fn a_commitment_is_opened_to_one_value() {
    for curve in Curve::ALL {
        with_curve!(curve, E => check_one_value::<E>());
    }
}

#[test]
fn commitments_of_other_proofs_and_keys_are_refused() {
    let rng = &mut StdRng::seed_from_u64(2);
    let case = Case::<Bn254>::random(SMALL, rng);
    let prover = case.prover();
    // Commitments to the same values, and to others.
    let (same_values, opening) = prover.commit(case.committed(), rng).unwrap();
    assert!(!case.holds(case.inputs(), &same_values, &case.proof));
    let (proof, _) = prover.prove(case.assignment.z(), &opening, rng).unwrap();
    assert!(case.holds(case.inputs(), &same_values, &proof));
    assert!(!case.holds(case.inputs(), &case.commitment, &proof));
    let others: Vec<_> = case.committed().iter().map(|value| -*value).collect();
    let (other_values, _) = prover.commit(&others, rng).unwrap();
    assert!(!case.holds(case.inputs(), &other_values, &case.proof));

    // Keys for the same circuit: of the same setup, with the same α and β, and of another one.
    let circuit = CommittedR1cs::new(&case.system, SMALL.committed).unwrap();
    let mut keys = mirage::setup::<Bn254>(&[circuit, circuit], rng).unwrap();
    keys.push(mirage::setup(&[circuit], rng).unwrap().remove(0));
    let cases: Vec<_> = keys
        .into_iter()
        .map(|key| Case::with_key(key, case.system.clone(), case.assignment.clone(), rng))
        .collect();
    for (i, one) in cases.iter().enumerate() {
        for (j, two) in cases.iter().enumerate() {
            let same = i == j;
            assert_eq!(one.holds(case.inputs(), &two.commitment, &one.proof), same);
            assert_eq!(one.holds(case.inputs(), &one.commitment, &two.proof), same);
            assert_eq!(one.holds(case.inputs(), &two.commitment, &two.proof), same);
            // With the same randomness too.
            let commitment = two.prover().commit_with(case.committed(), &one.opening);
            assert_eq!(
                one.holds(case.inputs(), &commitment.unwrap(), &one.proof),
                same
            );
        }
    }
}

/// The commitment's point is not bound, as the module documents: from a proof, anyone can make one with another point,
/// to the same values.
#[test]
fn a_proof_has_related_commitments() {
    let rng = &mut StdRng::seed_from_u64(9);
    let case = Case::<Bn254>::random(SMALL, rng);
    let proof = &case.proof;
    let t = <Bn254 as ark_ec::pairing::Pairing>::ScalarField::rand(rng);
    let d = case.commitment.point + proof.a * t;
    let eta = case.key.vk().eta_g2;
    let changed = Proof {
        b: (proof.b + eta * t).into_affine(),
        ..*proof
    };
    let commitment = Commitment {
        point: d.into_affine(),
    };
    assert_ne!(commitment, case.commitment);
    assert!(case.holds(case.inputs(), &commitment, &changed));
    assert!(!case.holds(case.inputs(), &commitment, proof));
    assert!(!case.holds(case.inputs(), &case.commitment, &changed));
}

fn check_tampering<E: SnarkCurve>() {
    let rng = &mut StdRng::seed_from_u64(3);
    let case = Case::<E>::random(SMALL, rng);
    let inputs = case.inputs();
    assert!(case.holds(inputs, &case.commitment, &case.proof));
    for index in 0..inputs.len() {
        let mut wrong = inputs.to_vec();
        wrong[index] += E::ScalarField::one();
        assert!(!case.holds(&wrong, &case.commitment, &case.proof));
    }
    let proof = &case.proof;
    let mut g1 = vec![
        random_g1::<E>(rng),
        AffineRepr::zero(),
        AffineRepr::generator(),
    ];
    g1.extend([proof.a, proof.c, case.commitment.point].map(|point| (-point.into_group()).into()));
    g1.extend([proof.a, proof.c, case.commitment.point]);
    for point in g1 {
        if point != proof.a {
            assert!(!case.holds(inputs, &case.commitment, &Proof { a: point, ..*proof }));
        }
        if point != proof.c {
            assert!(!case.holds(inputs, &case.commitment, &Proof { c: point, ..*proof }));
        }
        if point != case.commitment.point {
            assert!(!case.holds(inputs, &Commitment { point }, proof));
        }
    }
    for b in [
        random_g2::<E>(rng),
        AffineRepr::zero(),
        AffineRepr::generator(),
        (-proof.b.into_group()).into(),
    ] {
        assert!(!case.holds(inputs, &case.commitment, &Proof { b, ..*proof }));
    }
    let swapped = Proof {
        c: case.commitment.point,
        ..*proof
    };
    assert!(!case.holds(inputs, &Commitment { point: proof.c }, &swapped));
}

#[test]
fn every_field_of_proof_and_commitment_counts() {
    for curve in Curve::ALL {
        with_curve!(curve, E => check_tampering::<E>());
    }
}

/// A change of a verifying key.
type Change<E> = fn(&mut VerifyingKey<E>, &mut StdRng);

fn check_tampered_keys<E: SnarkCurve>() {
    let rng = &mut StdRng::seed_from_u64(4);
    let case = Case::<E>::random(SMALL, rng);
    let changes: [Change<E>; 13] = [
        |vk, _| std::mem::swap(&mut vk.plain.gamma_g2, &mut vk.plain.delta_g2),
        |vk, _| std::mem::swap(&mut vk.plain.gamma_g2, &mut vk.eta_g2),
        |vk, _| std::mem::swap(&mut vk.plain.delta_g2, &mut vk.eta_g2),
        |vk, _| std::mem::swap(&mut vk.plain.beta_g2, &mut vk.eta_g2),
        |vk, _| vk.plain.instance.swap(0, 1),
        |vk, _| vk.plain.instance.swap(1, 2),
        |vk, rng| vk.plain.instance[4] = random_g1::<E>(rng),
        |vk, rng| vk.plain.alpha_g1 = random_g1::<E>(rng),
        |vk, rng| vk.plain.beta_g2 = random_g2::<E>(rng),
        |vk, rng| vk.plain.gamma_g2 = random_g2::<E>(rng),
        |vk, rng| vk.plain.delta_g2 = random_g2::<E>(rng),
        |vk, rng| vk.eta_g2 = random_g2::<E>(rng),
        |vk, _| vk.eta_g2 = (-vk.eta_g2.into_group()).into(),
    ];
    for (number, change) in changes.iter().enumerate() {
        let mut vk = case.key.vk();
        change(&mut vk, rng);
        let verifier = PreparedVerifyingKey::from(vk.clone());
        assert_eq!(verifier.vk(), vk);
        let held = holds(&verifier, case.inputs(), &case.commitment, &case.proof);
        assert!(!held, "change {number}");
    }
}

#[test]
fn every_field_of_a_key_counts() {
    for curve in Curve::ALL {
        with_curve!(curve, E => check_tampered_keys::<E>());
    }
}

/// A plain verifier refuses proofs with a commitment, and Mirage's verifier refuses plain proofs.
#[test]
fn plain_proofs_are_no_proofs() {
    let rng = &mut StdRng::seed_from_u64(5);
    let case = Case::<Bn254>::random(SMALL, rng);
    let plain = proofmill_groth16::PreparedVerifyingKey::from(case.key.plain.vk.clone());
    assert!(proofmill_groth16::verify(&plain, case.inputs(), &case.proof).is_err());
    let key = proofmill_groth16::setup::<Bn254>(&case.system, rng).unwrap();
    let (proof, _) = proofmill_groth16::prove(&key, &case.system, &case.assignment, rng).unwrap();
    let nothing = Commitment {
        point: AffineRepr::zero(),
    };
    for commitment in [&case.commitment, &nothing] {
        assert!(!case.holds(case.inputs(), commitment, &proof));
    }
}

#[test]
fn proofs_and_commitments_are_blinded() {
    let rng = &mut StdRng::seed_from_u64(6);
    let case = Case::<Bls12_381>::random(SMALL, rng);
    let prover = case.prover();
    let (again, _) = prover
        .prove(case.assignment.z(), &case.opening, rng)
        .unwrap();
    assert!(case.holds(case.inputs(), &case.commitment, &again));
    let proof = &case.proof;
    assert!(again.a != proof.a && again.b != proof.b && again.c != proof.c);
    let (other, opening) = prover.commit(case.committed(), rng).unwrap();
    assert_ne!(other, case.commitment);
    assert_ne!(opening.randomness(), case.opening.randomness());

    // Without randomness a commitment is the sum over the values; randomness κ adds κ·δ.
    let unblinded = Opening::new(case.committed(), Zero::zero());
    let unblinded = prover.commit_with(case.committed(), &unblinded).unwrap();
    let expected = sum::<Bls12_381>(&case.key.committed, case.committed());
    assert_eq!(unblinded.point, expected.into_affine());
    let blinded = expected + case.key.plain.delta_g1 * case.opening.randomness();
    assert_eq!(case.commitment.point, blinded.into_affine());
    assert!(!format!("{:?}", case.opening).contains(&case.opening.randomness().to_string()));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    /// The sum of two commitments is a commitment to the sums of their values, with the sum of their randomness.
    #[test]
    fn sums_of_commitments_are_commitments_to_sums(seed: u64) {
        let rng = &mut StdRng::seed_from_u64(seed);
        let case = Case::<Bn254>::random(SMALL, rng);
        let prover = case.prover();
        let others: Vec<_> = case.committed().iter().map(|_| UniformRand::rand(rng)).collect();
        let (other, opening) = prover.commit(&others, rng).unwrap();
        let sums: Vec<_> = case.committed().iter().zip(&others).map(|(l, r)| *l + r).collect();
        let opening = Opening::new(&sums, case.opening.randomness() + opening.randomness());
        let of_sums = prover.commit_with(&sums, &opening).unwrap();
        let sum = case.commitment.point + other.point;
        prop_assert_eq!(of_sums.point, sum.into_affine());
    }

    #[test]
    fn commitments_decode_or_are_refused(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
        if let Ok(commitment) = Commitment::<Bn254>::from_bytes(&bytes) {
            prop_assert_eq!(commitment.to_bytes(), &bytes[..]);
        }
        if let Ok(commitment) = Commitment::<Bls12_381>::from_bytes(&bytes) {
            prop_assert_eq!(commitment.to_bytes(), &bytes[..]);
        }
        prop_assert!(Opening::<Bn254>::from_bytes(&bytes).is_err());
    }
}

fn check_encodings<E: SnarkCurve>() {
    let rng = &mut StdRng::seed_from_u64(7);
    let commitments: Vec<_> = (0..11)
        .map(|_| Commitment::<E> {
            point: random_g1::<E>(rng),
        })
        .collect();
    let encoded: Vec<_> = commitments.iter().map(Commitment::to_bytes).collect();
    let slices: Vec<_> = encoded.iter().map(Vec::as_slice).collect();
    let read = Commitment::<E>::from_bytes_each(&slices);
    for (i, commitment) in commitments.iter().enumerate() {
        assert_eq!(read[i], Ok(*commitment));
        let bytes = &encoded[i];
        assert_eq!(bytes.len(), Commitment::<E>::encoded_size());
        assert_eq!(Commitment::from_bytes(bytes), Ok(*commitment));
        for found in [0, bytes.len() - 1] {
            let expected = bytes.len();
            assert_eq!(
                Commitment::<E>::from_bytes(&bytes[..found]),
                Err(CommitmentError::Length { expected, found })
            );
        }
        for byte in 0..bytes.len() {
            let mut wrong = bytes.clone();
            wrong[byte] ^= 1;
            assert_ne!(Commitment::from_bytes(&wrong), Ok(*commitment));
        }
    }
    let opening = Opening::<E>::new(&[E::ScalarField::one()], E::ScalarField::rand(rng));
    let bytes = opening.to_bytes();
    assert_eq!(bytes.len(), Opening::<E>::encoded_size());
    assert_eq!(Opening::from_bytes(&bytes).unwrap(), opening);
    assert!(Opening::<E>::from_bytes(&bytes[1..]).is_err());
    assert!(Opening::<E>::from_bytes(&[&bytes[..], &[0]].concat()).is_err());
    assert!(Opening::<E>::from_bytes(&[0xff; 64]).is_err());
}

#[test]
fn encodings_are_checked() {
    for curve in Curve::ALL {
        with_curve!(curve, E => check_encodings::<E>());
    }
    // On the curve, outside the subgroup.
    let outside = outside_subgroup::<ark_bls12_381::g1::Config>();
    let bytes = Commitment::<Bls12_381> { point: outside }.to_bytes();
    let read = Commitment::<Bls12_381>::from_bytes(&bytes);
    assert_eq!(read, Err(CommitmentError::Point));
}
