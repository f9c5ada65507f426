//! Whole circuits in parts: what holds, what each cheat fails at, what it costs, what is kept.

pub(crate) mod attempt;
pub(crate) mod chain;
pub(crate) mod cheats;
mod classes;
mod completeness;
mod partition_file;
mod random;
