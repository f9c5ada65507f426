//! The folder they lie in.

use std::collections::HashSet;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use proofmill_r1cs::iden3::{FileError, MappedFile};
use rand::Rng;
use serde::{Deserialize, Serialize};

use crate::interface::{Error, Resource};
use crate::options::Limits;

/// What a client is told when there is no room for inputs: jobs end within seconds.
const RETRY_AFTER: std::time::Duration = std::time::Duration::from_secs(2);

/// The files of jobs' inputs: mode 0600, in a folder of mode 0700. Cloning shares it.
#[derive(Clone, Debug)]
pub(crate) struct Inputs {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    folder: PathBuf,
    limits: Limits,
    /// Bytes of all files.
    used: AtomicU64,
    uploads: AtomicUsize,
}

/// A file's name: random, so that a name is never used twice.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct InputName(String);

/// A file that is complete and on disk. Dropping it removes it, unless a job has taken it.
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
    /// Opens the folder, which is made if it is not there.
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

    /// Counts the files of jobs that go on, and removes all others: what a crash left behind.
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

    /// The content of a job's file: mapped, since nobody else writes here.
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

    /// Takes room for so many bytes more.
    pub(super) fn take(&self, bytes: u64) -> Result<(), Error> {
        let limit = self.shared.limits.input_bytes;
        let fits = |used: u64| used.checked_add(bytes).filter(|used| *used <= limit);
        self.shared
            .used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits)
            .map(|_| ())
            .map_err(|used| exhausted(Resource::InputBytes, used, limit))
    }

    /// Takes one of the uploads that may be open.
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

    /// The file, now a job's to remove.
    pub(crate) fn keep(mut self) -> InputName {
        // Taken only here and when it is dropped.
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
