//! Every operation on every pair of operands at an edge.

use proofmill_rv32::machine::HALT;

use super::compare::{Coverage, compare};
use super::generate::{EDGES, branch, immediate, register, set};

const LEFT: u32 = 20;
const RIGHT: u32 = 21;
const RESULT: u32 = 22;

/// Executes one word, followed by one that it may jump over, for each pair.
fn on_all_pairs(words: &[u32]) -> Coverage {
    let mut coverage = Coverage::default();
    let mut program = Vec::new();
    for left in EDGES {
        for right in EDGES {
            program.extend(set(LEFT, left));
            program.extend(set(RIGHT, right));
            program.extend(words);
        }
    }
    program.extend(set(17, HALT));
    program.push(0x73);
    let limit = program.len() as u64;
    compare(program, &[], &[], limit, &mut coverage);
    assert_eq!(coverage.traps.get("halt"), Some(&1));
    coverage
}

#[test]
fn operations_on_registers() {
    let pairs = (EDGES.len() * EDGES.len()) as u64;
    let mut executed = 0;
    for (funct7, functions) in [(0, 0..8), (1, 0..8), (0x20, 0..1), (0x20, 5..6)] {
        for funct3 in functions {
            let coverage = on_all_pairs(&[register(funct7, funct3, RESULT, LEFT, RIGHT)]);
            assert_eq!(coverage.steps, 5 * pairs + 2);
            executed += 1;
        }
    }
    assert_eq!(executed, 18);
}

#[test]
fn operations_on_immediates() {
    let values = [0, 1, 2, 31, 0x7ff, 0x800, 0x801, 0xffe, 0xfff];
    let words: Vec<u32> = [0, 2, 3, 4, 6, 7]
        .into_iter()
        .flat_map(|funct3| values.map(|value| immediate(0x13, funct3, RESULT, LEFT, value)))
        .collect();
    on_all_pairs(&words);
    let shifts: Vec<u32> = [(1, 0), (5, 0), (5, 0x400)]
        .into_iter()
        .flat_map(|(funct3, kind)| {
            (0..32).map(move |by| immediate(0x13, funct3, RESULT, LEFT, kind | by))
        })
        .collect();
    on_all_pairs(&shifts);
}

#[test]
fn branches() {
    let skipped = immediate(0x13, 0, RESULT, RESULT, 1);
    for funct3 in [0, 1, 4, 5, 6, 7] {
        on_all_pairs(&[branch(funct3, LEFT, RIGHT, 8), skipped]);
        // Backward: over a jump to the branch, which returns to a jump to the end, or passes.
        let jump = branch(0, 0, 0, 8);
        let ended = [jump, jump, branch(funct3, LEFT, RIGHT, 0x2000 - 4)];
        on_all_pairs(&ended);
    }
}
