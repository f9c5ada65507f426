//! The function that the fuzz target calls. It ends the process, by a panic, if it finds a defect.

use std::sync::{Arc, LazyLock};

use ark_ff::{One, UniformRand};
use ark_std::rand::SeedableRng;
use ark_std::rand::rngs::StdRng;
use proofmill_groth16::{Bls12_381, Bn254, PreparedVerifyingKey, SnarkCurve, prove, setup};
use proofmill_r1cs::{Assignment, R1cs};
use proofmill_verifier::isolation::ExpectedFalseShare;
use proofmill_verifier::kinds::Groth16;
use proofmill_verifier::{Kind, ProofInput, batch};

/// The most proofs of a batch: checking each of them alone takes most of the time.
const PROOFS_MAX: usize = 12;
/// Proofs of each curve that there are, every second one under another key.
const SAMPLES: usize = 6;

/// A valid proof.
struct Sample<K: Kind> {
    key: Arc<K::Key>,
    statement: Vec<u8>,
    proof: Vec<u8>,
}

static OVER_BN254: LazyLock<Vec<Sample<Groth16<Bn254>>>> = LazyLock::new(samples);
static OVER_BLS12_381: LazyLock<Vec<Sample<Groth16<Bls12_381>>>> = LazyLock::new(samples);

/// Takes bytes as a batch: the curve, the expected share of false proofs, and four bytes for each proof: its index,
/// the index of its statement and key, the place of a changed byte, and the change. The verdicts of the batch must be
/// those of single checks.
pub fn batch(bytes: &[u8]) {
    let [curve, expected_false_share, changes @ ..] = bytes else {
        return;
    };
    let expected_false_share = ExpectedFalseShare(f64::from(*expected_false_share) / 255.0);
    match curve % 2 {
        0 => agree(
            &Groth16::new(),
            OVER_BN254.as_slice(),
            expected_false_share,
            changes,
        ),
        _ => agree(
            &Groth16::new(),
            OVER_BLS12_381.as_slice(),
            expected_false_share,
            changes,
        ),
    }
}

fn agree<K: Kind>(
    kind: &K,
    samples: &[Sample<K>],
    expected_false_share: ExpectedFalseShare,
    changes: &[u8],
) {
    let of = |number: &u8| &samples[usize::from(*number) % samples.len()];
    let proofs: Vec<(&Sample<K>, Vec<u8>)> = changes
        .chunks_exact(4)
        .take(PROOFS_MAX)
        .map(|change| {
            let [proof, statement, at, change] = change else {
                unreachable!("chunks of four");
            };
            let mut proof = of(proof).proof.clone();
            let at = usize::from(*at) % proof.len();
            proof[at] ^= change;
            (of(statement), proof)
        })
        .collect();
    let inputs: Vec<_> = proofs
        .iter()
        .map(|(sample, proof)| ProofInput {
            key: Some(sample.key.clone()),
            statement: &sample.statement,
            proof,
        })
        .collect();
    let together = kind.reduce_each(&inputs);
    let mut claims = Vec::new();
    for (proof, reduced) in inputs.iter().zip(&together) {
        let alone = kind.reduce(proof.key.as_ref(), proof.statement, proof.proof);
        assert_eq!(alone.as_ref().err(), reduced.as_ref().err());
        claims.extend(reduced.as_ref().ok());
    }
    let outcome = batch::check(kind, &claims, expected_false_share).expect("random numbers");
    for (claim, verdict) in claims.iter().zip(&outcome.verdicts) {
        assert_eq!(kind.check(claim).is_ok(), verdict.is_ok());
    }
    assert_eq!(outcome.verdicts.len(), claims.len());
}

/// Proofs that a number is the square of a secret one.
fn samples<E: SnarkCurve>() -> Vec<Sample<Groth16<E>>> {
    let rng = &mut StdRng::seed_from_u64(5);
    let row = |variable: usize| vec![vec![(E::ScalarField::one(), variable)]];
    let system = R1cs::from_rows(2, 1, [row(2), row(2), row(1)]).expect("a system");
    let keys = [(); 2].map(|()| setup(&system, rng).expect("a key"));
    let prepared = keys.each_ref().map(|key| {
        let prepared = PreparedVerifyingKey::from(key.vk.clone());
        Arc::new(prepared)
    });
    (0..SAMPLES)
        .map(|number| {
            let witness = E::ScalarField::rand(rng);
            let inputs = [witness * witness];
            let assignment = Assignment::new(&inputs, &[witness]);
            let key = number % keys.len();
            let (proof, _) = prove(&keys[key], &system, &assignment, rng).expect("a proof");
            Sample {
                key: prepared[key].clone(),
                statement: Groth16::<E>::compact_statement(&inputs),
                proof: proof.to_bytes(),
            }
        })
        .collect()
}
