//! The record of one step.

use super::Call;
use crate::instruction::{Instruction, Register};

/// One executed instruction with all values that it read and wrote.
///
/// At most two registers are read, one register is written and one memory word is accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Number of steps before this one.
    pub cycle: u64,
    /// Address of the instruction.
    pub pc: u32,
    /// Address of the next instruction. A halt stays at its own address.
    pub next_pc: u32,
    /// The instruction's word.
    pub word: u32,
    /// The instruction.
    pub instruction: Instruction,
    /// Left operand, if the instruction reads one. For an environment call, a7.
    pub rs1: Option<RegisterRead>,
    /// Right operand, if the instruction reads one. For an environment call, a0.
    pub rs2: Option<RegisterRead>,
    /// The written register. `None` if the destination is register 0, which never changes.
    pub rd: Option<RegisterWrite>,
    /// The accessed memory word, for loads and stores.
    pub memory: Option<MemoryAccess>,
    /// What an environment call did.
    pub call: Option<Call>,
}

/// A register with the value read from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegisterRead {
    /// The register, possibly register 0.
    pub register: Register,
    /// Its value.
    pub value: u32,
}

/// A register with its values before and after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegisterWrite {
    /// The register, never register 0.
    pub register: Register,
    /// Value before the step.
    pub before: u32,
    /// Value after the step.
    pub after: u32,
}

/// Whether memory was read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessKind {
    /// The value stays the same.
    Load,
    /// Bytes of the word are replaced.
    Store,
}

/// A memory word with its values before and after a step.
///
/// An access to one or two bytes is recorded as one to the aligned word that contains them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryAccess {
    /// Whether the word was read or written.
    pub kind: AccessKind,
    /// Address of the word, a multiple of 4 in [`DATA_REGION`](crate::memory_map::DATA_REGION).
    pub address: u32,
    /// Value before the step.
    pub before: u32,
    /// Value after the step. Equal to `before` for a load.
    pub after: u32,
}
