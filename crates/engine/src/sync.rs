//! The locks of what is model-checked: the model's own stand in their place there.

pub(crate) use std::sync::Mutex;
