//! SHA-256 of inputs of every length up to three blocks, and of a longer one.

use rand::{Rng, SeedableRng, rngs::StdRng};
use sha2::{Digest, Sha256};

use super::support::{program, run};

#[test]
fn the_hash_is_that_of_sha2() {
    let program = program("sha256");
    let mut random = StdRng::seed_from_u64(3);
    for length in (0..200).chain([10_001]) {
        let input: Vec<u8> = (0..length).map(|_| random.random()).collect();
        let outcome = run(&program, &input);
        assert_eq!(outcome.code, 0);
        assert_eq!(outcome.output, Sha256::digest(&input).as_slice());
    }
}
