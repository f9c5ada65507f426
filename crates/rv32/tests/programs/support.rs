//! Runs of the built programs.

use proofmill_rv32::{Exit, Machine, Program, elf};

/// A step limit that no test comes near.
const STEPS_MAX: u64 = 200_000_000;

/// What a run left.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) code: u32,
    pub(crate) output: Vec<u8>,
    pub(crate) steps: u64,
}

/// A program of `programs/built`.
pub(crate) fn program(name: &str) -> Program {
    let path = format!("{}/programs/built/{name}.elf", env!("CARGO_MANIFEST_DIR"));
    let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    elf::load(&bytes).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Runs a program to its halt.
pub(crate) fn run(program: &Program, input: &[u8]) -> Outcome {
    let mut machine = Machine::new(program, input).unwrap();
    match machine.run(STEPS_MAX, |_| {}) {
        Exit::Halted { code } => Outcome {
            code,
            output: machine.output().to_vec(),
            steps: machine.cycle(),
        },
        other => panic!("{other:?}"),
    }
}

/// Little-endian words.
pub(crate) fn words(bytes: &[u8]) -> Vec<u32> {
    let (words, rest) = bytes.as_chunks();
    assert!(rest.is_empty());
    words.iter().map(|word| u32::from_le_bytes(*word)).collect()
}
