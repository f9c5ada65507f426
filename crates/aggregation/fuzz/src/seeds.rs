//! Valid inputs to start from.

use ark_std::rand::rngs::StdRng;
use proofmill_aggregation::{
    Aggregate, AggregationCurve, Commitment, Groth16Index, MirageVerifyingKey, Srs,
};
use proofmill_groth16::{Bls12_381, Bn254, ProvingKey, prove, setup};
use proofmill_r1cs::{Assignment, R1cs};

use super::case::{Case, rng, srs};

/// Valid seeds of every decoder for one curve, with the keys and inputs that they are verified with.
pub struct Seeds<E: AggregationCurve> {
    /// The reference string.
    pub srs: Srs<E>,
    /// The key for three proofs of Mirage.
    pub mirage_key: MirageVerifyingKey<E>,
    /// The public inputs of the Mirage proofs.
    pub mirage_inputs: Vec<E::ScalarField>,
    /// The commitment that their aggregate is for.
    pub commitment: Commitment<E>,
    /// The aggregate of the Mirage proofs.
    pub mirage: Aggregate<E>,
    /// The key for three Groth16 proofs under two verifying keys.
    pub groth16_key: Groth16Index<E>,
    /// The public inputs of each.
    pub groth16_inputs: Vec<Vec<E::ScalarField>>,
    /// The aggregate of the Groth16 proofs.
    pub groth16: Aggregate<E>,
}

/// Every kind of input, for both curves.
pub fn decode() -> Vec<Vec<u8>> {
    let bn254 = Seeds::<Bn254>::new().encode();
    bn254
        .into_iter()
        .chain(Seeds::<Bls12_381>::new().encode())
        .collect()
}

// === impl Seeds ===

impl<E: AggregationCurve> Seeds<E> {
    /// The same at every call.
    pub fn new() -> Self {
        let (srs, rng) = (srs::<E>(4), &mut rng(20));
        let case = Case::<E>::random(rng, 3, 2, 1);
        let mirage = case.prove(&srs);
        let system = square::<E>();
        let keys = [(); 2].map(|()| setup::<E>(&system, rng).expect("a system"));
        let key_of = [0, 1, 0];
        let proofs = key_of.map(|key| prove_square(&system, &keys[key as usize], rng));
        let (groth16_inputs, proofs): (Vec<_>, Vec<_>) = proofs.into_iter().unzip();
        let keys = keys.map(|key| key.vk);
        let groth16_key = Groth16Index::new(&srs, keys.to_vec(), key_of.to_vec()).expect("a key");
        let groth16 = groth16_key.aggregate(&srs, &groth16_inputs, &proofs);
        Self {
            srs,
            mirage_key: mirage.index.verifying_key().clone(),
            mirage_inputs: case.inputs,
            commitment: mirage.commitment,
            mirage: mirage.aggregate,
            groth16_key,
            groth16_inputs,
            groth16: groth16.expect("as many proofs as the key is for"),
        }
    }

    /// The bytes of all.
    pub fn encode(&self) -> Vec<Vec<u8>> {
        vec![
            self.mirage.to_bytes(),
            self.groth16.to_bytes(),
            self.commitment.to_bytes(),
            self.mirage_key.to_bytes(),
            self.groth16_key.to_bytes(),
            self.srs.to_bytes(),
        ]
    }
}

/// Variables 1, y, x with x · x = y.
fn square<E: AggregationCurve>() -> R1cs<E::ScalarField> {
    let one = E::ScalarField::from(1u64);
    let rows = [2, 2, 1].map(|variable| vec![vec![(one, variable)]]);
    R1cs::from_rows(2, 1, rows).expect("a system")
}

fn prove_square<E: AggregationCurve>(
    system: &R1cs<E::ScalarField>,
    key: &ProvingKey<E>,
    rng: &mut StdRng,
) -> (Vec<E::ScalarField>, proofmill_groth16::Proof<E>) {
    let [x, y] = [5u64, 25].map(E::ScalarField::from);
    let assignment = Assignment::new(&[y], &[x]);
    let (proof, _) = prove(key, system, &assignment, rng).expect("the statement is true");
    (vec![y], proof)
}
