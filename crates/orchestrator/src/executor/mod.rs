//! Executors of tasks: a program, a prover in this process, or engines.

pub mod engine;
mod machine;
mod native;
pub mod process;
mod program;
mod resolved;
mod traits;

pub use machine::{MachineFailure, MissingResource, Unfinished};
pub use native::{Context, FromPayload, IntoPayloads, Json, Native, Produced, Prover, ProverError};
pub use program::Program;
pub use resolved::{ResolveError, Resolved};
pub use traits::{Cancel, Execution, Executor, Product};
