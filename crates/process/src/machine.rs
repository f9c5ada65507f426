//! Failures of the machine, distinguished by type from those of a task.
//!
//! Each is classified where it arises, by the system's error number: a full disk or a lack of descriptors says nothing about
//! the task, so it does not count as an attempt at it.

use std::fmt;
use std::io;

use rustix::io::Errno;

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

    fn new(missing: MissingResource, what: impl fmt::Display, error: &io::Error) -> Self {
        let detail = format!("{what}: {error}");
        Self { missing, detail }
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
}
