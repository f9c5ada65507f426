//! Whole circuits in parts: what holds, what each cheat fails at, what it costs.

mod attempt;
mod chain;
mod cheats;
mod classes;
mod completeness;
mod random;
