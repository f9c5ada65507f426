//! Registered circuits: their files, and the properties read from these at registration.

mod inspect;
mod key_file;
mod registered;

pub(crate) use inspect::{Inspection, inspect};
pub(crate) use key_file::KeyFileInfo;
pub(crate) use registered::{KeyPoints, Registered};
