//! Atomic writes of small files that only their owner reads.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use tempfile::NamedTempFile;

use crate::folder_of;

/// Writes the file at `path` atomically (mode 0600) and syncs it. `prefix` begins the name of the temporary file beside it, by
/// which leftovers of a killed process are recognised.
///
/// # Errors
///
/// Those of the file system; the file at `path` is then unchanged.
pub fn write_small_durably(path: &Path, bytes: &[u8], prefix: &str) -> io::Result<()> {
    let file = make(path, bytes, prefix)?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    File::open(folder_of(path))?.sync_all()
}

/// As [`write_small_durably`] without a sync: after a loss of power the old file may be back.
///
/// # Errors
///
/// Those of the file system; the file at `path` is then unchanged.
pub fn write_small(path: &Path, bytes: &[u8], prefix: &str) -> io::Result<()> {
    let file = make(path, bytes, prefix)?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// A new file beside `path` with these bytes. Its errors do not name the temporary file, unlike
/// those of `tempfile`: a user knows only `path`.
fn make(path: &Path, bytes: &[u8], prefix: &str) -> io::Result<NamedTempFile<File>> {
    let mut options = File::options();
    options.write(true).create_new(true).mode(0o600);
    let file = tempfile::Builder::new()
        .prefix(prefix)
        .make_in(folder_of(path), |path| options.open(path))?;
    file.as_file().write_all(bytes)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_do_not_name_the_temporary_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let absent = folder.path().join("absent/file");
        let path = folder.path().join("file");
        for (write, text) in [write_small, write_small_durably]
            .into_iter()
            .zip(["1", "2"])
        {
            let error = write(&absent, b"text", ".new-").expect_err("there is no folder");
            assert_eq!(error.to_string(), "No such file or directory (os error 2)");
            write(&path, text.as_bytes(), ".new-").expect("written");
            assert_eq!(std::fs::read_to_string(&path).expect("a text"), text);
        }
    }
}
