//! Errors of the roles of a cluster.

use proofmill_bus as bus;

use crate::coordinator::CoordinatorError;
use crate::mill::MillError;
use crate::remote::RemoteError;

/// Failure that keeps a role from starting, or stops it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClusterError {
    /// The bus cannot be used.
    #[error(transparent)]
    Connect(#[from] bus::ConnectError),
    /// Communication with the leader failed: no answer, an unreadable message, another version of the
    /// workflow, or a refusal.
    #[error(transparent)]
    Remote(#[from] RemoteError),
    /// The coordinator failed for another reason than a takeover.
    #[error(transparent)]
    Coordinator(#[from] CoordinatorError),
    /// An error that also occurs with a workflow in one process.
    #[error(transparent)]
    Mill(#[from] MillError),
    /// The workflow has nothing for this role to do.
    #[error("workflow {workflow:?} has {what}")]
    Nothing {
        /// The workflow.
        workflow: String,
        /// Description of the missing part.
        what: String,
    },
}
