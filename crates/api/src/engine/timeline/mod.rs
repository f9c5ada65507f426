//! Drawings of an engine's work, from its events.
//!
//! [`trace`] writes a file for Perfetto and Chrome's trace viewer. [`waterfall`] draws an SVG that shows
//! the stages of each partition over time, and when each worker was idle.

mod model;
mod scale;
mod trace;
mod waterfall;

pub use model::{Bar, Load, Row, Timeline, Worker};
pub use trace::trace;
pub use waterfall::waterfall;
pub(crate) use waterfall::without_picture;
