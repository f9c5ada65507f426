//! Atomic writes of small files: a temporary file is written, then renamed.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use tempfile::NamedTempFile;

/// Writes the file at `path`, readable by its owner only, and syncs it.
pub(crate) fn write_durably(path: &Path, bytes: &[u8], prefix: &str) -> io::Result<()> {
    let file = make(path, bytes, prefix)?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    File::open(folder_of(path))?.sync_all()
}

/// As [`write_durably`] without a sync: after a loss of power the old file may be back.
pub(crate) fn write(path: &Path, bytes: &[u8], prefix: &str) -> io::Result<()> {
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

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_do_not_name_the_temporary_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let absent = folder.path().join("absent/file");
        let path = folder.path().join("file");
        for (write, text) in [write, write_durably].into_iter().zip(["1", "2"]) {
            let error = write(&absent, b"text", ".new-").expect_err("there is no folder");
            assert_eq!(error.to_string(), "No such file or directory (os error 2)");
            write(&path, text.as_bytes(), ".new-").expect("written");
            assert_eq!(std::fs::read_to_string(&path).expect("a text"), text);
        }
    }
}
