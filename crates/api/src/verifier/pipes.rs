//! A pair of named pipes, for a process that starts the verifier and is its only client.

use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use tokio::net::unix::pipe;

/// Two pipes in the file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PipePair {
    /// The pipe that the verifier reads.
    pub requests: PathBuf,
    /// The pipe that it writes.
    pub results: PathBuf,
}

// === impl PipePair ===

impl PipePair {
    /// `requests` and `results` in a folder.
    pub fn in_folder(folder: &Path) -> Self {
        Self {
            requests: folder.join("requests"),
            results: folder.join("results"),
        }
    }

    /// Opens the pipes for the verifier. Each is opened for reading and writing, so that opening does not
    /// wait for a client, and a client that goes away leaves the pipes usable for the next.
    pub(super) fn open(&self) -> io::Result<(pipe::Receiver, pipe::Sender)> {
        let mut options = pipe::OpenOptions::new();
        options.read_write(true);
        Ok((
            options.open_receiver(&self.requests)?,
            options.open_sender(&self.results)?,
        ))
    }
}

/// Makes the pipes that do not exist, accessible to this user only.
///
/// # Errors
///
/// A pipe cannot be made, or its path is another kind of file.
pub fn make_pipes(pair: &PipePair) -> io::Result<()> {
    use std::os::unix::fs::FileTypeExt;
    for path in [&pair.requests, &pair.results] {
        match mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0) {
            Ok(()) => {}
            Err(rustix::io::Errno::EXIST)
                if std::fs::symlink_metadata(path)?.file_type().is_fifo() => {}
            Err(error) => {
                let error = io::Error::from(error);
                let message = format!("cannot make the pipe {}: {error}", path.display());
                return Err(io::Error::new(error.kind(), message));
            }
        }
    }
    Ok(())
}
