//! What can go wrong with a role.

use proofmill_bus as bus;

use crate::coordinator::CoordinatorError;
use crate::mill::MillError;
use crate::remote::RemoteError;

/// Why a role could not start, or stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClusterError {
    /// The bus cannot be used.
    #[error(transparent)]
    Connect(#[from] bus::ConnectError),
    /// Another process cannot be understood, or does something else.
    #[error(transparent)]
    Remote(#[from] RemoteError),
    /// The coordinator failed, and not because another took over.
    #[error(transparent)]
    Coordinator(#[from] CoordinatorError),
    /// As for a workflow in one process.
    #[error(transparent)]
    Mill(#[from] MillError),
    /// The workflow has nothing for this role to do.
    #[error("workflow {workflow:?} has {what}")]
    Nothing {
        /// The workflow.
        workflow: String,
        /// What is missing.
        what: String,
    },
}
