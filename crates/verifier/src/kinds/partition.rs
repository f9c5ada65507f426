//! Proofs of circuits in parts over BN254 and BLS12-381.

use std::marker::PhantomData;

use proofmill_groth16::Curve;
use proofmill_partition::proof::{PartitionCurve, PartitionProof, VerifyingKey};

use super::whole::{Unbatched, Verifier};
use crate::kind::{Invalid, UnusableKey};

/// One proof for all parts of a circuit ([`proofmill_partition`]).
///
/// * A key is a [`VerifyingKey`]'s bytes.
/// * A proof is a [`PartitionProof`]'s bytes.
/// * The statement is the public inputs in their order, each in 32 little-endian bytes
///   ([`VerifyingKey::encode_statement`]).
pub type Partition<E> = Unbatched<PartitionVerifier<E>>;

/// The verifier of proofs of circuits in parts.
#[derive(Debug)]
pub struct PartitionVerifier<E>(PhantomData<fn() -> E>);

impl<E: PartitionCurve> Verifier for PartitionVerifier<E> {
    type Key = VerifyingKey<E>;

    fn name() -> &'static str {
        match E::CURVE {
            Curve::Bn254 => "partition-bn254",
            Curve::Bls12_381 => "partition-bls12-381",
            Curve::Bls12_377 => "partition-bls12-377",
        }
    }

    fn read_key(bytes: &[u8]) -> Result<VerifyingKey<E>, UnusableKey> {
        VerifyingKey::from_bytes(bytes).map_err(UnusableKey::because)
    }

    fn verify(key: &VerifyingKey<E>, statement: &[u8], proof: &[u8]) -> Result<(), Invalid> {
        // The length first, since checks of elements of the target group take long.
        let expected = PartitionProof::<E>::encoded_size(key.num_parts());
        if proof.len() != expected {
            return Err(Invalid::because(format_args!(
                "{} bytes: a proof of {} parts has {expected}",
                proof.len(),
                key.num_parts()
            )));
        }
        let inputs = key.decode_statement(statement);
        let inputs = inputs.map_err(Invalid::because)?;
        let proof = PartitionProof::from_bytes(proof).map_err(Invalid::because)?;
        key.verify(&inputs, &proof).map_err(Invalid::because)
    }
}
