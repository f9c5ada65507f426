//! Hostile bytes, mutated at random from valid ones: the targets of `fuzz/`. `INPUTS=n cargo test --test
//! hostile` runs more of them.

#[path = "../../fuzz/src/seeds.rs"]
#[expect(unreachable_pub, reason = "the fuzz targets are of another crate")]
mod seeds;
#[path = "../../fuzz/src/targets.rs"]
#[expect(unreachable_pub, reason = "as above")]
mod targets;

use proofmill_mutation::Mutator;

#[test]
fn no_bundle_ends_its_reader() {
    Mutator::of(&seeds::bundles()).run("bundle", targets::bundle);
}

#[test]
fn no_call_of_a_peer_ends_the_leader() {
    Mutator::of(&seeds::calls()).run("call", targets::call);
}

#[test]
fn no_notice_ends_a_client() {
    Mutator::of(&seeds::notices()).run("notice", targets::notice);
}

#[test]
fn no_record_ends_a_coordinator() {
    Mutator::of(&seeds::logs()).run("records", targets::records);
}
