//! Traces of blocks: the place of each task in its block's trace, what the core reports, and the spans made of
//! it.
//!
//! The core makes no spans. It reports what it records anyway ([`TraceEvent`]), and [`spans_of`] turns a
//! report into spans outside of it. Identifiers of spans are derived from the names of task and attempt, so
//! that a dispatcher, an engine or the next leader names a span without having been told its identifier.

mod event;
mod log;
mod spans;
mod task;

pub use event::{AttemptEnd, AttemptReport, BarrierReport, EndReport, TraceEvent};
pub(crate) use log::attempt_log_span;
pub use spans::{delivery_span, record, run_span, spans_of};
pub use task::{Cause, TaskTrace};
