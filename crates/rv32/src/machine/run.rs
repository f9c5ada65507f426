//! The state of the machine, and its execution.

use thiserror::Error;

use super::call::Streams;
use super::effects::Context;
use super::memory::Memory;
use super::{Call, INPUT_BYTES_MAX, RegisterRead, RegisterWrite, Step, Trap, TrapCause};
use crate::instruction::{Instruction, Register};
use crate::memory_map::STACK_TOP;
use crate::program::Program;

/// A machine with one thread, at some step of a program's execution.
///
/// At the start, pc is the entry, the stack pointer is [`STACK_TOP`], the other registers are zero, and memory is zero
/// outside of the program's data.
#[derive(Clone, Debug)]
pub struct Machine<'a> {
    program: &'a Program,
    registers: [u32; Register::COUNT],
    pc: u32,
    cycle: u64,
    memory: Memory,
    streams: Streams<'a>,
    exit_code: Option<u32>,
}

/// Why [`Machine::run`] came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// The program halted.
    Halted {
        /// Its exit code.
        code: u32,
    },
    /// An instruction could not be executed.
    Trapped(Trap),
    /// The limit of steps was reached; another run goes on.
    LimitReached,
}

/// An input longer than [`INPUT_BYTES_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the input has {bytes} bytes, of which {INPUT_BYTES_MAX} are allowed")]
pub struct InputTooLong {
    /// Length of the input, bytes.
    pub bytes: usize,
}

// === impl Machine ===

impl<'a> Machine<'a> {
    /// A machine before the first step of a program that reads an input.
    ///
    /// # Errors
    /// The input is longer than [`INPUT_BYTES_MAX`].
    pub fn new(program: &'a Program, input: &'a [u8]) -> Result<Self, InputTooLong> {
        if input.len() > INPUT_BYTES_MAX {
            return Err(InputTooLong { bytes: input.len() });
        }
        let mut registers = [0; Register::COUNT];
        registers[Register::SP.index()] = STACK_TOP;
        Ok(Self {
            program,
            registers,
            pc: program.entry(),
            cycle: 0,
            memory: Memory::new(program.data_words()),
            streams: Streams {
                input,
                position: 0,
                output: Vec::new(),
            },
            exit_code: None,
        })
    }

    /// Executes one instruction.
    ///
    /// # Errors
    /// The instruction cannot be executed, or the program has halted. The machine is unchanged, so that a further call
    /// returns the same trap.
    pub fn step(&mut self) -> Result<Step, Trap> {
        self.checked_step().map_err(|cause| Trap {
            cycle: self.cycle,
            pc: self.pc,
            cause,
        })
    }

    fn checked_step(&mut self) -> Result<Step, TrapCause> {
        if let Some(code) = self.exit_code {
            return Err(TrapCause::Halted { code });
        }
        let pc = self.pc;
        let word = self
            .program
            .code_word(pc)
            .ok_or(TrapCause::InstructionAccessFault)?;
        let instruction = Instruction::decode(word)?;
        let (left, right) = instruction.sources();
        let (rs1, rs2) = (
            left.map(|rs1| self.read(rs1)),
            right.map(|rs2| self.read(rs2)),
        );
        let context = Context {
            pc,
            left: rs1.map_or(0, |read| read.value),
            right: rs2.map_or(0, |read| read.value),
            memory: &self.memory,
            streams: &self.streams,
        };
        let effects = context.effects(instruction)?;

        // Nothing fails from here on.
        let rd = effects
            .register
            .and_then(|(register, value)| self.write(register, value));
        if let Some(access) = effects
            .memory
            .filter(|access| access.before != access.after)
        {
            self.memory.store(access.address, access.after);
        }
        if let Some(call) = effects.call {
            self.streams.apply(call);
            if let Call::Halt { code } = call {
                self.exit_code = Some(code);
            }
        }
        let cycle = self.cycle;
        self.cycle += 1;
        self.pc = effects.next_pc;
        Ok(Step {
            cycle,
            pc,
            next_pc: effects.next_pc,
            word,
            instruction,
            rs1,
            rs2,
            rd,
            memory: effects.memory,
            call: effects.call,
        })
    }

    /// Executes until the program halts, an instruction traps, or `limit` further steps are done. `observe` is called
    /// after each step, the halting one included.
    pub fn run(&mut self, limit: u64, mut observe: impl FnMut(&Step)) -> Exit {
        for _ in 0..limit {
            match self.step() {
                Ok(step) => {
                    observe(&step);
                    if let Some(Call::Halt { code }) = step.call {
                        return Exit::Halted { code };
                    }
                }
                Err(trap) => return Exit::Trapped(trap),
            }
        }
        Exit::LimitReached
    }

    fn read(&self, register: Register) -> RegisterRead {
        RegisterRead {
            register,
            value: self.register(register),
        }
    }

    fn write(&mut self, register: Register, after: u32) -> Option<RegisterWrite> {
        if register == Register::ZERO {
            return None;
        }
        let before = std::mem::replace(&mut self.registers[register.index()], after);
        Some(RegisterWrite {
            register,
            before,
            after,
        })
    }

    /// Address of the next instruction.
    pub fn pc(&self) -> u32 {
        self.pc
    }

    /// Number of executed steps.
    pub fn cycle(&self) -> u64 {
        self.cycle
    }

    /// The value of a register.
    pub fn register(&self, register: Register) -> u32 {
        self.registers[register.index()]
    }

    /// The memory word that contains the byte of an address, or `None` outside of the data region.
    pub fn memory_word(&self, address: u32) -> Option<u32> {
        self.memory.load(address)
    }

    /// Number of bytes of the input that were read.
    pub fn input_position(&self) -> usize {
        self.streams.position
    }

    /// Bytes written so far.
    pub fn output(&self) -> &[u8] {
        &self.streams.output
    }

    /// The exit code, once the program has halted.
    pub fn exit_code(&self) -> Option<u32> {
        self.exit_code
    }
}
