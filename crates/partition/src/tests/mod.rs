//! Tests of whole circuits in parts: valid statements, cheats and the check that each fails, costs, files.

pub(crate) mod attempt;
pub(crate) mod chain;
pub(crate) mod cheats;
mod classes;
mod completeness;
mod hostile;
mod multiset_cheats;
mod partition_file;
mod random;
