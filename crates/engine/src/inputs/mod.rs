//! Witnesses and generators' inputs on disk, until their jobs are at their end.

mod store;
mod writer;

pub(crate) use store::{InputName, Inputs, Staged};
pub use writer::Upload;
