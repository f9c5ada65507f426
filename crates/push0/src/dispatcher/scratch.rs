//! A scratch directory for this process, and what dead ones left in theirs.

use std::fs::{self, DirBuilder, File, TryLockError};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use proofmill_orchestrator::executor::process::ProcessExecutor;

use crate::error::RunError;

/// The file that a living process has locked.
const LOCK: &str = "lock";
/// Where its runs are.
const RUNS: &str = "runs";

/// A scratch root of this process's own.
#[derive(Debug)]
pub(super) struct ScratchRoot {
    runs: PathBuf,
    directory: tempfile::TempDir,
    /// Held while the process lives; the kernel lets go of it whichever way it dies.
    _lock: File,
}

// === impl ScratchRoot ===

impl ScratchRoot {
    /// Makes one, and first ends the programs that killed dispatchers of this user left running.
    pub(super) async fn claim() -> Result<Self, RunError> {
        let own = rustix::process::geteuid().as_raw();
        let parent = std::env::temp_dir().join(format!("proofmill-push0-{own}"));
        let fault = |source| RunError::Directory {
            path: parent.clone(),
            source,
        };
        match DirBuilder::new().mode(0o700).create(&parent) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                return Err(fault(error));
            }
            _ => {}
        }
        let metadata = fs::symlink_metadata(&parent).map_err(fault)?;
        if !metadata.is_dir() || metadata.uid() != own {
            let why = "it is not a directory of this user; remove it, or set TMPDIR";
            return Err(fault(std::io::Error::other(why)));
        }
        sweep(&parent).await;
        let made = || {
            let directory = tempfile::Builder::new()
                .prefix("dispatcher-")
                .tempdir_in(&parent)?;
            let lock = File::create(directory.path().join(LOCK))?;
            lock.try_lock()?;
            Ok((directory, lock))
        };
        let (directory, lock) = made().map_err(fault)?;
        Ok(Self {
            runs: directory.path().join(RUNS),
            directory,
            _lock: lock,
        })
    }

    pub(super) fn path(&self) -> &Path {
        debug_assert!(self.runs.starts_with(self.directory.path()));
        &self.runs
    }
}

async fn sweep(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else {
        return;
    };
    for entry in entries.flatten() {
        let directory = entry.path();
        let Ok(lock) = File::open(directory.join(LOCK)) else {
            continue;
        };
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock | TryLockError::Error(_)) => continue,
        }
        match ProcessExecutor::sweep(&directory.join(RUNS)).await {
            Ok(swept) => tracing::info!(?swept, "cleaned up after a dispatcher that was killed"),
            Err(error) => tracing::warn!(%error, "not cleaned up"),
        }
        // Tried again by the next that comes.
        let _ = fs::remove_dir_all(&directory);
    }
}
