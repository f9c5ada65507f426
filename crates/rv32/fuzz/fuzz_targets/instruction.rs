//! Any words are decoded, encoded again and executed without a panic: `cargo +nightly fuzz run instruction`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proofmill_rv32::{Instruction, Program, Segment, SegmentKind};
use proofmill_rv32_fuzz::execute;

const START: u32 = 0x1000;

fuzz_target!(|bytes: &[u8]| {
    let (words, input) = bytes.as_chunks();
    let words: Vec<u32> = words.iter().map(|word| u32::from_le_bytes(*word)).collect();
    for word in &words {
        match Instruction::decode(*word) {
            Ok(instruction) => assert_eq!(instruction.encode(), Ok(*word)),
            Err(error) => assert_eq!(error.word, *word),
        }
    }
    let code = Segment {
        kind: SegmentKind::Code,
        address: START,
        words,
        zero_words: 0,
    };
    if let Ok(program) = Program::new(START, vec![code]) {
        execute(&program, input);
    }
});
