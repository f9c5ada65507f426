//! Aggregates of Groth16 proofs over BN254 and BLS12-381.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use ark_ff::AdditiveGroup;
use proofmill_aggregation::{Aggregate, AggregateKind, AggregationEngine, Groth16Index};
use proofmill_groth16::Curve;

use crate::isolation::Costs;
use crate::kind::{Invalid, Kind, NoRandomness, UnusableKey};

/// One proof for many Groth16 proofs over one curve ([`proofmill_aggregation`]).
///
/// * A key is the file of a [`Groth16Index`]: the verifying keys, and which proof is under which.
/// * A proof is an [`Aggregate`]'s bytes.
/// * The statement is the public inputs of all proofs in their order, each in 32 little-endian bytes
///   ([`Groth16Index::encode_statement`]).
///
/// Each aggregate is verified for itself, where it is reduced: it is a check of many proofs already. A claim
/// says that it was valid, and its value is zero.
pub struct Groth16Aggregate<E>(PhantomData<fn() -> E>);

/// An aggregate that was verified.
#[derive(Clone, Copy, Debug)]
pub struct ValidAggregate(());

// === impl Groth16Aggregate ===

impl<E: AggregationEngine> Groth16Aggregate<E> {
    /// The kind.
    pub const fn new() -> Self {
        Self(PhantomData)
    }
}

impl<E: AggregationEngine> Default for Groth16Aggregate<E> {
    fn default() -> Self {
        Self::new()
    }
}

impl<E> fmt::Debug for Groth16Aggregate<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Groth16Aggregate")
    }
}

impl<E: AggregationEngine> Kind for Groth16Aggregate<E> {
    type Key = Groth16Index<E>;
    type Claim = ValidAggregate;
    type Weight = ();
    type Value = E::G1;

    fn name(&self) -> &str {
        match E::CURVE {
            Curve::Bn254 => "groth16-aggregate-bn254",
            Curve::Bls12_381 => "groth16-aggregate-bls12-381",
        }
    }

    fn has_keys(&self) -> bool {
        true
    }

    fn read_key(&self, bytes: &[u8]) -> Result<Groth16Index<E>, UnusableKey> {
        Groth16Index::from_bytes(bytes).map_err(UnusableKey::because)
    }

    fn reduce(
        &self,
        key: Option<&Arc<Groth16Index<E>>>,
        statement: &[u8],
        proof: &[u8],
    ) -> Result<ValidAggregate, Invalid> {
        let Some(key) = key else {
            return Err(Invalid("no key".into()));
        };
        // Before elements of the target group, whose checks take long.
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
        let verified = key.verify(&inputs, &aggregate);
        verified.map_err(Invalid::because)?;
        Ok(ValidAggregate(()))
    }

    /// None are needed: every claim's value is zero.
    fn draw_weights(&self, count: usize) -> Result<Vec<()>, NoRandomness> {
        Ok(vec![(); count])
    }

    fn times(&self, (): &(), _: u64) {}

    fn value(&self, _: &[(&ValidAggregate, ())]) -> E::G1 {
        E::G1::ZERO
    }

    fn check(&self, _: &ValidAggregate) -> Result<(), Invalid> {
        Ok(())
    }

    fn costs(&self) -> Costs {
        // Nothing is left to do, so that neither matters.
        Costs {
            fixed: 1.0,
            each: 1.0,
        }
    }
}
