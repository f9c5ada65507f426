//! Registered circuits: their files, and the properties read from these at registration.

mod inspect;
mod registered;

pub(crate) use inspect::{Inspection, curve_of, inspect};
pub(crate) use registered::{KeyPoints, Registered};
