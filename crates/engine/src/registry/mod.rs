//! What is known of circuits: where their files are, and what those said when they were registered.

mod inspect;
mod registered;

pub(crate) use inspect::{Inspection, curve_of, inspect};
pub(crate) use registered::{KeyPoints, Registered};
