//! Checks of a workflow before it runs.

mod chains;
mod checker;
mod cycles;
mod ethproofs;
mod flow;
mod groups;
mod queues;
mod scaling;
mod stages;
mod validate;
mod verification;

pub use validate::{check, validate, validate_file};
