//! Errors of the host's side.

use std::time::Duration;

use crate::host::options::Address;
use crate::nvme::Status;

/// The reason why the device did not carry out a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// No connection to the device.
    #[error("connecting to {address}: {reason}")]
    Connect {
        /// The address.
        address: Address,
        /// The system's error.
        reason: String,
    },
    /// The connection is gone. Commands that were under way may have been executed.
    #[error("the connection is lost: {0}")]
    Lost(String),
    /// The device broke the protocol; the connection is closed.
    #[error("the device breaks the protocol: {0}")]
    Protocol(String),
    /// The device refused a command.
    #[error("{command}: {status}")]
    Refused {
        /// The command.
        command: &'static str,
        /// The status.
        status: Status,
        /// Dword 0 of the completion.
        result: u32,
    },
    /// No answer in time; the connection is closed.
    #[error("{command}: no answer in {after:?}")]
    TimedOut {
        /// The command.
        command: &'static str,
        /// The limit.
        after: Duration,
    },
    /// As many commands are outstanding as the queue holds.
    #[error("the queue is full")]
    QueueFull,
    /// It is no device that this driver can use.
    #[error("no usable ZKPU: {0}")]
    Unusable(String),
}

impl HostError {
    /// Whether the connection ended without a sign that the device is broken, so that a new one may help.
    pub fn is_loss(&self) -> bool {
        matches!(self, Self::Lost(_) | Self::Connect { .. })
    }

    /// The status of a command that was refused.
    pub fn status(&self) -> Option<Status> {
        match self {
            Self::Refused { status, .. } => Some(*status),
            _ => None,
        }
    }
}
