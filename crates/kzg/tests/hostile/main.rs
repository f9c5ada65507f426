//! The fuzz target's function on valid inputs changed by chance.

#[path = "../../fuzz/src/seeds.rs"]
#[expect(unreachable_pub, reason = "the fuzz target is of another crate")]
mod seeds;
#[path = "../../fuzz/src/targets.rs"]
#[expect(unreachable_pub, reason = "as above")]
mod targets;

use proofmill_mutation::Mutator;

#[test]
fn no_request_is_read_with_a_panic() {
    let seeds = seeds::decode();
    Mutator::of(&seeds)
        .with_words(&[b"PMKZ"])
        .run("decode", targets::decode);
}
