//! Functions that feed hostile bytes to the code under test. Each ends the process, by a panic, if
//! it finds a defect.

use std::sync::LazyLock;

use proofmill_aggregation::{
    Aggregate, AggregationCurve, Commitment, Groth16Index, MirageVerifyingKey, Srs,
};
use proofmill_groth16::{Bls12_381, Bn254};

use super::case::statement;
use super::seeds::Seeds;

static BN254: LazyLock<Seeds<Bn254>> = LazyLock::new(Seeds::new);
static BLS12_381: LazyLock<Seeds<Bls12_381>> = LazyLock::new(Seeds::new);

/// Takes bytes as every format that the crate decodes, over both curves: decoded values must encode to the same bytes,
/// and only the original aggregates may verify.
pub fn decode(bytes: &[u8]) {
    over(&BN254, bytes);
    over(&BLS12_381, bytes);
}

fn over<E: AggregationCurve>(seeds: &Seeds<E>, bytes: &[u8]) {
    if let Ok(read) = Aggregate::<E>::from_bytes(bytes) {
        assert_eq!(read.to_bytes(), bytes);
        let (key, inputs) = (&seeds.mirage_key, &seeds.mirage_inputs);
        let holds = key
            .verify(statement(inputs, &seeds.commitment), &read)
            .is_ok();
        assert_eq!(holds, read == seeds.mirage);
        let holds = seeds
            .groth16_key
            .verify(&seeds.groth16_inputs, &read)
            .is_ok();
        assert_eq!(holds, read == seeds.groth16);
    }
    if let Ok(read) = Commitment::<E>::from_bytes(bytes) {
        assert_eq!(read.to_bytes(), bytes);
        let (key, inputs) = (&seeds.mirage_key, &seeds.mirage_inputs);
        let holds = key.verify(statement(inputs, &read), &seeds.mirage).is_ok();
        assert_eq!(holds, read == seeds.commitment);
    }
    if let Ok(read) = MirageVerifyingKey::<E>::from_bytes(bytes) {
        assert_eq!(read.to_bytes(), bytes);
    }
    if let Ok(read) = Groth16Index::<E>::from_bytes(bytes) {
        assert_eq!(read.to_bytes(), bytes);
    }
    if let Ok(read) = Srs::<E>::from_bytes(bytes) {
        assert_eq!(read.to_bytes(), bytes);
        assert!(
            read == seeds.srs,
            "only who knows the secrets makes another"
        );
    }
}
