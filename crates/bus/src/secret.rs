//! Reading of files with secrets.

use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use proofmill_files::open_regular_or_inherited;
use zeroize::Zeroizing;

/// Maximum size of a file with secrets, in bytes.
const SECRETS_MAX: usize = 1 << 20;

/// The reason why a file with secrets cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// The file cannot be read, or is not UTF-8 text.
    #[error("cannot read {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// Other users can read or change the file.
    #[error("{} is a secret that other users of this machine can access: `chmod 600` it", .0.display())]
    Open(PathBuf),
    /// The file exceeds the size limit of 1 MiB.
    #[error("{} has more than {SECRETS_MAX} bytes, too many for a secret: name another file", .0.display())]
    TooLong(PathBuf),
}

/// The content of a file, at most 1 MiB, that only its owner, and perhaps a group, can access.
///
/// # Errors
/// See [`SecretError`].
pub async fn read_secret(path: &Path) -> Result<Zeroizing<String>, SecretError> {
    let owned = path.to_owned();
    // Read in blocking code: the runtime's own file type keeps a copy of the content.
    let reading = tokio::task::spawn_blocking(move || read_secret_blocking(&owned)).await;
    reading.unwrap_or_else(|error| {
        Err(SecretError::Unreadable {
            path: path.to_owned(),
            source: io::Error::other(error),
        })
    })
}

/// [`read_secret`] for code that may block.
///
/// # Errors
/// See [`SecretError`].
pub fn read_secret_blocking(path: &Path) -> Result<Zeroizing<String>, SecretError> {
    let unreadable = |source| SecretError::Unreadable {
        path: path.to_owned(),
        source,
    };
    let file = open_regular_or_inherited(path).map_err(unreadable)?;
    let metadata = file.metadata().map_err(unreadable)?;
    if metadata.permissions().mode() & 0o007 != 0 {
        return Err(SecretError::Open(path.to_owned()));
    }
    // Allocated at full size and never moved, so that no copy is left behind.
    let mut bytes = Zeroizing::new(Vec::with_capacity(SECRETS_MAX + 2));
    file.take(SECRETS_MAX as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    if bytes.len() > SECRETS_MAX {
        return Err(SecretError::TooLong(path.to_owned()));
    }
    match String::from_utf8(std::mem::take(&mut *bytes)) {
        Ok(text) => Ok(Zeroizing::new(text)),
        Err(error) => {
            drop(Zeroizing::new(error.into_bytes()));
            Err(unreadable(io::Error::new(
                io::ErrorKind::InvalidData,
                "it is no text in UTF-8",
            )))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;

    use super::*;

    async fn read_file_of(bytes: &[u8], mode: u32) -> Result<String, String> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("secret");
        std::fs::write(&path, bytes).expect("written");
        std::fs::set_permissions(&path, Permissions::from_mode(mode)).expect("it is ours");
        let read = read_secret(&path).await;
        read.map(|text| text.to_string())
            .map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn a_secret_is_read_whole_or_not_at_all() {
        assert_eq!(
            read_file_of(b"secret\n", 0o600).await.as_deref(),
            Ok("secret\n")
        );
        assert_eq!(read_file_of(b"", 0o640).await.as_deref(), Ok(""));
        let longest = vec![b'x'; SECRETS_MAX];
        assert_eq!(
            read_file_of(&longest, 0o600).await.map(|it| it.len()),
            Ok(SECRETS_MAX)
        );
        let longer = vec![b'x'; SECRETS_MAX + 1];
        let error = read_file_of(&longer, 0o600).await.expect_err("too long");
        assert!(error.contains("more than 1048576 bytes"), "{error}");
    }

    #[tokio::test]
    async fn files_that_everybody_can_access_are_refused() {
        for mode in [0o604, 0o602, 0o601] {
            let error = read_file_of(b"secret", mode).await.expect_err("open");
            assert!(
                error.contains("chmod 600") && !error.ends_with("secret"),
                "{error}"
            );
        }
    }

    #[tokio::test]
    async fn unreadable_files_are_named() {
        let error = read_file_of(b"\xff\xfe", 0o600).await.expect_err("no text");
        assert!(error.contains("UTF-8"), "{error}");
        let absent = read_secret(Path::new("/nowhere/secret")).await;
        let error = absent.expect_err("absent").to_string();
        assert!(error.contains("/nowhere/secret"), "{error}");
    }
}
