//! The typed form of an instruction.

use super::{
    BranchOperation, ImmediateOperation, LoadOperation, Register, RegisterOperation, StoreOperation,
};

/// One instruction of RV32IM, by format.
///
/// Offsets and immediates have their arithmetic value: sign-extended, and in bytes.
///
/// Source: The RISC-V Instruction Set Manual, Volume I, version 20240411, chapters "RV32I Base Integer Instruction Set"
/// and "M Extension for Integer Multiplication and Division".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Instruction {
    /// `LUI`: rd = immediate.
    Lui {
        /// Destination.
        rd: Register,
        /// Value, a multiple of 4096.
        immediate: u32,
    },
    /// `AUIPC`: rd = pc + immediate.
    Auipc {
        /// Destination.
        rd: Register,
        /// Value, a multiple of 4096.
        immediate: u32,
    },
    /// `JAL`: rd = pc + 4, then a jump to pc + offset.
    Jal {
        /// Destination of the return address.
        rd: Register,
        /// Distance in bytes, even, −2²⁰ to 2²⁰ − 2.
        offset: i32,
    },
    /// `JALR`: rd = pc + 4, then a jump to rs1 + offset with bit 0 cleared.
    Jalr {
        /// Destination of the return address.
        rd: Register,
        /// Base of the target.
        rs1: Register,
        /// Distance in bytes, −2048 to 2047.
        offset: i32,
    },
    /// A conditional branch to pc + offset.
    Branch {
        /// Condition.
        operation: BranchOperation,
        /// Left operand.
        rs1: Register,
        /// Right operand.
        rs2: Register,
        /// Distance in bytes, even, −4096 to 4094.
        offset: i32,
    },
    /// A load from rs1 + offset into rd.
    Load {
        /// Width and extension.
        operation: LoadOperation,
        /// Destination.
        rd: Register,
        /// Base of the address.
        rs1: Register,
        /// Distance in bytes, −2048 to 2047.
        offset: i32,
    },
    /// A store of rs2 to rs1 + offset.
    Store {
        /// Width.
        operation: StoreOperation,
        /// Base of the address.
        rs1: Register,
        /// Stored register.
        rs2: Register,
        /// Distance in bytes, −2048 to 2047.
        offset: i32,
    },
    /// An operation on a register and an immediate.
    Immediate {
        /// Operation.
        operation: ImmediateOperation,
        /// Destination.
        rd: Register,
        /// Left operand.
        rs1: Register,
        /// Right operand: −2048 to 2047, or 0 to 31 for a shift.
        immediate: i32,
    },
    /// An operation on two registers.
    Register {
        /// Operation.
        operation: RegisterOperation,
        /// Destination.
        rd: Register,
        /// Left operand.
        rs1: Register,
        /// Right operand.
        rs2: Register,
    },
    /// `FENCE`, without an effect on a machine with one thread.
    ///
    /// Section 2.7 has implementations ignore the fields `rd` and `rs1` and treat reserved modes as a normal fence, so
    /// every value is accepted. They are kept for encoding only; neither register is read or written.
    Fence {
        /// Bits 31 to 20: mode, predecessor and successor sets; 0 to 4095.
        ordering: u16,
        /// Ignored field.
        rd: Register,
        /// Ignored field.
        rs1: Register,
    },
    /// `ECALL`: a call to the environment, chosen by register a7.
    EnvironmentCall,
}

impl Instruction {
    /// Registers that are read: the left and the right operand. An environment call reads a7 and a0.
    pub const fn sources(self) -> (Option<Register>, Option<Register>) {
        match self {
            Self::Lui { .. } | Self::Auipc { .. } | Self::Jal { .. } | Self::Fence { .. } => {
                (None, None)
            }
            Self::Jalr { rs1, .. } | Self::Load { rs1, .. } | Self::Immediate { rs1, .. } => {
                (Some(rs1), None)
            }
            Self::Branch { rs1, rs2, .. }
            | Self::Store { rs1, rs2, .. }
            | Self::Register { rs1, rs2, .. } => (Some(rs1), Some(rs2)),
            Self::EnvironmentCall => (Some(Register::A7), Some(Register::A0)),
        }
    }
}
