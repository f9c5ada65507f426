//! A workflow over many processes and machines, with a NATS cluster between them.
//!
//! Each role runs by itself, as many of it as one likes. Of coordinators one leads, and another takes
//! over when it is gone; of the processes that could run a source, or hand out what the sequencer
//! emits, one does. Dispatchers all work.

mod error;
mod lead;
mod roles;
mod site;

pub use error::ClusterError;
pub use lead::{Leading, lead};
pub use roles::{run_collectors, run_dispatchers, run_sequencer, run_sources, run_submissions};
pub use site::Site;
