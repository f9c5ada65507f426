//! Executors of tasks: a program, a prover in this process, or engines.

pub mod engine;
mod machine;
mod native;
mod program;
mod resolved;
mod traits;

pub use machine::{Unfinished, machine_failure_of};
pub(crate) use machine::{failure_of_fetching, failure_of_reading, failure_of_storing};
pub(crate) use native::in_background;
pub use native::{Context, FromPayload, IntoPayloads, Json, Native, Produced, Prover, ProverError};
pub use program::Program;
pub(crate) use program::trace_of;
pub use resolved::{ResolveError, Resolved};
pub use traits::{Execution, Executor, Product};

pub use tokio_util::sync::CancellationToken;
