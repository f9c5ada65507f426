//! Aggregates of Groth16 proofs over BN254 and BLS12-381.

use std::marker::PhantomData;

use proofmill_aggregation::{Aggregate, AggregateKind, AggregationCurve, Groth16Index};
use proofmill_groth16::Curve;

use super::whole::{Unbatched, Verifier};
use crate::kind::{Invalid, UnusableKey};

/// One proof for many Groth16 proofs over one curve ([`proofmill_aggregation`]).
///
/// * A key is the file of a [`Groth16Index`]: the verifying keys, and the key of each proof.
/// * A proof is an [`Aggregate`]'s bytes.
/// * The statement is the public inputs of all proofs in their order, each in 32 little-endian bytes
///   ([`Groth16Index::encode_statement`]).
pub type Groth16Aggregate<E> = Unbatched<Groth16AggregateVerifier<E>>;

/// The verifier of aggregates of Groth16 proofs.
#[derive(Debug)]
pub struct Groth16AggregateVerifier<E>(PhantomData<fn() -> E>);

impl<E: AggregationCurve> Verifier for Groth16AggregateVerifier<E> {
    type Key = Groth16Index<E>;

    fn name() -> &'static str {
        match E::CURVE {
            Curve::Bn254 => "groth16-aggregate-bn254",
            Curve::Bls12_381 => "groth16-aggregate-bls12-381",
            Curve::Bls12_377 => "groth16-aggregate-bls12-377",
        }
    }

    fn read_key(bytes: &[u8]) -> Result<Groth16Index<E>, UnusableKey> {
        Groth16Index::from_bytes(bytes).map_err(UnusableKey::because)
    }

    fn verify(key: &Groth16Index<E>, statement: &[u8], proof: &[u8]) -> Result<(), Invalid> {
        // The length first, since checks of elements of the target group take long.
        let expected = Aggregate::<E>::encoded_size(AggregateKind::Groth16, key.count());
        if proof.len() != expected {
            return Err(Invalid::because(format_args!(
                "{} bytes: an aggregate of {} proofs has {expected}",
                proof.len(),
                key.count()
            )));
        }
        let inputs = key.decode_statement(statement);
        let inputs = inputs.map_err(Invalid::because)?;
        let aggregate = Aggregate::from_bytes(proof).map_err(Invalid::because)?;
        key.verify(&inputs, &aggregate).map_err(Invalid::because)
    }
}
