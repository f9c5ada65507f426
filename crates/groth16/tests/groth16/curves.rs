//! Each curve through all files: a circuit in a `.r1cs`, a `.zkey` made of it, proofs that arkworks accepts too, and every
//! kind of tampering.

use std::io::Cursor;

use ark_ec::AffineRepr;
use ark_ff::One;
use ark_std::rand::{SeedableRng, rngs::StdRng};
use proofmill_groth16::snarkjs::{
    ZkeyFile, proof_from_json, proof_to_json, setup_zkey, verifying_key_from_json,
    verifying_key_to_json,
};
use proofmill_groth16::{
    Bls12_381, Curve, KeyError, PointCheck, PointGroup, PreparedVerifyingKey, Proof, ProofError,
    ProveError, ProvingKey, ResidentForm, ResidentKey, SnarkCurve, VerifyingKey, setup, verify,
    with_curve,
};
use proofmill_r1cs::iden3::{LabelledR1cs, R1csFile, write_r1cs};

use super::resident::chain;
use super::zkey::ark_accepts;

/// A proof with its key, inputs and verifier.
struct Subject<E: SnarkCurve> {
    key: ResidentKey<E>,
    z: Vec<E::ScalarField>,
    verifier: PreparedVerifyingKey<E>,
    proof: Proof<E>,
}

/// Makes a `.zkey` of a `.r1cs`, reads it back, and proves with it.
fn subject<E: SnarkCurve>(form: ResidentForm) -> Subject<E> {
    let rng = &mut StdRng::seed_from_u64(21);
    let (system, assignment) = chain::<E>(45, rng);
    let plain = LabelledR1cs::plain(system).unwrap();
    let out = Cursor::new(Vec::new());
    let circuit = write_r1cs(out, &plain).unwrap().into_inner();
    let file = R1csFile::parse(&circuit).unwrap();
    assert_eq!(Curve::from(file.header().prime), E::CURVE);
    let out = Cursor::new(Vec::new());
    let bytes = setup_zkey::<E, _>(&file, rng, out, &|_| {}).unwrap();
    let bytes = bytes.into_inner();
    let zkey = ZkeyFile::parse(&bytes).unwrap();
    assert_eq!(zkey.curve(), E::CURVE);
    let zkey = zkey.read::<E>(PointCheck::Full).unwrap();
    let again = zkey.write(Cursor::new(Vec::new())).unwrap().into_inner();
    assert!(again == bytes, "written as it was read");
    zkey.verifying_key().require_secure().unwrap();

    let key = ResidentKey::from_zkey(zkey, form).unwrap();
    let z = assignment.z().to_vec();
    let (proof, _) = key.prover().prove(&z, rng).unwrap();
    let verifier = PreparedVerifyingKey::from(key.vk().clone());
    Subject {
        key,
        z,
        verifier,
        proof,
    }
}

fn check_tampering<E: SnarkCurve>() {
    let it = subject::<E>(ResidentForm::Plain);
    let inputs = it.z[1..it.key.vk().instance.len()].to_vec();
    let verdict = |inputs: &[E::ScalarField], proof: &Proof<E>| {
        let verdict = verify(&it.verifier, inputs, proof).is_ok();
        assert_eq!(verdict, ark_accepts(it.key.vk(), inputs, proof));
        verdict
    };
    assert!(verdict(&inputs, &it.proof));
    for index in 0..inputs.len() {
        let mut wrong = inputs.clone();
        wrong[index] += E::ScalarField::one();
        assert!(!verdict(&wrong, &it.proof));
    }
    let Proof { a, b, c } = it.proof;
    let (g1, g2) = (E::G1Affine::generator(), E::G2Affine::generator());
    let wrong = [
        Proof { a: c, b, c: a },
        Proof {
            a: (-a.into_group()).into(),
            b,
            c,
        },
        Proof {
            a: (a + g1).into(),
            b,
            c,
        },
        Proof {
            a,
            b: (b + g2).into(),
            c,
        },
        Proof {
            a,
            b,
            c: (c + g1).into(),
        },
        Proof {
            a: E::G1Affine::zero(),
            b,
            c,
        },
        Proof {
            a,
            b: E::G2Affine::zero(),
            c: E::G1Affine::zero(),
        },
    ];
    for proof in &wrong {
        assert!(!verdict(&inputs, proof));
    }
    // A witness that satisfies all constraints but one: a `.zkey` has no C, so that a proof is made, and is false.
    let mut z = it.z.clone();
    *z.last_mut().unwrap() += E::ScalarField::one();
    let (proof, _) = it
        .key
        .prover()
        .prove(&z, &mut StdRng::seed_from_u64(5))
        .unwrap();
    assert!(!verdict(&inputs, &proof));
    assert!(matches!(
        it.key.prover().evaluate(&z[1..]),
        Err(ProveError::Assignment { .. })
    ));
}

/// Any changed bit of an encoded proof gives bytes that are refused, or another proof, which is false.
fn check_encodings<E: SnarkCurve>() {
    let it = subject::<E>(ResidentForm::Prepared { memory_limit: 0 });
    let inputs = &it.z[1..it.key.vk().instance.len()];
    let bytes = it.proof.to_bytes();
    assert_eq!(bytes.len(), Proof::<E>::encoded_size());
    assert_eq!(Proof::<E>::from_bytes(&bytes), Ok(it.proof));
    for bit in (0..8 * bytes.len())
        .step_by(7)
        .chain(8 * (bytes.len() - 1)..8 * bytes.len())
    {
        let mut wrong = bytes.clone();
        wrong[bit / 8] ^= 1 << (bit % 8);
        if let Ok(proof) = Proof::<E>::from_bytes(&wrong) {
            assert_eq!(proof.to_bytes(), wrong);
            assert!(verify(&it.verifier, inputs, &proof).is_err(), "bit {bit}");
        }
    }
    assert!(Proof::<E>::from_bytes(&bytes[1..]).is_err());
    let outside = outside_subgroup::<E::G2Affine>();
    let wrong = Proof::<E> {
        b: outside,
        ..it.proof
    };
    assert_eq!(
        Proof::<E>::from_bytes(&wrong.to_bytes()),
        Err(ProofError::Point { element: 'B' })
    );

    let text = proof_to_json(&it.proof);
    assert_eq!(proof_from_json::<E>(text.as_bytes()).unwrap(), it.proof);
    let text = verifying_key_to_json(it.key.vk());
    let read = verifying_key_from_json::<E>(text.as_bytes()).unwrap();
    assert_eq!(&read, it.key.vk());
}

/// A point of the curve outside the subgroup of prime order.
fn outside_subgroup<A: PointGroup>() -> A {
    (1u64..)
        .filter_map(|x| A::of_x(x.into()))
        .find(|point| !point.in_subgroup())
        .unwrap()
}

#[test]
fn every_curve_refuses_what_was_tampered_with() {
    for curve in Curve::ALL {
        with_curve!(curve, E => check_tampering::<E>());
    }
}

#[test]
fn every_curve_decodes_its_own_proofs_only() {
    for curve in Curve::ALL {
        with_curve!(curve, E => check_encodings::<E>());
    }
}

/// Both BLS12 curves have points of 48 and 96 bytes: a file of one is none of the other.
#[test]
fn the_two_bls12_curves_are_told_apart() {
    type E = proofmill_groth16::Bls12_377;
    let it = subject::<E>(ResidentForm::Plain);
    assert!(Proof::<Bls12_381>::from_bytes(&it.proof.to_bytes()).is_err());
    let json = proof_to_json(&it.proof);
    assert!(json.contains("\"bls12377\""), "{json}");
    assert!(proof_from_json::<Bls12_381>(json.as_bytes()).is_err());
    let json = verifying_key_to_json(it.key.vk());
    assert!(verifying_key_from_json::<Bls12_381>(json.as_bytes()).is_err());

    let rng = &mut StdRng::seed_from_u64(3);
    let (system, _) = chain::<E>(3, rng);
    let key: ProvingKey<E> = setup(&system, rng).unwrap();
    let error = ProvingKey::<Bls12_381>::from_bytes(&key.to_bytes(), PointCheck::Full).unwrap_err();
    let expected = "bls12-381";
    assert!(
        matches!(error, KeyError::Curve { expected: found } if found == expected),
        "{error}"
    );
    let bytes = key.vk.to_bytes();
    assert_eq!(VerifyingKey::<E>::from_bytes(&bytes).unwrap(), key.vk);
    assert!(VerifyingKey::<Bls12_381>::from_bytes(&bytes).is_err());
}
