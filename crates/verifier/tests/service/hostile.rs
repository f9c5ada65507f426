//! The fuzz target's function on valid inputs changed by chance.

#[path = "../../fuzz/src/seeds.rs"]
#[expect(unreachable_pub, reason = "the fuzz target is of another crate")]
mod seeds;
#[path = "../../fuzz/src/targets.rs"]
#[expect(unreachable_pub, reason = "as above")]
mod targets;

use proofmill_mutation::Mutator;

#[test]
fn batches_have_the_verdicts_of_single_proofs() {
    let seeds = seeds::batch();
    Mutator::of(&seeds)
        .inputs(1000)
        .run("batch", targets::batch);
}
