//! The scratch directory of this process, and the cleanup of those that dead processes left.

use std::fs::{self, DirBuilder, File, TryLockError};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use proofmill_files::{check_private_directory, open_lock_file};
use proofmill_process::ProcessExecutor;

use crate::error::RunError;

/// The file that a living process keeps locked.
const LOCK: &str = "lock";
/// Interval at which a process that waits to clean up tries again.
const TURN: Duration = Duration::from_millis(20);
/// The subdirectory of its runs.
const RUNS: &str = "runs";

/// A scratch directory that belongs to this process.
#[derive(Debug)]
pub(super) struct ScratchRoot {
    runs: PathBuf,
    directory: tempfile::TempDir,
    /// Held while the process lives; the kernel releases it however the process dies.
    _lock: File,
}

// === impl ScratchRoot ===

impl ScratchRoot {
    /// Makes a scratch directory. First kills programs that killed dispatchers of this user left running.
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
        check_private_directory(&parent).map_err(fault)?;
        // A new directory is not locked at once, so no other process may clean up at that moment.
        let turn = open_lock_file(&parent.join(LOCK)).map_err(fault)?;
        while let Err(error) = turn.try_lock() {
            match error {
                TryLockError::WouldBlock => tokio::time::sleep(TURN).await,
                TryLockError::Error(error) => return Err(fault(error)),
            }
        }
        sweep(&parent).await;
        let made = || {
            let directory = tempfile::Builder::new()
                .prefix("dispatcher-")
                .tempdir_in(&parent)?;
            let lock = open_lock_file(&directory.path().join(LOCK))?;
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
        // An error here is left to the next process that cleans up.
        let _ = fs::remove_dir_all(&directory);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn processes_that_start_at_once_do_not_disturb_each_other() {
        let mut roots = Vec::new();
        for _ in 0..40 {
            let claims = (0..16).map(|_| tokio::spawn(ScratchRoot::claim()));
            for claim in claims.collect::<Vec<_>>() {
                roots.push(claim.await.unwrap().unwrap());
            }
            for root in &roots {
                assert!(root.directory.path().join(LOCK).is_file());
            }
            roots.truncate(1);
        }
        let left = roots[0].directory.path().to_owned();
        drop(roots);
        assert!(!left.exists());
    }
}
