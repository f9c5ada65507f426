//! Small programs for tests, from instructions.

use crate::instruction::{
    ImmediateOperation, Instruction, LoadOperation, Register, StoreOperation,
};
use crate::program::{Program, Segment, SegmentKind};

/// Address of the first instruction.
pub(super) const START: u32 = 0x1000;

/// A program of instructions.
pub(super) fn program(instructions: &[Instruction]) -> Program {
    let words = instructions
        .iter()
        .map(|instruction| instruction.encode().unwrap());
    program_of_words(words.collect())
}

/// A program of words, with or without meaning.
pub(super) fn program_of_words(words: Vec<u32>) -> Program {
    let code = Segment {
        kind: SegmentKind::Code,
        address: START,
        words,
        zero_words: 0,
    };
    Program::new(START, vec![code]).unwrap()
}

/// Two instructions that put a value into a register.
pub(super) fn set(rd: Register, value: u32) -> [Instruction; 2] {
    // The low part is sign-extended, so that half of the values need one page more.
    let low = (value as i32) << 20 >> 20;
    let immediate = value.wrapping_sub(low as u32);
    [Instruction::Lui { rd, immediate }, add(rd, rd, low)]
}

/// `addi`.
pub(super) fn add(rd: Register, rs1: Register, immediate: i32) -> Instruction {
    Instruction::Immediate {
        operation: ImmediateOperation::Addi,
        rd,
        rs1,
        immediate,
    }
}

/// A load of a0 from a7.
pub(super) fn load(operation: LoadOperation, offset: i32) -> Instruction {
    Instruction::Load {
        operation,
        rd: Register::A0,
        rs1: Register::A7,
        offset,
    }
}

/// A store of a0 to a7.
pub(super) fn store(operation: StoreOperation, offset: i32) -> Instruction {
    Instruction::Store {
        operation,
        rs1: Register::A7,
        rs2: Register::A0,
        offset,
    }
}
