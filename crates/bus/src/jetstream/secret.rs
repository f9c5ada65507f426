//! Files with secrets.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tokio::io::AsyncReadExt;

use super::options::ConnectError;

/// Bytes of a file with a secret, at most.
const SECRET_MAX: u64 = 64 << 10;

pub(super) fn unreadable(path: &Path) -> impl FnOnce(std::io::Error) -> ConnectError {
    let path = path.to_owned();
    move |source| ConnectError::File { path, source }
}

/// What a file holds that nobody but its owner, and perhaps a group, may read; of a longer one the
/// first 64 KiB.
///
/// # Errors
/// [`ConnectError::File`] if it cannot be read, [`ConnectError::Setting`] if everybody can.
pub async fn read_secret(path: &Path) -> Result<String, ConnectError> {
    let file = tokio::fs::File::open(path)
        .await
        .map_err(unreadable(path))?;
    let metadata = file.metadata().await.map_err(unreadable(path))?;
    if metadata.permissions().mode() & 0o007 != 0 {
        return Err(ConnectError::Setting(format!(
            "{} is a secret that everybody on this machine can get at: `chmod 600` it",
            path.display()
        )));
    }
    // Never moved to a larger place, so that no copy of it is left behind.
    let mut text = String::with_capacity(SECRET_MAX as usize + 1);
    let read = file.take(SECRET_MAX).read_to_string(&mut text).await;
    read.map_err(unreadable(path))?;
    Ok(text)
}
