//! Files with witnesses and generators' inputs, kept until their jobs end.

mod store;
mod writer;

pub(crate) use store::{InputName, Inputs, Staged};
pub use writer::Upload;
