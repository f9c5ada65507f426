//! RV32IM: instructions, executables, and a machine that records every step, for provers of execution.
//!
//! ```
//! use proofmill_rv32::{Exit, Machine, Program, Segment, SegmentKind};
//!
//! // li a0, 5; li a7, 0; ecall: halt with code 5.
//! let code = Segment {
//!     kind: SegmentKind::Code,
//!     address: 0x1000,
//!     words: vec![0x0050_0513, 0x0000_0893, 0x0000_0073],
//!     zero_words: 0,
//! };
//! let program = Program::new(0x1000, vec![code])?;
//! let mut machine = Machine::new(&program, b"input")?;
//! let mut written = Vec::new();
//! let exit = machine.run(1_000, |step| written.extend(step.rd));
//! assert_eq!(exit, Exit::Halted { code: 5 });
//! assert_eq!((written[0].before, written[0].after), (0, 5));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! * [`instruction`]: [`Instruction`], its decoder, encoder and arithmetic.
//! * [`program`] and [`elf`]: a checked [`Program`] with a digest, from segments or from an executable.
//! * [`machine`]: the [`Machine`], what a [`Step`] records, environment calls and traps.
//! * [`memory_map`]: addresses of code, data and the stack.
#![forbid(unsafe_code)]

pub mod elf;
pub mod instruction;
pub mod machine;
pub mod memory_map;
pub mod program;

pub use elf::ElfError;
pub use instruction::{Instruction, Register};
pub use machine::{Exit, Machine, Step, Trap, TrapCause};
pub use program::{Program, ProgramError, Segment, SegmentKind};
