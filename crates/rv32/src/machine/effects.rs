//! What an instruction does to the machine, computed before anything changes.

use super::call::{Call, Streams};
use super::memory::Memory;
use super::{AccessKind, MemoryAccess, TrapCause};
use crate::instruction::{Instruction, LoadOperation, Register, StoreOperation};

/// Values that an instruction is executed on.
pub(super) struct Context<'a> {
    pub(super) pc: u32,
    /// Left operand, or zero if the instruction reads none.
    pub(super) left: u32,
    /// Right operand, or zero if the instruction reads none.
    pub(super) right: u32,
    pub(super) memory: &'a Memory,
    pub(super) streams: &'a Streams<'a>,
}

/// Changes by one instruction.
pub(super) struct Effects {
    pub(super) next_pc: u32,
    /// Destination, possibly register 0, and its value.
    pub(super) register: Option<(Register, u32)>,
    pub(super) memory: Option<MemoryAccess>,
    pub(super) call: Option<Call>,
}

// === impl Context ===

impl Context<'_> {
    /// The effects of an instruction, or the cause of its trap.
    pub(super) fn effects(&self, instruction: Instruction) -> Result<Effects, TrapCause> {
        let Self {
            pc, left, right, ..
        } = *self;
        let mut effects = Effects {
            // Code ends below the end of the address space, so the sum does not overflow.
            next_pc: pc + 4,
            register: None,
            memory: None,
            call: None,
        };
        match instruction {
            Instruction::Lui { rd, immediate } => effects.register = Some((rd, immediate)),
            Instruction::Auipc { rd, immediate } => {
                effects.register = Some((rd, pc.wrapping_add(immediate)));
            }
            Instruction::Jal { rd, offset } => {
                effects.register = Some((rd, effects.next_pc));
                effects.next_pc = aligned_target(pc.wrapping_add_signed(offset))?;
            }
            Instruction::Jalr { rd, offset, .. } => {
                effects.register = Some((rd, effects.next_pc));
                effects.next_pc = aligned_target(left.wrapping_add_signed(offset) & !1)?;
            }
            Instruction::Branch {
                operation, offset, ..
            } => {
                if operation.is_taken(left, right) {
                    effects.next_pc = aligned_target(pc.wrapping_add_signed(offset))?;
                }
            }
            Instruction::Load {
                operation,
                rd,
                offset,
                ..
            } => {
                let address = left.wrapping_add_signed(offset);
                let word = self.loaded_word(operation, address)?;
                effects.register = Some((rd, operation.extract(word, address)));
                effects.memory = Some(access(AccessKind::Load, address, word, word));
            }
            Instruction::Store {
                operation, offset, ..
            } => {
                let address = left.wrapping_add_signed(offset);
                let before = self.replaced_word(operation, address)?;
                let after = operation.insert(before, address, right);
                effects.memory = Some(access(AccessKind::Store, address, before, after));
            }
            Instruction::Immediate {
                operation,
                rd,
                immediate,
                ..
            } => {
                let operation = operation.register_operation();
                effects.register = Some((rd, operation.evaluate(left, immediate as u32)));
            }
            Instruction::Register { operation, rd, .. } => {
                effects.register = Some((rd, operation.evaluate(left, right)));
            }
            Instruction::Fence { .. } => {}
            Instruction::EnvironmentCall => {
                let call = self.streams.call(left, right)?;
                if matches!(call, Call::Halt { .. }) {
                    effects.next_pc = pc;
                }
                effects.register = call.result().map(|result| (Register::A0, result));
                effects.call = Some(call);
            }
        }
        Ok(effects)
    }

    fn loaded_word(&self, operation: LoadOperation, address: u32) -> Result<u32, TrapCause> {
        let width_bytes = operation.width_bytes();
        if !address.is_multiple_of(width_bytes) {
            return Err(TrapCause::LoadAddressMisaligned {
                address,
                width_bytes,
            });
        }
        self.memory
            .load(address)
            .ok_or(TrapCause::LoadAccessFault { address })
    }

    /// The word before a store.
    fn replaced_word(&self, operation: StoreOperation, address: u32) -> Result<u32, TrapCause> {
        let width_bytes = operation.width_bytes();
        if !address.is_multiple_of(width_bytes) {
            return Err(TrapCause::StoreAddressMisaligned {
                address,
                width_bytes,
            });
        }
        self.memory
            .load(address)
            .ok_or(TrapCause::StoreAccessFault { address })
    }
}

fn aligned_target(target: u32) -> Result<u32, TrapCause> {
    if target.is_multiple_of(4) {
        Ok(target)
    } else {
        Err(TrapCause::InstructionAddressMisaligned { target })
    }
}

fn access(kind: AccessKind, address: u32, before: u32, after: u32) -> MemoryAccess {
    MemoryAccess {
        kind,
        address: address & !3,
        before,
        after,
    }
}
