//! Fibonacci's numbers modulo 2³².

use super::support::{program, run, words};

#[test]
fn numbers_are_those_of_the_recurrence() {
    let program = program("fibonacci");
    let (mut a, mut b) = (0u32, 1u32);
    for n in 0u32..200 {
        let outcome = run(&program, &n.to_le_bytes());
        assert_eq!((outcome.code, words(&outcome.output)), (0, vec![a]));
        (a, b) = (b, a.wrapping_add(b));
    }
    assert_eq!(
        words(&run(&program, &30u32.to_le_bytes()).output),
        [832_040]
    );
}

#[test]
fn inputs_of_another_length_are_refused() {
    let program = program("fibonacci");
    for length in [0, 3, 5, 8] {
        let outcome = run(&program, &vec![1; length]);
        assert_eq!((outcome.code, outcome.output.len()), (1, 0));
    }
}
