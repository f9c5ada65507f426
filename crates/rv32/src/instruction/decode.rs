//! Words to instructions.

use thiserror::Error;

use super::{
    BranchOperation, ImmediateOperation, Instruction, LoadOperation, Register, RegisterOperation,
    StoreOperation,
};

/// A word that is no instruction of RV32IM, or one that is left out: `EBREAK`, `FENCE.I`, and the instructions on control
/// and status registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "word {word:#010x} is no supported instruction; compile for rv32im without other extensions"
)]
pub struct IllegalInstruction {
    /// The word.
    pub word: u32,
}

/// `funct7` of `SUB`, `SRA` and `SRAI`.
const ALTERNATE: u32 = 0x20;
/// `funct7` of the extension M.
const MULTIPLY: u32 = 0x01;

impl Instruction {
    /// Decodes a word. Every accepted word is the encoding of the result, bit by bit.
    ///
    /// # Errors
    /// The word is no instruction of RV32IM, or an unsupported one.
    pub const fn decode(word: u32) -> Result<Self, IllegalInstruction> {
        let rd = Register::from_field(word >> 7);
        let rs1 = Register::from_field(word >> 15);
        let decoded = match word & 0x7f {
            0x37 => Some(Self::Lui {
                rd,
                immediate: word & 0xffff_f000,
            }),
            0x17 => Some(Self::Auipc {
                rd,
                immediate: word & 0xffff_f000,
            }),
            0x6f => Some(Self::Jal {
                rd,
                offset: jump_offset(word),
            }),
            0x67 if funct3(word) == 0 => Some(Self::Jalr {
                rd,
                rs1,
                offset: upper_immediate(word),
            }),
            0x63 => branch(word),
            0x03 => load(word),
            0x23 => store(word),
            0x13 => immediate(word),
            0x33 => register(word),
            0x0f if funct3(word) == 0 => Some(Self::Fence {
                ordering: (word >> 20) as u16,
                rd,
                rs1,
            }),
            0x73 if word == 0x73 => Some(Self::EnvironmentCall),
            _ => None,
        };
        match decoded {
            Some(instruction) => Ok(instruction),
            None => Err(IllegalInstruction { word }),
        }
    }
}

const fn branch(word: u32) -> Option<Instruction> {
    let operation = match funct3(word) {
        0 => BranchOperation::Beq,
        1 => BranchOperation::Bne,
        4 => BranchOperation::Blt,
        5 => BranchOperation::Bge,
        6 => BranchOperation::Bltu,
        7 => BranchOperation::Bgeu,
        _ => return None,
    };
    Some(Instruction::Branch {
        operation,
        rs1: Register::from_field(word >> 15),
        rs2: Register::from_field(word >> 20),
        offset: branch_offset(word),
    })
}

const fn load(word: u32) -> Option<Instruction> {
    let operation = match funct3(word) {
        0 => LoadOperation::Lb,
        1 => LoadOperation::Lh,
        2 => LoadOperation::Lw,
        4 => LoadOperation::Lbu,
        5 => LoadOperation::Lhu,
        _ => return None,
    };
    Some(Instruction::Load {
        operation,
        rd: Register::from_field(word >> 7),
        rs1: Register::from_field(word >> 15),
        offset: upper_immediate(word),
    })
}

const fn store(word: u32) -> Option<Instruction> {
    let operation = match funct3(word) {
        0 => StoreOperation::Sb,
        1 => StoreOperation::Sh,
        2 => StoreOperation::Sw,
        _ => return None,
    };
    Some(Instruction::Store {
        operation,
        rs1: Register::from_field(word >> 15),
        rs2: Register::from_field(word >> 20),
        offset: (word as i32 >> 25) << 5 | (word >> 7 & 31) as i32,
    })
}

const fn immediate(word: u32) -> Option<Instruction> {
    let operation = match (funct3(word), word >> 25) {
        (0, _) => ImmediateOperation::Addi,
        (2, _) => ImmediateOperation::Slti,
        (3, _) => ImmediateOperation::Sltiu,
        (4, _) => ImmediateOperation::Xori,
        (6, _) => ImmediateOperation::Ori,
        (7, _) => ImmediateOperation::Andi,
        (1, 0) => ImmediateOperation::Slli,
        (5, 0) => ImmediateOperation::Srli,
        (5, ALTERNATE) => ImmediateOperation::Srai,
        _ => return None,
    };
    Some(Instruction::Immediate {
        operation,
        rd: Register::from_field(word >> 7),
        rs1: Register::from_field(word >> 15),
        immediate: if operation.is_shift() {
            (word >> 20 & 31) as i32
        } else {
            upper_immediate(word)
        },
    })
}

const fn register(word: u32) -> Option<Instruction> {
    let operation = match (word >> 25, funct3(word)) {
        (0, 0) => RegisterOperation::Add,
        (0, 1) => RegisterOperation::Sll,
        (0, 2) => RegisterOperation::Slt,
        (0, 3) => RegisterOperation::Sltu,
        (0, 4) => RegisterOperation::Xor,
        (0, 5) => RegisterOperation::Srl,
        (0, 6) => RegisterOperation::Or,
        (0, 7) => RegisterOperation::And,
        (ALTERNATE, 0) => RegisterOperation::Sub,
        (ALTERNATE, 5) => RegisterOperation::Sra,
        (MULTIPLY, 0) => RegisterOperation::Mul,
        (MULTIPLY, 1) => RegisterOperation::Mulh,
        (MULTIPLY, 2) => RegisterOperation::Mulhsu,
        (MULTIPLY, 3) => RegisterOperation::Mulhu,
        (MULTIPLY, 4) => RegisterOperation::Div,
        (MULTIPLY, 5) => RegisterOperation::Divu,
        (MULTIPLY, 6) => RegisterOperation::Rem,
        (MULTIPLY, 7) => RegisterOperation::Remu,
        _ => return None,
    };
    Some(Instruction::Register {
        operation,
        rd: Register::from_field(word >> 7),
        rs1: Register::from_field(word >> 15),
        rs2: Register::from_field(word >> 20),
    })
}

const fn funct3(word: u32) -> u32 {
    word >> 12 & 7
}

/// The immediate of format I: bits 31 to 20, sign-extended.
const fn upper_immediate(word: u32) -> i32 {
    word as i32 >> 20
}

/// The offset of format B: bits 31, 7, 30 to 25 and 11 to 8, from the highest.
const fn branch_offset(word: u32) -> i32 {
    let high = (word as i32 >> 31) << 12;
    let low = (word << 4 & 0x800) | (word >> 20 & 0x7e0) | (word >> 7 & 0x1e);
    high | low as i32
}

/// The offset of format J: bits 31, 19 to 12, 20 and 30 to 21, from the highest.
const fn jump_offset(word: u32) -> i32 {
    let high = (word as i32 >> 31) << 20;
    let low = (word & 0xf_f000) | (word >> 9 & 0x800) | (word >> 20 & 0x7fe);
    high | low as i32
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng, rngs::StdRng};

    use super::*;

    /// Opcodes with the two low bits of 32-bit instructions that some instruction here has.
    const OPCODES: [u32; 11] = [
        0x37, 0x17, 0x6f, 0x67, 0x63, 0x03, 0x23, 0x13, 0x33, 0x0f, 0x73,
    ];

    #[test]
    fn an_accepted_word_encodes_to_itself() {
        let mut random = StdRng::seed_from_u64(1);
        let (mut accepted, mut refused) = (0, 0);
        for index in 0..1_000_000 {
            let mut word: u32 = random.random();
            if index % 8 != 0 {
                word = word & !0x7f | OPCODES[random.random_range(0..OPCODES.len())];
            }
            match Instruction::decode(word) {
                Ok(instruction) => {
                    assert_eq!(instruction.encode(), Ok(word), "{instruction:?}");
                    accepted += 1;
                }
                Err(error) => {
                    assert_eq!(error.word, word);
                    refused += 1;
                }
            }
        }
        assert!(accepted > 100_000 && refused > 100_000);
    }

    /// All values of the fields that choose an instruction, and the number that the manual lists for each opcode.
    #[test]
    fn as_many_functions_as_in_the_manual_are_accepted() {
        let expected = [
            (0x37, 1024),
            (0x17, 1024),
            (0x6f, 1024),
            (0x67, 128),
            (0x63, 6 * 128),
            (0x03, 5 * 128),
            (0x23, 3 * 128),
            (0x13, 6 * 128 + 3),
            (0x33, 18),
            (0x0f, 128),
            (0x73, 1),
        ];
        for opcode in 0..128 {
            let accepted = (0..1024u32)
                .map(|functions| opcode | (functions & 7) << 12 | (functions >> 3) << 25)
                .filter(|word| Instruction::decode(*word).is_ok())
                .count();
            let listed = expected.iter().find(|(listed, _)| *listed == opcode);
            assert_eq!(
                accepted,
                listed.map_or(0, |(_, count)| *count),
                "{opcode:#x}"
            );
        }
    }

    #[test]
    fn unsupported_instructions_are_refused() {
        let words = [
            (0x0000_0000, "all zeros"),
            (0xffff_ffff, "all ones"),
            (0x0010_0073, "ebreak"),
            (0x3020_0073, "mret"),
            (0x1050_0073, "wfi"),
            (0xc000_1073, "unimp: csrrw x0, cycle, x0"),
            (0xc000_2573, "rdcycle a0"),
            (0x0000_100f, "fence.i"),
            (0x0000_00f3, "ecall with rd"),
            (0x0000_8073, "ecall with rs1"),
            (0x0205_9513, "slli with a shift amount of 32"),
            (0x4005_1513, "slli with bit 30"),
            (0x4050_45b3, "xnor of Zbb"),
            (0x0000_3503, "ld of RV64"),
            (0x1005_252f, "lr.w of A"),
            (0x0000_0001, "c.nop"),
        ];
        for (word, name) in words {
            assert_eq!(
                Instruction::decode(word),
                Err(IllegalInstruction { word }),
                "{name}"
            );
        }
    }

    #[test]
    fn every_form_of_fence_is_accepted_and_kept() {
        for word in [0x0ff0_000f, 0x8330_000f, 0x0100_000f, 0xffff_8f8f] {
            let instruction = Instruction::decode(word).unwrap();
            assert!(matches!(instruction, Instruction::Fence { .. }));
            assert_eq!(instruction.sources(), (None, None));
            assert_eq!(instruction.encode(), Ok(word));
        }
    }
}
