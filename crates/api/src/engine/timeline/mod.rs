//! Pictures of what an engine did, from its events.
//!
//! [`trace`] is for Perfetto and Chrome's trace viewer, [`waterfall`] an SVG that shows for each
//! partition when it was in which stage, and for each worker when it had nothing to do.

mod model;
mod scale;
mod trace;
mod waterfall;

pub use model::{Bar, Load, Row, Timeline, Worker};
pub use trace::trace;
pub use waterfall::waterfall;
