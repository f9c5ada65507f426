//! Verdicts on real proofs, valid ones and tampered ones, beside each kind's own verification.

use ark_ff::{BigInteger, FftField, One, PrimeField};
use ark_std::rand::rngs::StdRng;
use ark_std::rand::seq::SliceRandom;
use ark_std::rand::{Rng, SeedableRng};
use c_kzg::{Blob, ethereum_kzg_settings};
use proofmill_groth16::{Bls12_377, Bls12_381, Bn254, SnarkCurve};
use proofmill_ipa::{Opening, Scalar, Srs};
use proofmill_verifier::kinds::{GrumpkinIpa, Kzg};
use proofmill_verifier::{KeyError, Kinds, Options, Request, Status};

use super::support::{Circuit, Running, id, verdicts};

/// Sizes of batches that are tried.
const SIZES: [usize; 6] = [1, 2, 5, 16, 33, 64];

/// The numbers of false proofs to test in a batch of `size`.
fn shares(size: usize) -> Vec<usize> {
    let mut shares = vec![0, 1, 2.min(size), size / 2, size];
    shares.dedup();
    shares
}

/// A random choice of `bad` of `size` proofs to make false: true at their places.
fn places(rng: &mut StdRng, size: usize, bad: usize) -> Vec<bool> {
    let mut places: Vec<_> = (0..size).map(|place| place < bad).collect();
    places.shuffle(rng);
    places
}

#[tokio::test(flavor = "multi_thread")]
async fn groth16_over_bn254() {
    groth16::<Bn254>("groth16-bn254").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn groth16_over_bls12_381() {
    groth16::<Bls12_381>("groth16-bls12-381").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn groth16_over_bls12_377() {
    groth16::<Bls12_377>("groth16-bls12-377").await;
}

/// Batches under three keys, in both encodings, with random ones of them tampered.
async fn groth16<E: SnarkCurve>(kind: &str) {
    let rng = &mut StdRng::seed_from_u64(7);
    let mut circuits: Vec<_> = (1..4).map(|inputs| Circuit::<E>::new(inputs, 5)).collect();
    let proofs: Vec<Vec<_>> = circuits
        .iter_mut()
        .map(|circuit| (0..4).map(|_| circuit.prove()).collect())
        .collect();
    for size in SIZES {
        for bad in shares(size) {
            // Everyone's first batch: nothing is known of its source.
            let running = Running::of(Options::of(Kinds::all(None)));
            let mut keys = Vec::new();
            for circuit in &circuits {
                let key = if keys.is_empty() {
                    circuit.key_json()
                } else {
                    circuit.key_bytes()
                };
                keys.push(running.handle.add_key("a", kind, key).await.expect("a key"));
            }
            let is_bad = places(rng, size, bad);
            let requests = is_bad.iter().enumerate().map(|(number, is_bad)| {
                let circuit = rng.gen_range(0..circuits.len());
                let proven = proofs[circuit].choose(rng).expect("some");
                let mut statement = proven.inputs.clone();
                if *is_bad {
                    *statement.first_mut().expect("an input") += E::ScalarField::one();
                }
                let claimed = super::support::Proven::<E> {
                    inputs: statement,
                    proof: proven.proof,
                };
                match rng.gen_bool(0.5) {
                    true => claimed.json("a", &id(number), kind, keys[circuit]),
                    false => claimed.compact("a", &id(number), kind, keys[circuit]),
                }
            });
            let requests = requests.collect();
            let verdicts = verdicts(&running.handle, requests).await;
            for (verdict, is_bad) in verdicts.iter().zip(&is_bad) {
                let named = matches!(verdict.status, Status::Invalid(_));
                assert_eq!(named, *is_bad, "{size} proofs, {bad} bad: {verdict:?}");
                assert!(named || verdict.status == Status::Valid);
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_groth16_proof_with_a_tampered_field_is_refused() {
    let mut circuit = Circuit::<Bn254>::new(2, 3);
    let (proven, other) = (circuit.prove(), circuit.prove());
    let running = Running::of(Options::of(Kinds::all(None)));
    let kind = "groth16-bn254";
    let key = running
        .handle
        .add_key("a", kind, circuit.key_json())
        .await
        .unwrap();
    let mut tampered = Vec::new();
    for field in 0..5 {
        let mut claimed = super::support::Proven::<Bn254> {
            inputs: proven.inputs.clone(),
            proof: proven.proof,
        };
        match field {
            0 => claimed.proof.a = other.proof.a,
            1 => claimed.proof.b = other.proof.b,
            2 => claimed.proof.c = other.proof.c,
            input => claimed.inputs[input - 3] = other.inputs[input - 3],
        }
        tampered.push(claimed.compact("a", &id(field), kind, key));
    }
    let good = proven.compact("b", "good", kind, key);
    assert_eq!(
        running.handle.add_key("b", kind, circuit.key_json()).await,
        Ok(key)
    );
    let mut requests = tampered.clone();
    requests.push(good.clone());
    let all = verdicts(&running.handle, requests).await;
    for verdict in &all[..5] {
        assert!(matches!(verdict.status, Status::Invalid(_)), "{verdict:?}");
    }
    assert_eq!(all[5].status, Status::Valid);
    // Every byte, too: nothing panics, nothing is valid.
    let mut bytes = Vec::new();
    for place in 0..good.proof.len() {
        let mut proof = good.proof.to_vec();
        proof[place] ^= 1 << (place % 8);
        bytes.push(Request {
            id: format!("byte {place}").into(),
            proof: proof.into(),
            ..good.clone()
        });
    }
    for verdict in verdicts(&running.handle, bytes).await {
        assert!(matches!(verdict.status, Status::Invalid(_)), "{verdict:?}");
    }
}

/// Openings under a small SRS, in batches with tampered ones and ones with a forged G₀.
#[tokio::test(flavor = "multi_thread")]
async fn grumpkin_ipa() {
    let rng = &mut StdRng::seed_from_u64(11);
    let srs = Srs::derive(6);
    let openings: Vec<_> = (0..8_u64)
        .map(|number| {
            let coefficients: Vec<_> = (number..).take(64).map(Scalar::from).collect();
            Opening::prove(&srs, &coefficients, Scalar::from(number + 3)).unwrap()
        })
        .collect();
    for size in SIZES {
        for bad in shares(size) {
            let running = Running::of(Options::of(Kinds::none().with(GrumpkinIpa::new(&srs))));
            let is_bad = places(rng, size, bad);
            let requests = is_bad.iter().enumerate().map(|(number, is_bad)| {
                let mut opening = openings.choose(rng).unwrap().clone();
                let other = openings.choose(rng).unwrap();
                match rng.gen_range(0..4) {
                    _ if !is_bad => {}
                    0 => opening.claim.value += Scalar::one(),
                    1 => opening.folded_coefficient += Scalar::one(),
                    2 => opening.rounds[3].left = other.claim.commitment,
                    _ => opening.folded_base = other.claim.commitment,
                }
                Request::new("a", &id(number), "grumpkin-ipa", opening.to_compact())
            });
            let requests = requests.collect();
            let verdicts = verdicts(&running.handle, requests).await;
            for (verdict, is_bad) in verdicts.iter().zip(&is_bad) {
                let named = matches!(verdict.status, Status::Invalid(_));
                assert_eq!(named, *is_bad, "{size} openings, {bad} bad: {verdict:?}");
            }
        }
    }
}

/// Bundles and a small circuit's proof, with other statements and with the proof's last numbers changed.
#[tokio::test(flavor = "multi_thread")]
async fn halo2_and_orchard() {
    use proofmill_halo2::orchard::Bundle;
    use proofmill_halo2::{Scalar, encode_instances};
    const KEY: &[u8] = include_bytes!("../../../halo2/tests/data/small.key");
    const PROOF: &[u8] = include_bytes!("../../../halo2/tests/data/small.proof");
    const BUNDLES: [&[u8]; 3] = [
        include_bytes!("../../../halo2/tests/data/orchard-1.bundle"),
        include_bytes!("../../../halo2/tests/data/orchard-3.bundle"),
        include_bytes!("../../../halo2/tests/data/orchard-4.bundle"),
    ];
    let rng = &mut StdRng::seed_from_u64(17);
    // The least significant byte of one of the opening's two numbers.
    let bend = |proof: &mut Vec<u8>, number: usize| {
        let place = proof.len() - 32 * number;
        proof[place] ^= 1;
    };
    for size in SIZES {
        for bad in shares(size) {
            let running = Running::of(Options::of(Kinds::all(None)));
            let key = running.handle.add_key("a", "halo2", KEY.into()).await;
            let key = key.expect("a key");
            let is_bad = places(rng, size, bad);
            let requests = is_bad.iter().enumerate().map(|(number, is_bad)| {
                let change = if *is_bad { rng.gen_range(1..5) } else { 0 };
                if rng.gen_bool(0.3) {
                    let (mut proof, mut product) = (PROOF.to_vec(), 360);
                    match change {
                        0 => {}
                        1 | 2 => bend(&mut proof, change),
                        _ => product += 3,
                    }
                    let inputs = [3_u64, product].map(Scalar::from).to_vec();
                    let statement = encode_instances(&[vec![inputs]]);
                    return Request::new("a", &id(number), "halo2", proof).under(key, statement);
                }
                let mut bundle = Bundle::decode(BUNDLES.choose(rng).unwrap()).unwrap();
                match change {
                    0 => {}
                    1 | 2 => bend(&mut bundle.proof, change),
                    3 => bundle.flags.outputs_enabled ^= true,
                    _ => bundle.actions[1].nullifier[0] ^= 1,
                }
                Request::new("a", &id(number), "orchard", bundle.encode())
            });
            let requests = requests.collect();
            let verdicts = verdicts(&running.handle, requests).await;
            for (verdict, is_bad) in verdicts.iter().zip(&is_bad) {
                let named = matches!(verdict.status, Status::Invalid(_));
                assert_eq!(named, *is_bad, "{size} proofs, {bad} bad: {verdict:?}");
                assert!(named || verdict.status == Status::Valid, "{verdict:?}");
            }
        }
    }
}

/// Keys of halo2: a line break behind a key is ignored; another text is not a key, and circuits must not have
/// more rows than there are points.
#[tokio::test(flavor = "multi_thread")]
async fn keys_of_halo2_are_pinned_texts() {
    const KEY: &str = include_str!("../../../halo2/tests/data/small.key");
    let running = Running::of(Options::of(Kinds::all(None)));
    let add = |text: String| running.handle.add_key("a", "halo2", text.into());
    assert!(add(format!("{KEY}\n")).await.is_ok());
    let root = |log_rows: u32| {
        let root = proofmill_halo2::Scalar::get_root_of_unity(1 << log_rows).unwrap();
        let digits = root.into_bigint().to_bytes_be();
        digits
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect::<String>()
    };
    let larger = KEY.replacen("k: 6", "k: 12", 1);
    let larger = larger.replacen(&root(6), &root(12), 1);
    for (wrong, reason) in [(String::from("no key"), "byte 0"), (larger, "2^12 rows")] {
        let refused = add(wrong).await.unwrap_err();
        assert!(matches!(refused, KeyError::Unusable(_)), "{refused}");
        assert!(refused.to_string().contains(reason), "{refused}");
    }
    let whole = running.handle.add_key("a", "orchard", KEY.into()).await;
    assert_eq!(whole, Err(KeyError::NoKeys("orchard".into())));
}

/// Cells and a blob, made by c-kzg: batches of both, with a bent byte or another cell's proof.
#[tokio::test(flavor = "multi_thread")]
async fn kzg() {
    use proofmill_kzg::{BLOB_BYTES, Request as Encoded};
    let rng = &mut StdRng::seed_from_u64(13);
    let settings = ethereum_kzg_settings(0);
    let mut bytes = vec![0; BLOB_BYTES];
    // The first byte of an element stays zero, so that it is below the modulus.
    bytes
        .chunks_mut(32)
        .for_each(|element| rng.fill(&mut element[1..]));
    let blob = Blob::from_bytes(&bytes).unwrap();
    let commitment = settings.blob_to_kzg_commitment(&blob).unwrap();
    let proof = settings
        .compute_blob_kzg_proof(&blob, &commitment.to_bytes())
        .unwrap();
    let (cells, proofs) = settings.compute_cells_and_kzg_proofs(&blob).unwrap();
    let encode = |index: usize, proof: usize, bent: Option<usize>| {
        let mut cell = cells[index].to_bytes();
        if let Some(place) = bent {
            cell[place] ^= 1;
        }
        Encoded::Cell {
            index: index as u64,
            commitment: &commitment,
            proof: &proofs[proof],
            cell: &cell,
        }
        .encode()
    };
    let whole = Encoded::Blob {
        commitment: &commitment,
        proof: &proof,
        blob: &blob,
    };
    for size in SIZES {
        for bad in shares(size) {
            let running = Running::of(Options::of(Kinds::none().with(Kzg::new())));
            let is_bad = places(rng, size, bad);
            let requests = is_bad.iter().enumerate().map(|(number, is_bad)| {
                let index = rng.gen_range(0..cells.len());
                let encoded = match (*is_bad, rng.gen_range(0..4)) {
                    (false, 0) => whole.encode(),
                    (false, _) => encode(index, index, None),
                    (true, 0) => encode(index, (index + 1) % cells.len(), None),
                    // The last byte of an element.
                    (true, _) => encode(index, index, Some(32 * rng.gen_range(1..64) - 1)),
                };
                Request::new("a", &id(number), "kzg", encoded)
            });
            let requests = requests.collect();
            let verdicts = verdicts(&running.handle, requests).await;
            for (verdict, is_bad) in verdicts.iter().zip(&is_bad) {
                let named = matches!(verdict.status, Status::Invalid(_));
                assert_eq!(named, *is_bad, "{size} requests, {bad} bad: {verdict:?}");
            }
        }
    }
}
