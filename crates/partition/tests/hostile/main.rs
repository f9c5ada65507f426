//! The fuzz target's function on valid inputs changed by chance.

#[path = "../../fuzz/src/seeds.rs"]
#[expect(unreachable_pub, reason = "the fuzz target is of another crate")]
mod seeds;
#[path = "../../fuzz/src/targets.rs"]
#[expect(unreachable_pub, reason = "as above")]
mod targets;

use ark_bn254::Fr;
use proofmill_mutation::Mutation;
use proofmill_partition::Partition;

/// Those are among them that are written from the description of the format alone.
#[test]
fn seeds_are_partitions() {
    for seed in seeds::decode() {
        let partition = Partition::<Fr>::from_bytes(&seed).unwrap();
        assert!(partition.to_bytes() == seed);
    }
}

#[test]
fn no_proof_is_read_with_a_panic() {
    let seeds = seeds::proof();
    Mutation::of(&seeds)
        .with_words(&[b"PMILLPPR", b"PMILLPVK", b"PMILLAGG", b"PMILLAGV"])
        .inputs(2_000)
        .run("proof", targets::proof);
}

#[test]
fn no_partition_is_read_with_a_panic() {
    let seeds = seeds::decode();
    Mutation::of(&seeds)
        .with_words(&[b"PMILLPTN", b"pmcs"])
        .inputs(2_000)
        .run("decode", targets::decode);
}
