//! Conversion between the engine's types and the messages.

mod event;
mod request;
mod view;

pub(crate) use event::event;
pub(crate) use request::{
    DEFAULT_CLIENT, circuit_ref, job_id, preload_tier, registration, submission,
};
pub(crate) use view::{circuit, job, priority, result, status, submitted};
