//! Real proofs of a kind, and false ones made of them.

use std::sync::Arc;

use anyhow::Context;
use ark_ff::One;
use ark_groth16::{Groth16 as ArkGroth16, prepare_verifying_key};
use ark_serialize::CanonicalDeserialize;
use ark_std::rand::seq::SliceRandom;
use ark_std::rand::{SeedableRng, rngs::StdRng};
use bytes::Bytes;
use proofmill_groth16::{Proof, SnarkCurve, prove, setup};
use proofmill_ipa::{Opening, ROLLUP_LOG_SIZE, Scalar, Srs};
use proofmill_r1cs::{Assignment, R1cs};
use proofmill_verifier::kinds::{Groth16, GrumpkinIpa};
use proofmill_verifier::{Kind, Kinds};

use crate::groth16::Sized as Circuit;
use crate::ipa::ROLLUP_PROOFS;
use crate::peers::arkworks;

/// A kind with its keys, and proofs under them.
pub(super) struct Subject<K: Kind> {
    /// The kind, for verifying one by one.
    pub(super) kind: K,
    /// The kind again, for services.
    pub(super) kinds: Kinds,
    /// Verifying keys, encoded and decoded; empty if the kind has no keys.
    pub(super) keys: Vec<(Bytes, Arc<K::Key>)>,
    valid: Vec<Item>,
    false_ones: Vec<Item>,
    /// Another library that verifies the same proofs, to compare with; `None` if no library supports
    /// the kind.
    pub(super) reference: Option<Reference>,
}

/// A proof as a request carries it.
#[derive(Clone)]
pub(super) struct Item {
    /// Index of the proof's key in [`Subject::keys`].
    pub(super) key: Option<usize>,
    pub(super) statement: Bytes,
    pub(super) proof: Bytes,
    pub(super) is_valid: bool,
}

/// Decodes a proof and verifies it.
pub(super) type Verify = dyn Fn(&Item) -> anyhow::Result<bool> + Send + Sync;

/// Another library that verifies proofs one after the other.
pub(super) struct Reference {
    pub(super) name: &'static str,
    /// Decodes a proof and verifies it.
    pub(super) verify: Box<Verify>,
}

/// Number of different proofs under each key. A run repeats them under new ids.
const PROOFS_PER_KEY: usize = 8;

// === impl Subject ===

impl<K: Kind> Subject<K> {
    /// A list of `proofs` proofs, of which `bad` are false, in an order that depends on the seed.
    pub(super) fn shuffled(&self, proofs: usize, bad: usize, seed: u64) -> Vec<Item> {
        let mut is_bad: Vec<_> = (0..proofs).map(|number| number < bad).collect();
        is_bad.shuffle(&mut StdRng::seed_from_u64(seed));
        let shuffled = is_bad.into_iter().enumerate().map(|(number, is_bad)| {
            let from = if is_bad {
                &self.false_ones
            } else {
                &self.valid
            };
            from[number % from.len()].clone()
        });
        shuffled.collect()
    }

    /// The decoded key of a proof; `None` if the kind has no keys.
    pub(super) fn key_of(&self, item: &Item) -> Option<&Arc<K::Key>> {
        item.key.map(|key| &self.keys[key].1)
    }

    /// Reduces and checks one proof, without the service.
    pub(super) fn verify(&self, item: &Item) -> bool {
        let reduced = self
            .kind
            .reduce(self.key_of(item), &item.statement, &item.proof);
        reduced.is_ok_and(|claim| self.kind.check(&claim).is_ok())
    }
}

/// Groth16 proofs of small circuits under `keys` keys. A false proof has another public input, which only
/// the final check detects.
pub(super) fn groth16<E: SnarkCurve>(keys: usize) -> anyhow::Result<Subject<Groth16<E>>> {
    let rng = &mut StdRng::seed_from_u64(16);
    let kind = Groth16::<E>::new();
    let mut subject = Subject {
        kinds: Kinds::none().with(Groth16::<E>::new()),
        kind,
        keys: Vec::new(),
        valid: Vec::new(),
        false_ones: Vec::new(),
        reference: None,
    };
    let mut theirs = Vec::new();
    let mut proofs = Vec::new();
    for key in 0..keys {
        let circuit = Circuit::Chain {
            constraints: 6 + key,
        };
        let system = R1cs::<E::ScalarField>::from_circuit(circuit)?;
        let assignment = Assignment::from_circuit(circuit)?;
        let proving_key = setup(&system, rng)?;
        let bytes: Bytes = proving_key.vk.to_bytes().into();
        let read = Arc::new(subject.kind.read_key(&bytes)?);
        subject.keys.push((bytes, read));
        theirs.push(prepare_verifying_key(&arkworks::verifying_key(
            &proving_key.vk,
        )));
        for _ in 0..PROOFS_PER_KEY {
            let (proof, _) = prove(&proving_key, &system, &assignment, rng)?;
            proofs.push((key, proof, assignment.inputs().to_vec()));
        }
    }
    // The shuffle puts proofs under different keys next to each other in a stream.
    proofs.shuffle(rng);
    for (key, proof, mut inputs) in proofs {
        subject.valid.push(item(key, &proof, &inputs, true));
        inputs[0] += E::ScalarField::one();
        subject.false_ones.push(item(key, &proof, &inputs, false));
    }
    subject.reference = Some(Reference {
        name: "ark-groth16",
        verify: Box::new(move |item| {
            let key = &theirs[item.key.context("a Groth16 proof has a key")?];
            let mut bytes = &item.proof[..];
            let proof = ark_groth16::Proof::<E> {
                a: CanonicalDeserialize::deserialize_compressed(&mut bytes)?,
                b: CanonicalDeserialize::deserialize_compressed(&mut bytes)?,
                c: CanonicalDeserialize::deserialize_compressed(&mut bytes)?,
            };
            let input = E::ScalarField::deserialize_compressed(&item.statement[..])?;
            Ok(ArkGroth16::<E>::verify_proof(key, &proof, &[input])?)
        }),
    });
    Ok(subject)
}

fn item<E: SnarkCurve>(
    key: usize,
    proof: &Proof<E>,
    inputs: &[E::ScalarField],
    is_valid: bool,
) -> Item {
    Item {
        key: Some(key),
        statement: Groth16::<E>::compact_statement(inputs).into(),
        proof: proof.to_bytes().into(),
        is_valid,
    }
}

/// Openings of `bb`'s rollup proofs. A false one claims another value, which the screen detects.
pub(super) fn grumpkin_ipa() -> anyhow::Result<Subject<GrumpkinIpa>> {
    let srs = Srs::derive(ROLLUP_LOG_SIZE);
    let opening = |bytes: Bytes, is_valid| Item {
        key: None,
        statement: Bytes::new(),
        proof: bytes,
        is_valid,
    };
    let mut valid = Vec::new();
    let mut false_ones = Vec::new();
    for bytes in ROLLUP_PROOFS {
        valid.push(opening(Bytes::from_static(bytes), true));
        let mut changed = Opening::from_rollup_proof(bytes)?;
        changed.claim.value += Scalar::one();
        false_ones.push(opening(changed.to_compact().into(), false));
    }
    Ok(Subject {
        kinds: Kinds::none().with(GrumpkinIpa::new(&srs)),
        kind: GrumpkinIpa::new(&srs),
        keys: Vec::new(),
        valid,
        false_ones,
        reference: None,
    })
}
