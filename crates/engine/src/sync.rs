//! The locks of model-checked code. The model check replaces this module by its own.

pub(crate) use std::sync::Mutex;
