//! The fuzz target's function on valid inputs changed by chance.

#[path = "../../fuzz/src/seeds.rs"]
#[expect(unreachable_pub, reason = "the fuzz target is of another crate")]
mod seeds;
#[path = "../../fuzz/src/targets.rs"]
#[expect(unreachable_pub, reason = "as above")]
mod targets;

use ark_bn254::Fr;
use proofmill_mutation::Mutator;
use proofmill_partition::Partition;

/// The seeds include files written from the description of the format alone.
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
    Mutator::of(&seeds)
        .with_words(&[b"PMILLPPR", b"PMILLPVK", b"PMILLAGG", b"PMILLAGV"])
        .inputs(2_000)
        .run("proof", targets::proof);
}

#[test]
fn no_partition_is_read_with_a_panic() {
    let seeds = seeds::decode();
    Mutator::of(&seeds)
        .with_words(&[b"PMILLPTN", b"pmcs"])
        .inputs(2_000)
        .run("decode", targets::decode);
}

#[test]
fn no_journal_is_read_with_a_panic() {
    let seeds = seeds::journal();
    Mutator::of(&seeds)
        .with_words(&[b"PMILLPJN", &[1, 0, 0, 0, 0], &[2, 0, 0, 0, 0]])
        .inputs(2_000)
        .run("journal", targets::journal);
}

#[test]
fn no_keys_are_read_with_a_panic() {
    let seeds = seeds::keys();
    Mutator::of(&seeds)
        .with_words(&[b"PMILLKEY"])
        .inputs(2_000)
        .run("keys", targets::keys);
}

#[test]
fn no_public_inputs_are_read_with_a_panic() {
    let seeds = seeds::statement();
    Mutator::of(&seeds)
        .with_words(&[b"\"0\"", b"[", b"]", b",", b"\"0x10\"", b"-1"])
        .inputs(20_000)
        .run("statement", targets::statement);
}

#[test]
fn no_share_of_a_part_is_read_with_a_panic() {
    let seeds = seeds::share();
    Mutator::of(&seeds)
        .with_words(&[&seeds::MODULUS])
        .inputs(20_000)
        .run("share", targets::share);
}
