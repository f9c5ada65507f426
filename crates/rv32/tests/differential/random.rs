//! Random programs and random words.

use rand::{Rng, SeedableRng, rngs::StdRng};

use proofmill_rv32::{Instruction, Segment, SegmentKind};

use super::compare::{Coverage, compare};
use super::generate::{Generator, PROLOGUE};
use super::table::{lookup, mnemonics};

/// Number of random instructions: the value of `INSTRUCTIONS`, or a million.
fn instructions() -> u64 {
    std::env::var("INSTRUCTIONS").map_or(1_000_000, |count| {
        count.parse().expect("INSTRUCTIONS is a number")
    })
}

#[test]
fn random_programs_execute_alike() {
    let mut coverage = Coverage::default();
    let mut programs = 0;
    while coverage.steps < instructions() + PROLOGUE * programs {
        let mut random = StdRng::seed_from_u64(programs);
        let words = Generator::new(&mut random).program(500);
        let input: Vec<u8> = (0..random.random_range(0..100))
            .map(|_| random.random())
            .collect();
        let data = Segment {
            kind: SegmentKind::Data,
            address: 0x0200_0800,
            words: (0..256).map(|_| random.random()).collect(),
            zero_words: 0,
        };
        compare(words, &[data], &input, 2_000, &mut coverage);
        programs += 1;
    }
    println!(
        "{} instructions of {programs} programs: {:?}, {:?}",
        coverage.steps, coverage.mnemonics, coverage.traps
    );
    for mnemonic in mnemonics() {
        let count = coverage.mnemonics.get(mnemonic).copied().unwrap_or(0);
        assert!(count >= 1_000, "{mnemonic}: {count}");
    }
    let traps: Vec<_> = coverage.traps.keys().copied().collect();
    let expected = [
        "call",
        "fetch",
        "halt",
        "illegal",
        "input misaligned",
        "load fault",
        "load misaligned",
        "output misaligned",
        "store fault",
        "store misaligned",
        "target",
    ];
    assert_eq!(traps, expected);
}

#[test]
fn random_words_are_instructions_in_both_or_neither() {
    let mut random = StdRng::seed_from_u64(0);
    for _ in 0..1_000_000 {
        let mut word: u32 = random.random();
        if random.random() {
            // All bits but those of registers and immediates are mostly as in some instruction.
            word = word & 0x01ff_fff0 | random.random_range(0..4) << 29 & 0x4000_0000 | 3;
        }
        assert_eq!(
            Instruction::decode(word).is_ok(),
            lookup(word).is_some(),
            "{word:#010x}"
        );
    }
}
