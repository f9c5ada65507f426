//! The machine: it executes a program step by step and records what a step circuit and a memory argument need.

mod call;
mod effects;
mod memory;
mod run;
mod step;
#[cfg(test)]
mod test_programs;
mod trap;
#[cfg(test)]
mod trap_tests;

pub use call::{
    Call, END_OF_INPUT, HALT, INPUT_BYTES_MAX, OUTPUT_BYTES_MAX, READ_BYTE, READ_WORD, REMAINING,
    WRITE_BYTE, WRITE_WORD,
};
pub use run::{Exit, InputTooLong, Machine};
pub use step::{AccessKind, MemoryAccess, RegisterRead, RegisterWrite, Step};
pub use trap::{Trap, TrapCause};
