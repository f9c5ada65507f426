//! The folder of input files, and its quotas.

use std::collections::HashSet;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use proofmill_files::{FileError, MappedFile};
use rand::Rng;
use serde::{Deserialize, Serialize};

use crate::interface::{Error, Resource};
use crate::options::Limits;

/// Wait suggested to a client when there is no room for inputs. Short, since jobs end within seconds.
const RETRY_AFTER: std::time::Duration = std::time::Duration::from_secs(2);

/// The input files of jobs: mode 0600, in a folder of mode 0700. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Inputs {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    folder: PathBuf,
    limits: Limits,
    /// Bytes of all files together.
    used: AtomicU64,
    uploads: AtomicUsize,
}

/// The name of an input file: 128 random bits in hexadecimal, never used twice.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct InputName(String);

/// A complete input file, synced to disk. Dropping it removes the file, unless a job has taken it over.
#[derive(Debug)]
pub(crate) struct Staged {
    inputs: Inputs,
    name: Option<InputName>,
    pub(crate) bytes: u64,
    /// SHA-256 of the content.
    pub(crate) digest: [u8; 32],
}

// === impl InputName ===

impl InputName {
    pub(crate) fn random() -> Self {
        Self(hex::encode(rand::rng().random::<[u8; 16]>()))
    }
}

// === impl Inputs ===

impl Inputs {
    /// Opens the folder, and creates it if it does not exist.
    pub(crate) fn open(folder: PathBuf, limits: Limits) -> io::Result<Self> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&folder)?;
        let shared = Shared {
            folder,
            limits,
            used: AtomicU64::new(0),
            uploads: AtomicUsize::new(0),
        };
        Ok(Self {
            shared: Arc::new(shared),
        })
    }

    /// Counts the files in `named`, which unfinished jobs use, and removes all others, which a crash left
    /// behind.
    pub(crate) fn keep_only(&self, named: &HashSet<InputName>) -> io::Result<()> {
        for file in fs::read_dir(&self.shared.folder)? {
            let file = file?;
            let known = file
                .file_name()
                .to_str()
                .is_some_and(|name| named.contains(&InputName(name.to_owned())));
            if known {
                self.count(file.metadata()?.len());
            } else {
                fs::remove_file(file.path())?;
            }
        }
        Ok(())
    }

    /// Maps the content of a job's input file. No other process writes to this folder.
    pub(crate) fn read(&self, name: &InputName) -> Result<MappedFile, FileError> {
        MappedFile::open(&self.path(name))
    }

    /// Removes a job's file.
    pub(crate) fn remove(&self, name: &InputName, bytes: u64) {
        if let Err(error) = fs::remove_file(self.path(name))
            && error.kind() != io::ErrorKind::NotFound
        {
            let path = self.path(name);
            tracing::error!(path = %path.display(), %error, "an input cannot be removed");
        }
        self.shared.used.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Counts `bytes` more bytes of files, or refuses them if the limit would be exceeded.
    pub(super) fn take(&self, bytes: u64) -> Result<(), Error> {
        let limit = self.shared.limits.input_bytes;
        let fits = |used: u64| used.checked_add(bytes).filter(|used| *used <= limit);
        self.shared
            .used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits)
            .map(|_| ())
            .map_err(|used| exhausted(Resource::InputBytes, used, limit))
    }

    /// Counts one more open upload, or refuses it if the limit is reached.
    pub(super) fn begin_upload(&self) -> Result<(), Error> {
        let limit = self.shared.limits.uploads;
        let fits = |open: usize| (open < limit).then_some(open + 1);
        self.shared
            .uploads
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits)
            .map(|_| ())
            .map_err(|open| exhausted(Resource::Uploads, open as u64, limit as u64))
    }

    pub(super) fn end_upload(&self) {
        self.shared.uploads.fetch_sub(1, Ordering::Relaxed);
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.shared.limits
    }

    pub(super) fn path(&self, name: &InputName) -> PathBuf {
        self.shared.folder.join(&name.0)
    }

    pub(super) fn folder(&self) -> &Path {
        &self.shared.folder
    }

    fn count(&self, bytes: u64) {
        self.shared.used.fetch_add(bytes, Ordering::Relaxed);
    }
}

fn exhausted(resource: Resource, used: u64, limit: u64) -> Error {
    Error::Exhausted {
        resource,
        used,
        limit,
        retry_after: RETRY_AFTER,
    }
}

// === impl Staged ===

impl Staged {
    pub(super) fn new(inputs: Inputs, name: InputName, bytes: u64, digest: [u8; 32]) -> Self {
        Self {
            inputs,
            name: Some(name),
            bytes,
            digest,
        }
    }

    /// Hands the file over to a job, which is then responsible for removing it.
    pub(crate) fn keep(mut self) -> InputName {
        // Taken only here and in `drop`.
        self.name
            .take()
            .unwrap_or_else(|| unreachable!("kept once"))
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if let Some(name) = self.name.take() {
            self.inputs.remove(&name, self.bytes);
        }
    }
}
