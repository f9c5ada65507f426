//! Whole circuits in parts: what holds, what each cheat fails at, what it costs, what is kept.

mod attempt;
mod chain;
mod cheats;
mod classes;
mod completeness;
mod partition_file;
mod random;
