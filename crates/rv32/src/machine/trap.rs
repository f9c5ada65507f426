//! Traps: reasons why an execution cannot go on.

use thiserror::Error;

use super::OUTPUT_BYTES_MAX;
use crate::instruction::IllegalInstruction;
use crate::memory_map::DATA_REGION;

/// An instruction that cannot be executed. The machine is as before the instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("trap at pc {pc:#010x}, cycle {cycle}: {cause}")]
pub struct Trap {
    /// Number of steps before the instruction.
    pub cycle: u64,
    /// Address of the instruction.
    pub pc: u32,
    /// What is wrong.
    pub cause: TrapCause,
}

/// Cause of a trap. Where several hold, the first of this list is reported.
///
/// Misalignment and faults have the names of the exceptions in The RISC-V Instruction Set Manual, Volume II, version
/// 20240411, section "Machine Cause (mcause) Register". Which accesses they are raised for is left to the environment,
/// and is defined here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TrapCause {
    /// The program has halted before.
    #[error("the program has halted with code {code}")]
    Halted {
        /// The exit code.
        code: u32,
    },
    /// The address of the instruction is outside of code.
    #[error(
        "instruction access fault: the address is outside of code; a jump went astray or code has no end"
    )]
    InstructionAccessFault,
    /// The word is no supported instruction.
    #[error("illegal instruction: {0}")]
    IllegalInstruction(#[from] IllegalInstruction),
    /// The target of a jump, or of a branch that is taken, is not a multiple of 4. Raised at the jump.
    #[error("instruction address misaligned: target {target:#010x} is not a multiple of 4")]
    InstructionAddressMisaligned {
        /// The target.
        target: u32,
    },
    /// The address of a load is not a multiple of its width.
    #[error("load address misaligned: {address:#010x} is not a multiple of {width_bytes}")]
    LoadAddressMisaligned {
        /// Address of the first byte.
        address: u32,
        /// Width of the access, bytes.
        width_bytes: u32,
    },
    /// The address of a load is outside of the data region.
    #[error(
        "load access fault: {address:#010x} is outside of data, {:#010x}..{:#010x}",
        DATA_REGION.start,
        DATA_REGION.end
    )]
    LoadAccessFault {
        /// Address of the first byte.
        address: u32,
    },
    /// The address of a store is not a multiple of its width.
    #[error("store address misaligned: {address:#010x} is not a multiple of {width_bytes}")]
    StoreAddressMisaligned {
        /// Address of the first byte.
        address: u32,
        /// Width of the access, bytes.
        width_bytes: u32,
    },
    /// The address of a store is outside of the data region: in code, for instance.
    #[error(
        "store access fault: {address:#010x} is outside of data, {:#010x}..{:#010x}",
        DATA_REGION.start,
        DATA_REGION.end
    )]
    StoreAccessFault {
        /// Address of the first byte.
        address: u32,
    },
    /// Register a7 has no environment call's number.
    #[error("environment call {number} does not exist; a7 has to be from 0 to 5")]
    UnknownCall {
        /// Value of a7.
        number: u32,
    },
    /// A word is read before the end of the input, at a position that is not a multiple of 4.
    #[error(
        "a word of the input is read at byte {position}, not a multiple of 4; read bytes until one"
    )]
    InputMisaligned {
        /// Number of bytes read before.
        position: u32,
    },
    /// A word is written after a number of bytes that is not a multiple of 4.
    #[error(
        "a word of the output is written at byte {position}, not a multiple of 4; write bytes until one"
    )]
    OutputMisaligned {
        /// Number of bytes written before.
        position: u32,
    },
    /// The output would be longer than [`OUTPUT_BYTES_MAX`].
    #[error("the output is full at {OUTPUT_BYTES_MAX} bytes")]
    OutputFull,
}
