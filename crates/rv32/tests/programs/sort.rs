//! Sorted words.

use rand::{Rng, SeedableRng, rngs::StdRng};

use super::support::{program, run, words};

#[test]
fn words_are_sorted() {
    let program = program("sort");
    let mut random = StdRng::seed_from_u64(4);
    for length in (0..20).chain([255, 256, 3_000]) {
        for range in [3, u32::MAX] {
            let mut expected: Vec<u32> = (0..length)
                .map(|_| random.random_range(0..=range))
                .collect();
            let input: Vec<u8> = expected
                .iter()
                .flat_map(|word| word.to_le_bytes())
                .collect();
            expected.sort_unstable();
            let outcome = run(&program, &input);
            assert_eq!(outcome.code, 0);
            assert_eq!(words(&outcome.output), expected);
        }
    }
}

#[test]
fn inputs_that_are_no_words_are_refused() {
    let program = program("sort");
    for (length, code) in [(1, 1), (7, 1), ((4 << 20) + 4, 2)] {
        let outcome = run(&program, &vec![0; length]);
        assert_eq!((outcome.code, outcome.output.len()), (code, 0));
    }
}
