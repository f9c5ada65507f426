//! The record of key files that were checked before.

use std::fs::{self, DirBuilder};
use std::path::{Path, PathBuf};

use proofmill_files::{FileError, MappedFile, Visibility, write_whole};

use crate::READING_WINDOW_BYTES;

/// First part of a marker's file name: the version of the checks. A file that was checked by another version is checked
/// again.
const VERSION: &str = "zkey-1";

/// A directory with one marker for each key file that was checked: a small file named by the key's
/// digest. A marker proves nothing by itself: a user who can write there can make this program
/// believe that a key was checked, so only the program's own user may have access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedKeyStore {
    directory: PathBuf,
}

// === impl CheckedKeyStore ===

impl CheckedKeyStore {
    /// The record in `directory`, which is created when the first key is remembered.
    pub fn in_directory(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
        }
    }

    /// The record of this user: `proofmill/checked-keys` in `$XDG_STATE_HOME`, or in `~/.local/state`.
    /// `None` if neither is known.
    pub fn of_user() -> Option<Self> {
        let absolute = |name: &str| {
            let path = PathBuf::from(std::env::var_os(name)?);
            path.is_absolute().then_some(path)
        };
        let state = absolute("XDG_STATE_HOME")
            .or_else(|| absolute("HOME").map(|home| home.join(".local/state")))?;
        Some(Self::in_directory(state.join("proofmill/checked-keys")))
    }

    /// BLAKE3 of a key file, computed by all threads of the current rayon pool. At most
    /// [`READING_WINDOW_BYTES`] bytes of a mapped file are in memory at once.
    pub fn digest(file: &MappedFile) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new();
        for window in file.chunks(READING_WINDOW_BYTES) {
            hasher.update_rayon(window);
            file.release(window);
        }
        *hasher.finalize().as_bytes()
    }

    /// Whether a file with this digest was checked; always false if other users can write to the
    /// directory.
    pub fn contains(&self, digest: &[u8; 32]) -> bool {
        self.is_private() && self.path(digest).is_file()
    }

    /// Remembers that a file with this digest was checked.
    ///
    /// # Errors
    ///
    /// [`FileError::Io`] if the directory or the file in it cannot be written.
    pub fn remember(&self, digest: &[u8; 32], key: &Path) -> Result<(), FileError> {
        let mut builder = DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder
            .create(&self.directory)
            .map_err(|source| FileError::io(&self.directory, source))?;
        write_whole(&self.path(digest), Visibility::Private, |file| {
            // The path is for people who look into the directory; no program reads it.
            std::io::Write::write_all(file, key.as_os_str().as_encoded_bytes())
        })
    }

    fn path(&self, digest: &[u8; 32]) -> PathBuf {
        self.directory
            .join(format!("{VERSION}-{}", hex::encode(digest)))
    }

    fn is_private(&self) -> bool {
        let Ok(metadata) = fs::metadata(&self.directory) else {
            return false;
        };
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            metadata.is_dir() && metadata.permissions().mode() & 0o022 == 0
        }
        #[cfg(not(unix))]
        metadata.is_dir()
    }
}
