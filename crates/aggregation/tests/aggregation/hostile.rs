//! The fuzz targets' functions on random mutations of valid inputs: nothing panics, and only the original
//! aggregates are accepted.

#[path = "../../fuzz/src/recording.rs"]
#[expect(unreachable_pub, reason = "the fuzz target is of another crate")]
mod recording;
#[path = "../../fuzz/src/seeds.rs"]
#[expect(unreachable_pub, reason = "as above")]
mod seeds;
#[path = "../../fuzz/src/targets.rs"]
#[expect(unreachable_pub, reason = "as above")]
mod targets;

use proofmill_aggregation::{Aggregate, Groth16Index, MirageVerifyingKey, Srs};
use proofmill_groth16::Bn254;
use proofmill_mutation::Mutator;

use super::case;

/// The inputs that are changed are valid ones.
#[test]
fn seeds_are_decoded() {
    let seeds = seeds::Seeds::<Bn254>::new().encode();
    let [mirage, groth16, _, mirage_key, groth16_key, srs] = &seeds[..] else {
        panic!("{} seeds", seeds.len());
    };
    assert!(Aggregate::<Bn254>::from_bytes(mirage).is_ok());
    assert!(Aggregate::<Bn254>::from_bytes(groth16).is_ok());
    assert!(MirageVerifyingKey::<Bn254>::from_bytes(mirage_key).is_ok());
    assert!(Groth16Index::<Bn254>::from_bytes(groth16_key).is_ok());
    assert!(Srs::<Bn254>::from_bytes(srs).is_ok());
}

#[test]
fn no_bytes_panic() {
    let seeds = seeds::decode();
    Mutator::of(&seeds)
        .inputs(20_000)
        .run("decode", targets::decode);
}

#[test]
fn no_message_of_shards_panics() {
    let seeds = recording::messages();
    Mutator::of(&seeds)
        .inputs(5_000)
        .run("sharded", targets::sharded);
}
