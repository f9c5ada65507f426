//! Runs the fuzz targets of `fuzz/` on random changes of valid inputs. `INPUTS=n cargo test --test
//! hostile` sets their number.

#[path = "../../fuzz/src/seeds.rs"]
#[expect(unreachable_pub, reason = "the fuzz targets are of another crate")]
mod seeds;
#[path = "../../fuzz/src/targets.rs"]
#[expect(unreachable_pub, reason = "as above")]
mod targets;

use proofmill_mutation::Mutator;

#[test]
fn no_message_of_its_stream_ends_a_log() {
    Mutator::of(&seeds::frames()).run("frames", targets::frames);
}

#[test]
fn no_piece_of_a_blob_ends_its_reader() {
    Mutator::of(&seeds::blob_pieces()).run("blob_pieces", targets::blob_pieces);
}
