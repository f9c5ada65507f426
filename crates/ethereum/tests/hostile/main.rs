//! Runs the fuzz targets of `fuzz/` on random changes of valid inputs. `INPUTS=n cargo test --test
//! hostile` sets their number.

#[path = "../../fuzz/src/seeds.rs"]
#[expect(unreachable_pub, reason = "the fuzz targets are of another crate")]
mod seeds;
#[path = "../../fuzz/src/targets.rs"]
#[expect(unreachable_pub, reason = "as above")]
mod targets;

use proofmill_ethereum::{Recovered, hostile};
use proofmill_mutation::Mutator;

#[test]
fn seeds_are_valid() {
    for seed in seeds::transactions() {
        Recovered::decode(&seed).expect("it is a transaction");
    }
    let count = |seed: &Vec<u8>| hostile::read_answer(seed, &[]);
    let read: Vec<usize> = seeds::answers().iter().map(count).collect();
    assert_eq!(read, [0, 4, 1, 3, 5, 1, 0, 0, 0, 0, 0]);
}

#[test]
fn no_transaction_ends_its_reader() {
    Mutator::of(&seeds::transactions()).run("transaction", targets::transaction);
}

#[test]
fn no_answer_ends_its_reader() {
    let words: &[&[u8]] = &[
        b"0x",
        b"null",
        b"\"",
        b"{\"data\":",
        b"[",
        b"\\u0000",
        b"0xffffffffffffffff",
    ];
    Mutator::of(&seeds::answers())
        .with_words(words)
        .run("answer", targets::answer);
}
