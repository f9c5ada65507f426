//! Rows of the program: instructions decoded into the control bits of a step.

use proofmill_rv32::instruction::{
    BranchOperation, ImmediateOperation, LoadOperation, RegisterOperation, StoreOperation,
};
use proofmill_rv32::{Instruction, Program, Register};

use crate::entry::SINK;

/// The address at which a program stays that has halted. No instruction has it, and no jump reaches it: targets are
/// below 2³².
pub(crate) const HALTED: u64 = 1 << 32;

/// A control bit of a step.
///
/// Exactly one of the first eight, the classes, is set in each row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Flag {
    /// Class: everything else.
    Plain,
    /// Class: `SLL`, `SLLI`.
    ShiftLeft,
    /// Class: `SRL`, `SRLI`, `SRA`, `SRAI`.
    ShiftRight,
    /// Class: `DIV`, `DIVU`, `REM`, `REMU`.
    Divide,
    /// Class: loads.
    Load,
    /// Class: stores.
    Store,
    /// Class: branches.
    Branch,
    /// Class: environment calls.
    Call,
    /// The right operand is the immediate.
    Immediate,
    /// The left operand of the multiplier is signed.
    LeftSigned,
    /// The right operand of the multiplier is signed.
    RightSigned,
    /// The adder subtracts.
    Subtract,
    /// The result is the low word of the multiplier, or the quotient.
    Low,
    /// The result is the high word of the multiplier, or the remainder.
    High,
    /// The result is the comparison.
    Less,
    /// The result is the bitwise and.
    And,
    /// The result is the bitwise or.
    Or,
    /// The result is the bitwise exclusive or.
    Xor,
    /// `JAL`.
    Jump,
    /// `JALR`.
    JumpRegister,
    /// A load or store of two or four bytes.
    SecondByte,
    /// A load or store of four bytes.
    UpperHalf,
    /// `LB`.
    SignedByte,
    /// `LH`.
    SignedHalf,
    /// A branch on the comparison, not on equality.
    BranchLess,
    /// A branch if its condition does not hold.
    BranchUnless,
}

/// The number of control bits.
pub(crate) const FLAGS: usize = 26;

/// The classes, of which each row has exactly one.
pub(crate) const CLASSES: [Flag; 8] = [
    Flag::Plain,
    Flag::ShiftLeft,
    Flag::ShiftRight,
    Flag::Divide,
    Flag::Load,
    Flag::Store,
    Flag::Branch,
    Flag::Call,
];

/// A decoded instruction at its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    /// The address, or [`HALTED`].
    pub(crate) pc: u64,
    /// Control bits: bit i is the flag of number i.
    pub(crate) flags: u32,
    /// The destination: 1 to 31, or [`SINK`].
    pub(crate) rd: u8,
    /// The register of the left operand; 0 if there is none.
    pub(crate) rs1: u8,
    /// The register of the right operand; 0 if there is none.
    pub(crate) rs2: u8,
    /// The right operand; for branches the target. Those of `AUIPC` and `JAL` have pc added.
    pub(crate) immediate: u32,
}

// === impl Row ===

impl Row {
    /// The row at which a halted program stays: a call with the number 0.
    pub(crate) const fn halted() -> Self {
        Self {
            pc: HALTED,
            flags: 1 << Flag::Call as u32,
            rd: SINK,
            rs1: 0,
            rs2: 0,
            immediate: 0,
        }
    }

    /// The rows of a program: that of [`halted`](Self::halted), then the instructions in increasing order of
    /// addresses. Words that are no instructions have none.
    pub(crate) fn of_program(program: &Program) -> Vec<Self> {
        let words = program.code_words();
        let rows =
            words.filter_map(|(pc, word)| Some(Self::new(pc, Instruction::decode(word).ok()?)));
        std::iter::once(Self::halted()).chain(rows).collect()
    }

    /// The row of an instruction at an address.
    pub(crate) fn new(pc: u32, instruction: Instruction) -> Self {
        let row = Self {
            pc: pc.into(),
            flags: 0,
            rd: SINK,
            rs1: 0,
            rs2: 0,
            immediate: 0,
        };
        match instruction {
            Instruction::Lui { rd, immediate } => row.plain(rd, immediate),
            Instruction::Auipc { rd, immediate } => row.plain(rd, pc.wrapping_add(immediate)),
            Instruction::Jal { rd, offset } => row
                .plain(rd, pc.wrapping_add_signed(offset))
                .with(&[Flag::Jump]),
            Instruction::Jalr { rd, rs1, offset } => row
                .plain(rd, offset as u32)
                .from(rs1)
                .with(&[Flag::JumpRegister]),
            Instruction::Branch {
                operation,
                rs1,
                rs2,
                offset,
            } => Self {
                immediate: pc.wrapping_add_signed(offset),
                ..row.from(rs1).and(rs2).with(branch_flags(operation))
            },
            Instruction::Load {
                operation,
                rd,
                rs1,
                offset,
            } => Self {
                immediate: offset as u32,
                ..row.from(rs1).to(rd).with(load_flags(operation))
            },
            Instruction::Store {
                operation,
                rs1,
                rs2,
                offset,
            } => Self {
                immediate: offset as u32,
                ..row.from(rs1).and(rs2).with(store_flags(operation))
            },
            Instruction::Immediate {
                operation,
                rd,
                rs1,
                immediate,
            } => Self {
                immediate: immediate as u32,
                ..row
                    .from(rs1)
                    .to(rd)
                    .with(immediate_flags(operation))
                    .with(&[Flag::Immediate])
            },
            Instruction::Register {
                operation,
                rd,
                rs1,
                rs2,
            } => row
                .from(rs1)
                .and(rs2)
                .to(rd)
                .with(register_flags(operation)),
            Instruction::Fence { .. } => row.with(&[Flag::Plain]),
            Instruction::EnvironmentCall => {
                let row = row.from(Register::A7).and(Register::A0);
                row.to(Register::A0).with(&[Flag::Call])
            }
        }
    }

    /// Whether a control bit is set.
    pub(crate) const fn has(&self, flag: Flag) -> bool {
        self.flags >> flag as u32 & 1 == 1
    }

    /// rd = the left operand + immediate.
    fn plain(self, rd: Register, immediate: u32) -> Self {
        Self {
            immediate,
            ..self.to(rd).with(&[Flag::Plain, Flag::Immediate])
        }
    }

    fn with(mut self, flags: &[Flag]) -> Self {
        for flag in flags {
            self.flags |= 1 << *flag as u32;
        }
        self
    }

    const fn from(mut self, rs1: Register) -> Self {
        self.rs1 = rs1.number();
        self
    }

    const fn and(mut self, rs2: Register) -> Self {
        self.rs2 = rs2.number();
        self
    }

    const fn to(mut self, rd: Register) -> Self {
        self.rd = match rd.number() {
            0 => SINK,
            number => number,
        };
        self
    }
}

const fn branch_flags(operation: BranchOperation) -> &'static [Flag] {
    use Flag::{Branch, BranchLess, BranchUnless, LeftSigned, RightSigned, Subtract};
    match operation {
        BranchOperation::Beq => &[Branch, Subtract],
        BranchOperation::Bne => &[Branch, Subtract, BranchUnless],
        BranchOperation::Blt => &[Branch, Subtract, BranchLess, LeftSigned, RightSigned],
        BranchOperation::Bge => &[
            Branch,
            Subtract,
            BranchLess,
            BranchUnless,
            LeftSigned,
            RightSigned,
        ],
        BranchOperation::Bltu => &[Branch, Subtract, BranchLess],
        BranchOperation::Bgeu => &[Branch, Subtract, BranchLess, BranchUnless],
    }
}

const fn load_flags(operation: LoadOperation) -> &'static [Flag] {
    use Flag::{Immediate, Load, SecondByte, SignedByte, SignedHalf, UpperHalf};
    match operation {
        LoadOperation::Lb => &[Load, Immediate, SignedByte],
        LoadOperation::Lbu => &[Load, Immediate],
        LoadOperation::Lh => &[Load, Immediate, SecondByte, SignedHalf],
        LoadOperation::Lhu => &[Load, Immediate, SecondByte],
        LoadOperation::Lw => &[Load, Immediate, SecondByte, UpperHalf],
    }
}

const fn store_flags(operation: StoreOperation) -> &'static [Flag] {
    use Flag::{SecondByte, Store, UpperHalf};
    match operation {
        StoreOperation::Sb => &[Store],
        StoreOperation::Sh => &[Store, SecondByte],
        StoreOperation::Sw => &[Store, SecondByte, UpperHalf],
    }
}

const fn immediate_flags(operation: ImmediateOperation) -> &'static [Flag] {
    register_flags(operation.register_operation())
}

const fn register_flags(operation: RegisterOperation) -> &'static [Flag] {
    use Flag::{
        And, Divide, High, LeftSigned, Less, Low, Or, Plain, RightSigned, ShiftLeft, ShiftRight,
        Subtract, Xor,
    };
    match operation {
        RegisterOperation::Add => &[Plain],
        RegisterOperation::Sub => &[Plain, Subtract],
        RegisterOperation::Sll => &[ShiftLeft, Low],
        RegisterOperation::Slt => &[Plain, Subtract, Less, LeftSigned, RightSigned],
        RegisterOperation::Sltu => &[Plain, Subtract, Less],
        RegisterOperation::Xor => &[Plain, Xor],
        RegisterOperation::Srl => &[ShiftRight, High],
        RegisterOperation::Sra => &[ShiftRight, High, LeftSigned],
        RegisterOperation::Or => &[Plain, Or],
        RegisterOperation::And => &[Plain, And],
        RegisterOperation::Mul => &[Plain, Low],
        RegisterOperation::Mulh => &[Plain, High, LeftSigned, RightSigned],
        RegisterOperation::Mulhsu => &[Plain, High, LeftSigned],
        RegisterOperation::Mulhu => &[Plain, High],
        RegisterOperation::Div => &[Divide, Low, LeftSigned, RightSigned],
        RegisterOperation::Divu => &[Divide, Low],
        RegisterOperation::Rem => &[Divide, High, LeftSigned, RightSigned],
        RegisterOperation::Remu => &[Divide, High],
    }
}
