//! Engines as endpoints of a dispatcher's executor: in another process, or in this one.

mod job;
mod local;
mod outcome;
mod remote;

pub use local::in_process_endpoint;
pub use remote::endpoints;
