//! Words of every instruction, in binary with the fields of the manual's listings apart, beside their assembly.
//!
//! Source: The RISC-V Instruction Set Manual, Volume I, version 20240411, chapter "RV32/64G Instruction Set Listings".
//! Registers are x1 for rd, x2 for rs1 and x3 for rs2; of each format's immediates, every bit is set in
//! one and clear in another.

use std::collections::BTreeSet;
use std::mem::discriminant;

use super::{
    BranchOperation, ImmediateOperation, Instruction, LoadOperation, Register, RegisterOperation,
    StoreOperation,
};

const RD: Register = Register::from_field(1);
const LEFT: Register = Register::from_field(2);
const RIGHT: Register = Register::from_field(3);

const fn jal(offset: i32) -> Instruction {
    Instruction::Jal { rd: RD, offset }
}

const fn branch(operation: BranchOperation, offset: i32) -> Instruction {
    Instruction::Branch {
        operation,
        rs1: LEFT,
        rs2: RIGHT,
        offset,
    }
}

const fn load(operation: LoadOperation, offset: i32) -> Instruction {
    Instruction::Load {
        operation,
        rd: RD,
        rs1: LEFT,
        offset,
    }
}

const fn store(operation: StoreOperation, offset: i32) -> Instruction {
    Instruction::Store {
        operation,
        rs1: LEFT,
        rs2: RIGHT,
        offset,
    }
}

const fn immediate(operation: ImmediateOperation, immediate: i32) -> Instruction {
    Instruction::Immediate {
        operation,
        rd: RD,
        rs1: LEFT,
        immediate,
    }
}

const fn register(operation: RegisterOperation) -> Instruction {
    Instruction::Register {
        operation,
        rd: RD,
        rs1: LEFT,
        rs2: RIGHT,
    }
}

const fn fence(ordering: u16) -> Instruction {
    Instruction::Fence {
        ordering,
        rd: Register::ZERO,
        rs1: Register::ZERO,
    }
}

#[rustfmt::skip]
#[expect(clippy::unusual_byte_groupings, reason = "groups are the fields of the instruction")]
const KNOWN: [(&str, u32, Instruction); 51] = [
    ("lui x1, 0xabcde", 0b10101011110011011110_00001_0110111, Instruction::Lui { rd: RD, immediate: 0xabcd_e000 }),
    ("auipc x1, 0x12345", 0b00010010001101000101_00001_0010111, Instruction::Auipc { rd: RD, immediate: 0x1234_5000 }),
    ("jal x1, . + 2048", 0b00000000000100000000_00001_1101111, jal(2048)),
    ("jal x1, . - 4", 0b11111111110111111111_00001_1101111, jal(-4)),
    ("jal x1, . + 522238", 0b01111111111001111111_00001_1101111, jal(522238)),
    ("jal x1, . - 1048576", 0b10000000000000000000_00001_1101111, jal(-1048576)),
    ("jalr x1, -3(x2)", 0b111111111101_00010_000_00001_1100111, Instruction::Jalr { rd: RD, rs1: LEFT, offset: -3 }),
    ("beq x2, x3, . + 2048", 0b0000000_00011_00010_000_00001_1100011, branch(BranchOperation::Beq, 2048)),
    ("bne x2, x3, . - 4096", 0b1000000_00011_00010_001_00000_1100011, branch(BranchOperation::Bne, -4096)),
    ("blt x2, x3, . + 1030", 0b0100000_00011_00010_100_00110_1100011, branch(BranchOperation::Blt, 1030)),
    ("bge x2, x3, . - 2", 0b1111111_00011_00010_101_11111_1100011, branch(BranchOperation::Bge, -2)),
    ("bltu x2, x3, . + 4094", 0b0111111_00011_00010_110_11111_1100011, branch(BranchOperation::Bltu, 4094)),
    ("bgeu x2, x3, . + 30", 0b0000000_00011_00010_111_11110_1100011, branch(BranchOperation::Bgeu, 30)),
    ("lb x1, -2048(x2)", 0b100000000000_00010_000_00001_0000011, load(LoadOperation::Lb, -2048)),
    ("lh x1, 2047(x2)", 0b011111111111_00010_001_00001_0000011, load(LoadOperation::Lh, 2047)),
    ("lw x1, 4(x2)", 0b000000000100_00010_010_00001_0000011, load(LoadOperation::Lw, 4)),
    ("lbu x1, -1(x2)", 0b111111111111_00010_100_00001_0000011, load(LoadOperation::Lbu, -1)),
    ("lhu x1, 1365(x2)", 0b010101010101_00010_101_00001_0000011, load(LoadOperation::Lhu, 1365)),
    ("sb x3, -2048(x2)", 0b1000000_00011_00010_000_00000_0100011, store(StoreOperation::Sb, -2048)),
    ("sh x3, 1365(x2)", 0b0101010_00011_00010_001_10101_0100011, store(StoreOperation::Sh, 1365)),
    ("sw x3, 2047(x2)", 0b0111111_00011_00010_010_11111_0100011, store(StoreOperation::Sw, 2047)),
    ("addi x1, x2, -1", 0b111111111111_00010_000_00001_0010011, immediate(ImmediateOperation::Addi, -1)),
    ("slti x1, x2, -2048", 0b100000000000_00010_010_00001_0010011, immediate(ImmediateOperation::Slti, -2048)),
    ("sltiu x1, x2, 2047", 0b011111111111_00010_011_00001_0010011, immediate(ImmediateOperation::Sltiu, 2047)),
    ("xori x1, x2, 682", 0b001010101010_00010_100_00001_0010011, immediate(ImmediateOperation::Xori, 682)),
    ("ori x1, x2, 1", 0b000000000001_00010_110_00001_0010011, immediate(ImmediateOperation::Ori, 1)),
    ("andi x1, x2, -2", 0b111111111110_00010_111_00001_0010011, immediate(ImmediateOperation::Andi, -2)),
    ("slli x1, x2, 31", 0b0000000_11111_00010_001_00001_0010011, immediate(ImmediateOperation::Slli, 31)),
    ("srli x1, x2, 1", 0b0000000_00001_00010_101_00001_0010011, immediate(ImmediateOperation::Srli, 1)),
    ("srai x1, x2, 17", 0b0100000_10001_00010_101_00001_0010011, immediate(ImmediateOperation::Srai, 17)),
    ("add x1, x2, x3", 0b0000000_00011_00010_000_00001_0110011, register(RegisterOperation::Add)),
    ("sub x1, x2, x3", 0b0100000_00011_00010_000_00001_0110011, register(RegisterOperation::Sub)),
    ("sll x1, x2, x3", 0b0000000_00011_00010_001_00001_0110011, register(RegisterOperation::Sll)),
    ("slt x1, x2, x3", 0b0000000_00011_00010_010_00001_0110011, register(RegisterOperation::Slt)),
    ("sltu x1, x2, x3", 0b0000000_00011_00010_011_00001_0110011, register(RegisterOperation::Sltu)),
    ("xor x1, x2, x3", 0b0000000_00011_00010_100_00001_0110011, register(RegisterOperation::Xor)),
    ("srl x1, x2, x3", 0b0000000_00011_00010_101_00001_0110011, register(RegisterOperation::Srl)),
    ("sra x1, x2, x3", 0b0100000_00011_00010_101_00001_0110011, register(RegisterOperation::Sra)),
    ("or x1, x2, x3", 0b0000000_00011_00010_110_00001_0110011, register(RegisterOperation::Or)),
    ("and x1, x2, x3", 0b0000000_00011_00010_111_00001_0110011, register(RegisterOperation::And)),
    ("mul x1, x2, x3", 0b0000001_00011_00010_000_00001_0110011, register(RegisterOperation::Mul)),
    ("mulh x1, x2, x3", 0b0000001_00011_00010_001_00001_0110011, register(RegisterOperation::Mulh)),
    ("mulhsu x1, x2, x3", 0b0000001_00011_00010_010_00001_0110011, register(RegisterOperation::Mulhsu)),
    ("mulhu x1, x2, x3", 0b0000001_00011_00010_011_00001_0110011, register(RegisterOperation::Mulhu)),
    ("div x1, x2, x3", 0b0000001_00011_00010_100_00001_0110011, register(RegisterOperation::Div)),
    ("divu x1, x2, x3", 0b0000001_00011_00010_101_00001_0110011, register(RegisterOperation::Divu)),
    ("rem x1, x2, x3", 0b0000001_00011_00010_110_00001_0110011, register(RegisterOperation::Rem)),
    ("remu x1, x2, x3", 0b0000001_00011_00010_111_00001_0110011, register(RegisterOperation::Remu)),
    ("fence rw, w", 0b0000_0011_0001_00000_000_00000_0001111, fence(0x031)),
    ("fence.tso", 0b1000_0011_0011_00000_000_00000_0001111, fence(0x833)),
    ("ecall", 0b000000000000_00000_000_00000_1110011, Instruction::EnvironmentCall),
];

#[test]
fn known_words_decode_and_encode() {
    for (assembly, word, instruction) in KNOWN {
        assert_eq!(Instruction::decode(word), Ok(instruction), "{assembly}");
        assert_eq!(instruction.encode(), Ok(word), "{assembly}");
    }
}

#[test]
fn every_instruction_has_a_known_word() {
    let mnemonics: BTreeSet<_> = KNOWN
        .iter()
        .map(|(assembly, ..)| assembly.split([' ', '.']).next().unwrap())
        .collect();
    // 40 of RV32I, EBREAK left out, and 8 of the extension M.
    assert_eq!(mnemonics.len(), 39 + 8);
    let holds = |instruction: Instruction| {
        KNOWN
            .iter()
            .any(|(_, _, known)| discriminant(known) == discriminant(&instruction))
    };
    assert!(holds(Instruction::EnvironmentCall) && holds(fence(0)));
    let operations = |instruction| {
        KNOWN
            .iter()
            .filter(move |(_, _, known)| *known == instruction)
    };
    for operation in RegisterOperation::ALL {
        assert_eq!(operations(register(operation)).count(), 1, "{operation:?}");
    }
}
