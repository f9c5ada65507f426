//! Engines as a dispatcher's executor sees them: elsewhere, or in this process.

mod job;
mod local;
mod outcome;
mod remote;

pub use local::in_process_endpoint;
pub use remote::endpoints;
