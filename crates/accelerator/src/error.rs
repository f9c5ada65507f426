//! What can go wrong on a device.

use crate::device::BasesId;

/// Why a device did not do what it was asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no such device here, or it cannot be used.
    #[error("no device: {reason}")]
    NoDevice {
        /// What is missing.
        reason: String,
    },
    /// The device broke, and takes no more jobs.
    #[error("the device {device} failed: {reason}")]
    Failed {
        /// Its name.
        device: String,
        /// What it said.
        reason: String,
    },
    /// The device's memory does not hold what the job needs.
    #[error("the device has no room for {bytes} more bytes: evict bases, or use a smaller part")]
    OutOfMemory {
        /// What was asked for.
        bytes: u64,
    },
    /// The bases are not resident: they were never loaded here, or evicted.
    #[error("bases {0} are not on this device: load them")]
    UnknownBases(BasesId),
    /// The job does not fit the bases, the domain or the device.
    #[error("the job cannot be run: {0}")]
    BadJob(String),
    /// The job was cancelled.
    #[error("the job was cancelled")]
    Cancelled,
}
