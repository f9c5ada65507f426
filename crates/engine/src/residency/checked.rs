//! A record of the keys whose points have all been checked.

use std::collections::HashSet;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use proofmill_files::FileError;
use proofmill_groth16::snarkjs::CheckedKeyStore;

/// Keys whose points were checked, in this process or, with a directory, in earlier ones.
#[derive(Debug, Default)]
pub(crate) struct CheckedMemory {
    directory: Option<CheckedKeyStore>,
    here: Mutex<HashSet<[u8; 32]>>,
}

// === impl CheckedMemory ===

impl CheckedMemory {
    pub(crate) fn new(directory: Option<CheckedKeyStore>) -> Self {
        Self {
            directory,
            here: Mutex::default(),
        }
    }

    /// Whether a key was checked. Once true, it stays true in this process, since reservations depend on
    /// it.
    pub(crate) fn contains(&self, digest: &[u8; 32]) -> bool {
        if self.lock().contains(digest) {
            return true;
        }
        let directory = self.directory.as_ref();
        let found = directory.is_some_and(|directory| directory.contains(digest));
        if found {
            self.lock().insert(*digest);
        }
        found
    }

    pub(crate) fn remember(&self, digest: &[u8; 32], key: &Path) -> Result<(), FileError> {
        self.lock().insert(*digest);
        self.directory
            .as_ref()
            .map_or(Ok(()), |directory| directory.remember(digest, key))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashSet<[u8; 32]>> {
        self.here.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
