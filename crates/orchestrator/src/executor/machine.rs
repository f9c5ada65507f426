//! Failures of the machine, distinguished by type from those of a task.
//!
//! Each is classified where it arises, by the system's error number: a full disk, a lack of
//! descriptors or an unreachable blob store say nothing about the task, so they do not count as
//! attempts at it. The dispatcher returns the task untried, pauses, and resumes when a probe
//! succeeds.

use std::fmt;
use std::io;

use proofmill_bus::{BlobError, with_sources};
use rustix::io::Errno;

use super::resolved::ResolveError;
use crate::record::Failure;

/// A failure of this machine, which does not count as an attempt at the task.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{missing}: {detail}")]
pub struct MachineFailure {
    /// The resource that is missing.
    pub missing: MissingResource,
    /// The operation that failed, and the system's error.
    pub detail: String,
}

/// A resource that a machine lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissingResource {
    /// Disk space or inodes, by the file system or by a quota (`ENOSPC`, `EDQUOT`).
    DiskSpace,
    /// File descriptors, of the process or of the system (`EMFILE`, `ENFILE`).
    Descriptors,
    /// Memory for the kernel or for a new process (`ENOMEM`).
    Memory,
    /// Processes and threads, whose number is limited (`EAGAIN` from fork(2) or clone(2)).
    Processes,
    /// A usable scratch folder, for any other reason (`EROFS`, `EIO`, `EACCES`, …).
    Scratch,
    /// An answer of the blob store.
    BlobStore,
    /// A resource that a native prover reports as lacking.
    Prover,
}

/// The reason why an execution has no product.
#[derive(Clone, Debug, PartialEq)]
pub enum Unfinished {
    /// The attempt failed; it counts, and is recorded.
    Failed(Failure),
    /// The machine failed: no attempt was made, or its result was lost.
    Machine(MachineFailure),
}

// === impl MissingResource ===

impl MissingResource {
    /// The resource whose exhaustion `error` reports; `None` for any other error.
    pub fn of(error: &io::Error) -> Option<Self> {
        match Errno::from_io_error(error)? {
            Errno::NOSPC | Errno::DQUOT => Some(Self::DiskSpace),
            Errno::MFILE | Errno::NFILE => Some(Self::Descriptors),
            Errno::NOMEM => Some(Self::Memory),
            Errno::AGAIN => Some(Self::Processes),
            _ => None,
        }
    }
}

impl fmt::Display for MissingResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::DiskSpace => "no disk space",
            Self::Descriptors => "no file descriptors",
            Self::Memory => "no memory",
            Self::Processes => "no more processes",
            Self::Scratch => "no scratch folder",
            Self::BlobStore => "no blob store",
            Self::Prover => "the prover cannot work on this machine",
        })
    }
}

// === impl MachineFailure ===

impl MachineFailure {
    /// The failure for `error`, if it reports an exhausted resource. `what` is the operation that
    /// failed.
    pub fn of(what: impl fmt::Display, error: &io::Error) -> Option<Self> {
        MissingResource::of(error).map(|missing| Self::new(missing, what, error))
    }

    /// A failure to use the scratch folder, whatever the error.
    pub fn of_scratch(what: impl fmt::Display, error: &io::Error) -> Self {
        Self::new(
            MissingResource::of(error).unwrap_or(MissingResource::Scratch),
            what,
            error,
        )
    }

    /// The failure for `error`, if the blob store could not be used; `None` if the store answered
    /// that the blob is missing or damaged.
    pub fn of_blobs(error: &BlobError) -> Option<Self> {
        error.is_of_store().then(|| Self::of_storing(error))
    }

    /// A failure to store a blob, whatever the error.
    pub fn of_storing(error: &BlobError) -> Self {
        Self {
            missing: error
                .io()
                .and_then(MissingResource::of)
                .unwrap_or(MissingResource::BlobStore),
            detail: with_sources(error),
        }
    }

    /// As [`MachineFailure::of_blobs`], for a payload that could not be fetched.
    pub fn of_fetch(error: &ResolveError) -> Option<Self> {
        let ResolveError::Blob { source, .. } = error;
        Some(Self {
            detail: with_sources(error),
            ..Self::of_blobs(source)?
        })
    }

    /// The failure for `error`, if one of its sources reports an exhausted resource.
    pub fn from_sources(error: &(dyn std::error::Error + 'static)) -> Option<Self> {
        let mut next = Some(error);
        let mut causes = std::iter::from_fn(|| {
            let cause = next?;
            next = cause.source();
            Some(cause)
        });
        let missing = causes.find_map(|cause| MissingResource::of(cause.downcast_ref()?))?;
        let detail = with_sources(error);
        Some(Self { missing, detail })
    }

    fn new(missing: MissingResource, what: impl fmt::Display, error: &io::Error) -> Self {
        let detail = format!("{what}: {error}");
        Self { missing, detail }
    }
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
    use super::*;

    #[test]
    fn exhausted_resources_are_the_machines_and_other_errors_are_not() {
        for (errno, missing) in [
            (Errno::NOSPC, Some(MissingResource::DiskSpace)),
            (Errno::DQUOT, Some(MissingResource::DiskSpace)),
            (Errno::MFILE, Some(MissingResource::Descriptors)),
            (Errno::NFILE, Some(MissingResource::Descriptors)),
            (Errno::NOMEM, Some(MissingResource::Memory)),
            (Errno::AGAIN, Some(MissingResource::Processes)),
            (Errno::NOENT, None),
            (Errno::ACCESS, None),
            (Errno::NOEXEC, None),
            (Errno::TOOBIG, None),
            (Errno::FBIG, None),
        ] {
            let error = io::Error::from(errno);
            assert_eq!(MissingResource::of(&error), missing, "{errno}");
            assert_eq!(
                MachineFailure::of("start", &error).map(|it| it.missing),
                missing
            );
            let scratch = MachineFailure::of_scratch("make a folder", &error);
            assert_eq!(
                scratch.missing,
                missing.unwrap_or(MissingResource::Scratch),
                "{errno}"
            );
        }
        // Errors are classified by number, never by text.
        let words = io::Error::other("No space left on device (os error 28)");
        assert_eq!(MissingResource::of(&words), None);
    }

    #[test]
    fn a_missing_blob_is_the_tasks_and_a_store_out_of_reach_is_the_machines() {
        let digest = proofmill_bus::Digest::of(b"x");
        assert_eq!(MachineFailure::of_blobs(&BlobError::Missing(digest)), None);
        let corrupt = BlobError::Corrupt {
            expected: digest,
            found: digest,
        };
        assert_eq!(MachineFailure::of_blobs(&corrupt), None);
        let directory = |errno: Errno| BlobError::Directory {
            path: "blobs".into(),
            source: errno.into(),
        };
        let missing = |error| MachineFailure::of_blobs(&error).map(|failure| failure.missing);
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
