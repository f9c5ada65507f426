//! The execution of RV32IM programs as a circuit in parts.
//!
//! [`Rv32Circuit`] is a [`PartitionedCircuit`](proofmill_partition::PartitionedCircuit) for a program and a [`Shape`].
//! It proves the [`Statement`]: the program, on this input or on some private input, halts with this exit code and this
//! output. The program is fixed by the partition, and with it by the keys. `proofmill-rv32` has the machine that is
//! proved, with its environment calls; `docs/rv32.md` has the costs.
//!
//! ```
//! use ark_bn254::Fr;
//! use proofmill_partition::Partition;
//! use proofmill_rv32::{Program, Segment, SegmentKind};
//! use proofmill_rv32_circuit::{Rv32Circuit, Shape};
//!
//! // li a0, 5; li a7, 0; ecall: halt with code 5.
//! let code = Segment {
//!     kind: SegmentKind::Code,
//!     address: 0x1000,
//!     words: vec![0x0050_0513, 0x0000_0893, 0x0000_0073],
//!     zero_words: 0,
//! };
//! let program = Program::new(0x1000, vec![code])?;
//! let shape = Shape {
//!     steps: 4,
//!     step_parts: 1,
//!     program_rows: 4,
//!     zero_words: 2,
//!     input_words: 7,
//!     output_words: 7,
//!     ..Shape::for_steps(4)
//! };
//! // Once for the program: it needs no witness.
//! let partition = Partition::<Fr>::new(&Rv32Circuit::blank(&program, shape)?)?;
//! // For each execution.
//! let circuit = Rv32Circuit::new(&program, b"input", shape)?;
//! let traces = partition.trace(&circuit)?;
//! assert_eq!(circuit.statement().unwrap().exit_code, 5);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Parts
//!
//! | class | parts | a part has |
//! |---|---|---|
//! | `start` | 1 | the state before the first step, the length of the input |
//! | `program` | by the program | decoded instructions, each put as often as it is executed |
//! | `data` | by the program | words of memory with initial values |
//! | `zero` | by the shape | words of memory that are zero at the start |
//! | `input` | by the shape | words of the input |
//! | `steps` | by the shape | steps of the machine |
//! | `output` | by the shape | words of the output |
//! | `registers` | 1 | registers, the exit code, the end |
//!
//! # A step
//!
//! A step takes from the multiset of the partition the row of the program at its pc: control bits, the numbers of
//! registers, and the immediate, decoded when the partition is made. pc and the positions in the input and the output go
//! from step to step, and through portals from part to part. After the halting call pc is 2³², where the row is
//! a halting call again; the last pc must be that.
//!
//! A step makes four accesses to memory: the left operand, the right operand, a data word, the destination. Registers, the
//! input and the output are memory with addresses of their own, so that a call to read or write a byte is a load or store of
//! one. Each access takes (address, value, time) as an earlier one left it and puts (address, value, now); now is four
//! times the number of the step, plus the place. This is offline memory checking (Blum, Evans, Gemmell, Kannan, Naor,
//! 1991) with the sum of the partition's multiset for the comparison.
//!
//! # Possible cheats of a prover, and what refuses them
//!
//! | cheat | refused by |
//! |---|---|
//! | execute another instruction | the row's entry is in no part of class `program`; the parts of a row each have a range |
//! | hide a difference in the immediate, whose range is not checked where it is read | it is zero, or the right operand, or added by a store, or multiplied by a branch: `entry.rs` shows that it is an integer then |
//! | skip a step, or jump elsewhere | the next step takes the row at the pc that this one computes; portals between parts |
//! | stop early, or in a trap | pc is 2³² after the last step; a trap has no row, no word of memory, or no solution |
//! | return a value that was never written | the entry is not in the multiset |
//! | return a stale value | its entry was taken by a later access before; the next access would have none to take |
//! | return a value from the future | now − time − 1 has 28 bits |
//! | give a word two initial values | data are at preprocessed addresses; zero words strictly increase from the end of the data to the end of memory |
//! | access an address outside of data | no part gives it an initial value, and the first access takes an earlier one |
//! | load a register's or the input's word by its address | those addresses are above all that 32 bits of the adder reach |
//! | write register 0 | decoding makes the destination a register that stays zero and that no instruction reads |
//! | a wrong sum, comparison or address | 33 bits of the adder |
//! | a wrong product or shift | 64 bits of the product, and one for its sign |
//! | a wrong quotient | the equation with the remainder, whose sign is that of the dividend and whose size is below the divisor's: the adder's bits |
//! | a quotient by zero other than the manual's | no carry only if the divisor is zero and the quotient is 2³² − 1 |
//! | a misaligned access | the low bits of the address are zero for its width |
//! | another environment call, or an unknown one | one of six bits is set, and its number is a7 |
//! | pretend the end of the input, or read beyond it | the number of remaining bytes is zero if and only if the bit says so |
//! | bytes beyond the end in the last word | exactly one word is marked as the first beyond whole ones, and its bytes beyond the tail are zero |
//! | another input (if public), output, length or exit code | public inputs pack the words; the output's words are what the last writes left, its length is the position after the last step |
//! | take another word's last state at the end | each address has as many puts as takes by accesses and one more; a0 and the output are taken with address, value and time in range, the rest is left over for the others |
//!
//! `src/tests/cheats.rs` and `src/tests/tampering.rs` try them.
//!
//! # Differences from the machine
//!
//! None that a proof shows: an execution that traps has no proof. The shape limits an execution's steps, words of memory,
//! input and output further than the machine does.

mod builder;
mod circuit;
mod demand;
mod entry;
mod error;
mod execution;
mod part_witness;
mod parts;
mod row;
mod shape;
mod statement;
mod step;
mod sum;
#[cfg(test)]
mod tests;

pub use circuit::Rv32Circuit;
pub use demand::Demand;
pub use error::{Rv32Error, ShapeError, StatementError};
pub use shape::{STEPS_MAX, Shape};
pub use statement::Statement;
