//! A whole workflow in one process: log, coordinator, dispatchers, sources and sink.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use proofmill_orchestrator::mill::{Mill, Options, Registry};
//! use proofmill_orchestrator::shutdown;
//! use proofmill_workflow::{Workflow, render};
//!
//! let workflow = Workflow::load("workflow.toml").map_err(|found| render(&found))?;
//! let mill = Mill::open(&workflow, Registry::default(), Options::in_directory("state")).await?;
//! let (_trigger, shutdown) = shutdown::channel();
//! let summary = mill.run(shutdown).await?;
//! println!("complete: {}", summary.is_complete());
//! # Ok(()) }
//! ```

mod checks;
mod emitted;
mod options;
mod presence;
mod registry;
mod roles;
mod run;
mod sinks;
mod store;
mod sweep;

pub(crate) use checks::{checks, result_checks};
pub use options::{MillError, Options, SourceSummary, Summary};
pub(crate) use registry::program_path;
pub use registry::{
    CheckMaker, EndpointMaker, ExecutorMaker, Registry, ResultCheckMaker, SourceMaker,
};
pub(crate) use roles::{Roles, executor};
pub use run::Mill;
pub(crate) use run::{history_options, make_private};
pub(crate) use sinks::{sinks, sweep_sink_programs};
pub use sweep::BlobSweep;
pub(crate) use sweep::sweep_blobs;
