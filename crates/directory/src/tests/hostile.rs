//! The fuzz targets' functions on valid inputs changed by chance.

#[path = "../../fuzz/src/seeds.rs"]
#[expect(unreachable_pub, reason = "the fuzz target is of another crate")]
mod seeds;
#[path = "../../fuzz/src/targets.rs"]
#[expect(unreachable_pub, reason = "as above")]
mod targets;

use proofmill_mutation::Mutator;

#[test]
fn no_proof_of_a_state_is_read_with_a_panic() {
    let seeds = seeds::inclusion();
    Mutator::of(&seeds)
        .with_words(&[b"PMILLVKI", b"\"absent\"", b"\"occupied\"", &[0xff; 16]])
        .inputs(5_000)
        .run("inclusion", targets::inclusion);
}

#[test]
fn no_file_of_a_directory_is_read_with_a_panic() {
    let seeds = seeds::store();
    Mutator::of(&seeds)
        .with_words(&[b"PMILLVKE", b"PMILLVKS", &[0xff; 4]])
        .run("store", targets::store);
}

#[test]
fn no_record_is_read_with_a_panic() {
    let seeds = seeds::record();
    Mutator::of(&seeds)
        .with_words(&[b"PMILLVKR", b"\"batches\"", &[0xff; 4]])
        .run("record", targets::record);
}

#[test]
fn no_updates_are_read_with_a_panic() {
    let seeds = seeds::updates();
    Mutator::of(&seeds)
        .with_words(&[b"\"key_hex\"", b"\"value\"", b"{}", b"\\u0000", b"\\ud800"])
        .run("updates", targets::updates);
}

#[test]
fn no_witness_is_read_with_a_panic() {
    let seeds = seeds::witness();
    Mutator::of(&seeds)
        .with_words(&[b"PMILLVKW", &[0xff; 8], &[0; 32]])
        .run("witness", targets::witness);
}
