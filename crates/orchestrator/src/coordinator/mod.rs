//! The coordinator: the core behind a log, with channels to the roles around it.

mod handle;
pub mod outbox;
mod questions;
mod report;
mod result_check;
mod result_gate;
mod service;

pub(crate) use handle::Command;
pub use handle::{CoordinatorGone, Handle};
pub use questions::{QuestionTimes, question_seconds};
pub use result_check::{ResultCheck, ResultChecks, UncheckedResult};
pub use service::{Coordinator, CoordinatorError, Options};
