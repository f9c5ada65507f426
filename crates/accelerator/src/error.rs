//! Errors of devices.

use crate::device::BasesId;

/// The reason why a device did not do its work.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The device does not exist on this machine, or cannot be used.
    #[error("no device: {reason}")]
    NoDevice {
        /// The missing or unusable part, such as a driver.
        reason: String,
    },
    /// The device is broken, and takes no more jobs.
    #[error("the device {device} failed: {reason}")]
    Failed {
        /// The device's name.
        device: String,
        /// The cause, in the words of the driver or of the failed check.
        reason: String,
    },
    /// The device's memory does not hold what the job needs.
    #[error("the device has no room for {bytes} more bytes: evict bases, or use a smaller part")]
    OutOfMemory {
        /// Bytes requested.
        bytes: u64,
    },
    /// The bases are not resident: they were never loaded on this device, or they were evicted.
    #[error("bases {0} are not on this device: load them")]
    UnknownBases(BasesId),
    /// The job does not fit the bases, the domain or the device.
    #[error("the job cannot be run: {0}")]
    BadJob(String),
    /// The job was cancelled.
    #[error("the job was cancelled")]
    Cancelled,
}
