//! One process at a time: an advisory lock on a file that names its holder.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// A directory that no other process uses: the system releases it when the process ends, however it ends.
#[derive(Debug)]
pub struct DirectoryLock {
    file: File,
}

/// Somebody else has the log open.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the log {path} is open in {holder}: stop it, or use another directory",
    holder = .pid.map_or("another process".to_owned(), |pid| format!("process {pid}")))]
pub struct LockError {
    /// The log's directory.
    pub path: PathBuf,
    /// The process that holds it, if it has written its id yet.
    pub pid: Option<u32>,
}

impl DirectoryLock {
    /// Locks `dir`, which must be there; `Ok(Err(_))` if somebody else has it.
    ///
    /// # Errors
    /// The file `lock` in it cannot be used.
    pub fn acquire(dir: &Path) -> io::Result<Result<Self, LockError>> {
        let mut options = OpenOptions::new();
        options
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600);
        let mut file = options.open(dir.join("lock"))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                file.take(32).read_to_string(&mut text)?;
                let pid = text.trim().parse().ok();
                return Ok(Err(LockError {
                    path: dir.to_owned(),
                    pid,
                }));
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
        file.set_len(0)?;
        file.rewind()?;
        writeln!(file, "{}", std::process::id())?;
        Ok(Ok(Self { file }))
    }
}

impl Drop for DirectoryLock {
    fn drop(&mut self) {
        // Closing is not enough: a process being started from another thread has a copy of the
        // file, and with it the lock, from its fork to its exec.
        if let Err(error) = self.file.unlock() {
            tracing::warn!(%error, "cannot unlock the directory");
        }
    }
}
