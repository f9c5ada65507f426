//! A workflow over many processes and machines, with a NATS cluster between them.
//!
//! Each role runs in processes of its own, any number of them. One coordinator leads, and another takes over
//! when it is gone; likewise, one process at a time runs a source or hands out the sequencer's emissions. All
//! dispatchers work.

mod console;
mod error;
mod lead;
mod roles;
mod site;

pub use console::Console;
pub use error::ClusterError;
pub use lead::{LedWorkflows, lead};
pub use roles::{run_collectors, run_dispatchers, run_sequencer, run_sources, run_submissions};
pub use site::ProcessContext;
