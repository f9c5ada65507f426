//! Exclusive use of a directory by one process: an advisory lock on a file with its holder's
//! process id.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

/// The lock file in a directory.
const NAME: &str = "lock";

/// An exclusive lock on a directory. The system releases it when the process ends, for whatever
/// reason.
#[derive(Debug)]
pub struct DirectoryLock {
    file: File,
}

/// Another process has locked the directory of a log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the log {path} is open in {holder}: stop it, or use another directory",
    holder = .pid.map_or("another process".to_owned(), |pid| format!("process {pid}")))]
pub struct LockError {
    /// The log's directory.
    pub path: PathBuf,
    /// The id of the process that holds the lock, if it has written it yet.
    pub pid: Option<u32>,
}

impl DirectoryLock {
    /// Locks `dir`, which must exist; `Ok(Err(_))` if another process holds it.
    ///
    /// # Errors
    /// The file `lock` in it cannot be used, or is a symbolic link.
    pub fn acquire(dir: &Path) -> io::Result<Result<Self, LockError>> {
        let mut file = open_lock_file(&dir.join(NAME))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return held(file, dir).map(Err),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        file.set_len(0)?;
        file.rewind()?;
        writeln!(file, "{}", std::process::id())?;
        Ok(Ok(Self { file }))
    }

    /// Keeps `dir` from being changed while it is read, and writes nothing; other readers may hold
    /// it at the same time. `None` if no process has ever locked it.
    ///
    /// # Errors
    /// The file `lock` in it cannot be used, or is a symbolic link.
    pub fn share(dir: &Path) -> io::Result<Result<Option<Self>, LockError>> {
        let file = match open_unfollowed(OpenOptions::new().read(true), &dir.join(NAME)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Ok(None)),
            file => file?,
        };
        match file.try_lock_shared() {
            Ok(()) => Ok(Ok(Some(Self { file }))),
            Err(TryLockError::WouldBlock) => held(file, dir).map(Err),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

/// Creates or opens a lock file (mode 0600). Symbolic links are not followed: whoever can create
/// one could have another file locked or truncated.
///
/// # Errors
/// The file cannot be opened, or is a symbolic link.
pub fn open_lock_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600);
    open_unfollowed(&mut options, path)
}

fn open_unfollowed(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    options.custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
    options.open(path).map_err(|error| {
        if path.is_symlink() {
            let why = "the lock file in it is a symbolic link, which is not followed: remove it";
            return io::Error::new(error.kind(), why);
        }
        error
    })
}

fn held(file: File, dir: &Path) -> io::Result<LockError> {
    let mut text = String::new();
    file.take(32).read_to_string(&mut text)?;
    let pid = text.trim().parse().ok();
    Ok(LockError {
        path: dir.to_owned(),
        pid,
    })
}

impl Drop for DirectoryLock {
    fn drop(&mut self) {
        // Closing is not enough: a process being started from another thread has a copy of the
        // descriptor, and with it the lock, from its fork to its exec.
        if let Err(error) = self.file.unlock() {
            tracing::warn!(%error, "cannot unlock the directory");
        }
    }
}
