//! Failures of the machine: those of blobs and of native provers, beside [those of programs](proofmill_process::MachineFailure).
//!
//! None counts as an attempt at the task: the dispatcher returns the task untried, pauses, and resumes when a probe
//! succeeds.

use proofmill_bus::{BlobError, with_sources};
use proofmill_process::{MachineFailure, MissingResource};

use super::resolved::ResolveError;
use crate::record::Failure;

/// The reason why an execution has no product.
#[derive(Clone, Debug, PartialEq)]
pub enum Unfinished {
    /// The attempt failed; it counts, and is recorded.
    Failed(Failure),
    /// The machine failed: no attempt was made, or its result was lost.
    Machine(MachineFailure),
}

/// The machine's failure, if the blob store could not be used; `None` if the store answered
/// that the blob is missing or damaged.
pub(crate) fn failure_of_reading(error: &BlobError) -> Option<MachineFailure> {
    error.is_of_store().then(|| failure_of_storing(error))
}

/// Converts an error of storing a blob to a failure of the machine. No such error is the task's fault.
pub(crate) fn failure_of_storing(error: &BlobError) -> MachineFailure {
    MachineFailure {
        missing: error
            .io()
            .and_then(MissingResource::of)
            .unwrap_or(MissingResource::BlobStore),
        detail: with_sources(error),
    }
}

/// Converts an error of fetching a payload like [`failure_of_reading`].
pub(crate) fn failure_of_fetching(error: &ResolveError) -> Option<MachineFailure> {
    let ResolveError::Blob { source, .. } = error;
    Some(MachineFailure {
        detail: with_sources(error),
        ..failure_of_reading(source)?
    })
}

/// The machine's failure, if one of an error's sources reports an exhausted resource.
pub fn machine_failure_of(error: &(dyn std::error::Error + 'static)) -> Option<MachineFailure> {
    let mut next = Some(error);
    let mut causes = std::iter::from_fn(|| {
        let cause = next?;
        next = cause.source();
        Some(cause)
    });
    let missing = causes.find_map(|cause| MissingResource::of(cause.downcast_ref()?))?;
    let detail = with_sources(error);
    Some(MachineFailure { missing, detail })
}

// === impl Unfinished ===

impl From<Failure> for Unfinished {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl From<MachineFailure> for Unfinished {
    fn from(failure: MachineFailure) -> Self {
        Self::Machine(failure)
    }
}

#[cfg(test)]
mod tests {
    use rustix::io::Errno;

    use super::*;

    #[test]
    fn a_missing_blob_is_the_tasks_and_a_store_out_of_reach_is_the_machines() {
        let digest = proofmill_bus::Digest::of(b"x");
        assert_eq!(failure_of_reading(&BlobError::Missing(digest)), None);
        let corrupt = BlobError::Corrupt {
            expected: digest,
            found: digest,
        };
        assert_eq!(failure_of_reading(&corrupt), None);
        let directory = |errno: Errno| BlobError::Directory {
            path: "blobs".into(),
            source: errno.into(),
        };
        let missing = |error| failure_of_reading(&error).map(|failure| failure.missing);
        assert_eq!(
            missing(directory(Errno::NOSPC)),
            Some(MissingResource::DiskSpace)
        );
        assert_eq!(
            missing(directory(Errno::ROFS)),
            Some(MissingResource::BlobStore)
        );
    }
}
