//! Making witnesses of inputs.

mod options;
mod program;

pub use options::{Generator, GeneratorProgram, WitnessGenerator};
pub(crate) use program::run;
