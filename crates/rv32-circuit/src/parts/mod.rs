//! The parts of the circuit, one file for those that belong together.

mod memory;
mod portal;
mod program;
mod registers;
mod start;
mod steps;
mod streams;

pub(crate) use memory::{data, zero};
#[cfg(test)]
pub(crate) use program::packed;
pub(crate) use program::program;
pub(crate) use registers::registers;
pub(crate) use start::start;
pub(crate) use steps::steps;
pub(crate) use streams::{input, output};
