//! Generating witnesses from a circuit's inputs.

mod options;
mod program;

pub use options::{Generator, GeneratorProgram, WitnessGenerator};
pub(crate) use program::run;
