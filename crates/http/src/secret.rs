//! Secrets that a workflow names, with which requests are signed or authorised.

use std::fmt;
use std::ops::RangeInclusive;

use proofmill_bus::{SecretError as FileError, read_secret_blocking};
use proofmill_workflow as file;
use zeroize::Zeroizing;

/// The text of a secret, without the white space at its end that editors add. Never shown, and overwritten when it is dropped.
pub struct Secret(Zeroizing<String>);

/// The reason why a secret cannot be used. Never shows the secret.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SecretError {
    /// The file cannot be read, or others can access it.
    #[error(transparent)]
    File(#[from] FileError),
    /// The variable is not set, or is no text.
    #[error("the variable {0} is missing, or is no text: set it to the secret")]
    NoVariable(String),
    /// The text cannot be such a secret.
    #[error("the secret in {place} {why}")]
    Unfit {
        /// The file or the variable.
        place: String,
        /// The reason.
        why: String,
    },
}

// === impl Secret ===

impl Secret {
    /// Reads the secret from the variable, or from the file that only its owner, and perhaps a group, can access. Blocks for
    /// the time of reading a file. `length` is the number of bytes that it may have: shorter ones can be guessed.
    ///
    /// # Errors
    /// [`SecretError`].
    pub fn read(of: &file::Secret, length: RangeInclusive<usize>) -> Result<Self, SecretError> {
        let text = match of {
            file::Secret::Environment(name) => std::env::var(name)
                .map(Zeroizing::new)
                .map_err(|_| SecretError::NoVariable(name.clone()))?,
            file::Secret::File(path) => read_secret_blocking(path)?,
        };
        let text = Zeroizing::new(text.trim_ascii_end().to_owned());
        if !length.contains(&text.len()) {
            let (least, most) = length.into_inner();
            let why = format!("has {} bytes, not {least} to {most}", text.len());
            return Err(SecretError::unfit(of, why));
        }
        Ok(Self(text))
    }

    /// The text.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

// === impl SecretError ===

impl SecretError {
    /// The secret at this place cannot be used, as `why` says without showing it.
    pub fn unfit(of: &file::Secret, why: impl Into<String>) -> Self {
        let place = match of {
            file::Secret::Environment(name) => format!("the variable {name}"),
            file::Secret::File(path) => path.display().to_string(),
        };
        let why = why.into();
        Self::Unfit { place, why }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{Permissions, set_permissions, write};
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn it_is_read_from_private_files_only_and_never_shown() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("secret");
        let read = |text: &str, mode: u32| {
            write(&path, text).expect("written");
            set_permissions(&path, Permissions::from_mode(mode)).expect("it is ours");
            Secret::read(&file::Secret::File(path.clone()), 8..=32)
        };
        for mode in [0o600, 0o640] {
            let secret = read(" secret-1 \r\n", mode).expect("a secret");
            assert_eq!(secret.expose(), " secret-1");
            assert_eq!(format!("{secret:?}"), "Secret");
        }
        let refused = |text: &str, mode: u32| {
            let error = read(text, mode).expect_err("refused").to_string();
            assert!(!error.contains(text.trim()), "{error}");
            error
        };
        assert!(refused("secret-1", 0o644).contains("chmod 600"));
        assert!(refused("seven77\n", 0o600).contains("7 bytes, not 8 to 32"));
        assert!(refused(&"x".repeat(33), 0o600).contains("33 bytes"));
        let missing = file::Secret::Environment("PROOFMILL_NO_SUCH_SECRET".into());
        let error = Secret::read(&missing, 1..=2).expect_err("missing");
        assert!(error.to_string().contains("PROOFMILL_NO_SUCH_SECRET"));
    }
}
