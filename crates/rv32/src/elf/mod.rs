//! Executables: static 32-bit little-endian ELF files for RISC-V.
//!
//! Sources: System V Application Binary Interface, chapters 4 and 5 (header and program headers); RISC-V ABIs
//! Specification, version 1.0, part "RISC-V ELF Specification" (machine number and flags).

mod error;
mod load;
#[cfg(test)]
mod sample;
#[cfg(test)]
mod tests;

pub use error::{ElfError, HeaderField, SegmentFault};
pub use load::{ELF_BYTES_MAX, load};
