//! Groth16 over BN254, BLS12-381 and BLS12-377.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use ark_ec::pairing::{Pairing, PairingOutput};
use ark_ff::PrimeField;
use ark_serialize::CanonicalSerialize;
use proofmill_groth16::snarkjs::{
    MAX_INPUTS, inputs_from_json, proof_from_json, verifying_key_from_json,
};
use proofmill_groth16::{
    Curve, KeyedProof, MultiplesCache, PreparedVerifyingKey, Proof, SnarkCurve, VerifyingKey,
    Weight, WeightedProof, verify, verify_each, weighted_product, weighted_product_each,
};

use proofmill_kernels::{InstructionSet, NoRandomness, draw_weights};

use crate::isolation::{Costs, LoneCosts};
use crate::kind::{Invalid, Kind, ProofInput, UnusableKey};

/// Groth16 over one curve, under any number of verifying keys in a batch.
///
/// * A key is snarkjs's `verification_key.json`, or a verifying key of ours
///   ([`VerifyingKey::to_bytes`]). Keys under which anybody can make proofs are refused.
/// * A proof is snarkjs's `proof.json`, with `public.json` as the statement; or A, B and C compressed
///   ([`Proof::to_bytes`]: 128 bytes over BN254, 192 over BLS12-381 and BLS12-377), with the public inputs in 32
///   little-endian bytes each as the statement.
pub struct Groth16<E>(PhantomData<fn() -> E>);

/// A decoded proof with its claimed public inputs and its key.
pub struct Groth16Claim<E: SnarkCurve> {
    key: Arc<PreparedVerifyingKey<E>>,
    inputs: Vec<E::ScalarField>,
    proof: Proof<E>,
}

/// A weight, with the multiples that sums under it have in common: a search for false proofs takes several over the same
/// claims, which differ by small factors.
pub struct Groth16Weight<E: SnarkCurve> {
    weight: Weight,
    multiples: Arc<MultiplesCache<E>>,
}

/// The first bytes of our own key files.
const KEY_MAGIC: &[u8] = b"PMILLKEY";

// === impl Groth16 ===

impl<E: SnarkCurve> Groth16<E> {
    /// The kind.
    pub const fn new() -> Self {
        Self(PhantomData)
    }

    /// Public inputs, without the leading one, as the statement of a compact proof.
    pub fn compact_statement(inputs: &[E::ScalarField]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(size_of_val(inputs));
        for input in inputs {
            let written = input.serialize_compressed(&mut bytes);
            written.expect("writing to a vector does not fail");
        }
        bytes
    }

    /// Public inputs from the statement of a compact proof.
    ///
    /// # Errors
    ///
    /// [`Invalid`] unless it is a whole number of canonical inputs, and not too many.
    pub fn read_compact_statement(bytes: &[u8]) -> Result<Vec<E::ScalarField>, Invalid> {
        compact_inputs(bytes)
    }
}

impl<E: SnarkCurve> Default for Groth16<E> {
    fn default() -> Self {
        Self::new()
    }
}

impl<E> fmt::Debug for Groth16<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Groth16")
    }
}

impl<E: SnarkCurve> Kind for Groth16<E> {
    type Key = PreparedVerifyingKey<E>;
    type Claim = Groth16Claim<E>;
    type Weight = Groth16Weight<E>;
    type Value = PairingOutput<E>;

    fn name(&self) -> &str {
        match E::CURVE {
            Curve::Bn254 => "groth16-bn254",
            Curve::Bls12_381 => "groth16-bls12-381",
            Curve::Bls12_377 => "groth16-bls12-377",
        }
    }

    fn has_keys(&self) -> bool {
        true
    }

    fn read_key(&self, bytes: &[u8]) -> Result<Self::Key, UnusableKey> {
        let key = if bytes.starts_with(KEY_MAGIC) {
            VerifyingKey::<E>::from_bytes(bytes).map_err(UnusableKey::because)?
        } else {
            verifying_key_from_json(bytes).map_err(UnusableKey::because)?
        };
        key.require_secure().map_err(UnusableKey::because)?;
        Ok(PreparedVerifyingKey::from(key))
    }

    fn reduce(
        &self,
        key: Option<&Arc<Self::Key>>,
        statement: &[u8],
        proof: &[u8],
    ) -> Result<Self::Claim, Invalid> {
        let key = key.cloned();
        let input = ProofInput {
            key,
            statement,
            proof,
        };
        let mut claims = self.reduce_each(&[input]);
        claims.pop().expect("a claim for each proof")
    }

    /// Points of compact proofs are decoded side by side.
    fn reduce_each(
        &self,
        proofs: &[ProofInput<'_, Self::Key>],
    ) -> Vec<Result<Self::Claim, Invalid>> {
        // Statements first, since checks of points take long.
        let statements: Vec<_> = proofs.iter().map(statement).collect();
        let compact: Vec<&[u8]> = proofs
            .iter()
            .zip(&statements)
            .filter(|(proof, statement)| statement.is_ok() && is_compact::<E>(proof.proof))
            .map(|(proof, _)| proof.proof)
            .collect();
        let mut decoded = Proof::<E>::from_bytes_each(&compact).into_iter();
        let claim = |(input, statement): (&ProofInput<'_, _>, Result<_, Invalid>)| {
            let (key, inputs) = statement?;
            let proof = if is_compact::<E>(input.proof) {
                let proof = decoded.next().expect("as many as there were");
                proof.map_err(Invalid::because)?
            } else {
                let in_proof = |error| Invalid(format!("the proof: {error}").into());
                proof_from_json(input.proof).map_err(in_proof)?
            };
            Ok(Groth16Claim { key, inputs, proof })
        };
        proofs.iter().zip(statements).map(claim).collect()
    }

    /// Two vectors of lanes: the square roots of that many proofs are computed at once.
    fn reduced_together(&self) -> usize {
        16
    }

    fn draw_weights(&self, count: usize) -> Result<Vec<Self::Weight>, NoRandomness> {
        let weight = |number| Groth16Weight {
            weight: Weight::new(number),
            multiples: Arc::default(),
        };
        let numbers = draw_weights::<u128>(count)?;
        Ok(numbers.into_iter().map(weight).collect())
    }

    fn times(&self, weight: &Self::Weight, factor: u64) -> Self::Weight {
        let product = weight.weight.checked_mul(factor);
        Groth16Weight {
            weight: product.expect("a power of a place that has 128 bits, as `MAX_BATCH` provides"),
            multiples: Arc::clone(&weight.multiples),
        }
    }

    fn value(&self, claims: &[(&Self::Claim, Self::Weight)]) -> PairingOutput<E> {
        weighted_product(&weighted(claims)).expect(IN_SUBGROUPS)
    }

    fn check(&self, claim: &Self::Claim) -> Result<(), Invalid> {
        verify(&claim.key, &claim.inputs, &claim.proof).map_err(Invalid::because)
    }

    /// Products of pairings side by side.
    fn check_each(&self, claims: &[&Self::Claim]) -> Vec<Result<(), Invalid>> {
        let proofs: Vec<_> = claims
            .iter()
            .map(|claim| KeyedProof {
                key: &*claim.key,
                inputs: &claim.inputs,
                proof: &claim.proof,
            })
            .collect();
        let verdicts = verify_each(&proofs).into_iter();
        verdicts
            .map(|verdict| verdict.map_err(Invalid::because))
            .collect()
    }

    /// Products and powers side by side.
    fn value_each(&self, claims: &[(&Self::Claim, Self::Weight)]) -> Vec<PairingOutput<E>> {
        let values = weighted_product_each(&weighted(claims)).into_iter();
        values.map(|value| value.expect(IN_SUBGROUPS)).collect()
    }

    fn costs(&self) -> Costs {
        // Measured by `proofmill-bench verifier --calibrate`: the keys' pairs with the final exponentiation,
        // and one proof's pair with its weight, in units of 32 µs with lanes.
        let fixed = match InstructionSet::current() {
            InstructionSet::Avx512Ifma => 14.0,
            InstructionSet::Portable => 36.0,
        };
        Costs { fixed, each: 1.0 }
    }

    /// A product of three pairs that are not weighted, two of them prepared; where kernels have lanes, eight in the time
    /// of three. (Where one is false, and its value is wanted, its power adds 5 to its lanes.)
    fn costs_alone(&self) -> LoneCosts {
        match InstructionSet::current() {
            InstructionSet::Avx512Ifma => LoneCosts {
                one: 7.5,
                lanes: 8,
                of_lanes: 21.5,
            },
            InstructionSet::Portable => LoneCosts::one_by_one(7.0),
        }
    }
}

/// Message of the `expect`s on values: the reason why the pairing has one.
const IN_SUBGROUPS: &str = "decoded points are in their subgroups";

fn weighted<'a, E: SnarkCurve>(
    claims: &'a [(&'a Groth16Claim<E>, Groth16Weight<E>)],
) -> Vec<WeightedProof<'a, E>> {
    claims
        .iter()
        .map(|(claim, weight)| WeightedProof {
            key: &*claim.key,
            inputs: &claim.inputs,
            proof: &claim.proof,
            weight: weight.weight,
            multiples: Some(&weight.multiples),
        })
        .collect()
}

type Statement<E> = (
    Arc<PreparedVerifyingKey<E>>,
    Vec<<E as Pairing>::ScalarField>,
);

fn is_compact<E: SnarkCurve>(proof: &[u8]) -> bool {
    proof.len() == Proof::<E>::encoded_size()
}

/// A proof's key and public inputs, which are as many as the key's circuit has.
fn statement<E: SnarkCurve>(
    input: &ProofInput<'_, PreparedVerifyingKey<E>>,
) -> Result<Statement<E>, Invalid> {
    let Some(key) = &input.key else {
        return Err(Invalid("no verifying key".into()));
    };
    let inputs = if is_compact::<E>(input.proof) {
        compact_inputs(input.statement)?
    } else {
        let in_statement = |error| Invalid(format!("the public inputs: {error}").into());
        inputs_from_json(input.statement).map_err(in_statement)?
    };
    key.check_count(inputs.len()).map_err(Invalid::because)?;
    Ok((key.clone(), inputs))
}

/// Public inputs in their compact form, without the leading one.
fn compact_inputs<F: PrimeField>(bytes: &[u8]) -> Result<Vec<F>, Invalid> {
    let size = F::zero().compressed_size();
    if !bytes.len().is_multiple_of(size) || bytes.len() / size > MAX_INPUTS {
        return Err(Invalid(
            format!(
                "{} bytes of public inputs: each takes {size}, and there are at most {MAX_INPUTS}",
                bytes.len()
            )
            .into(),
        ));
    }
    let inputs = bytes.chunks_exact(size).enumerate();
    inputs
        .map(|(index, bytes)| {
            F::deserialize_compressed(bytes).map_err(|_| {
                Invalid(format!("public input {index} is not below the field's modulus").into())
            })
        })
        .collect()
}
