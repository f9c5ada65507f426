//! Reading of files, and the names of an epoch's files.

use std::io::{self, Read};
use std::path::Path;

use proofmill_files::{FileError, open_regular};

/// The bytes of a regular file, if they are at most `most`.
pub(crate) fn read_limited(path: &Path, most: u64) -> Result<Vec<u8>, FileError> {
    let failed = |source| FileError::io(path, source);
    let file = open_regular(path).map_err(failed)?;
    let length = file.metadata().map_err(failed)?.len();
    if length > most {
        let why = format!("{length} bytes, where there may be {most} at most");
        return Err(failed(io::Error::new(io::ErrorKind::FileTooLarge, why)));
    }
    let mut bytes = Vec::new();
    let wanted = usize::try_from(length).unwrap_or(usize::MAX);
    bytes
        .try_reserve_exact(wanted)
        .map_err(|_| failed(io::ErrorKind::OutOfMemory.into()))?;
    file.take(length).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() != wanted {
        let path = path.to_owned();
        return Err(FileError::Changed { path });
    }
    Ok(bytes)
}

/// The name of an epoch's file.
pub(super) fn name_of(epoch: u64) -> String {
    format!("{epoch:010}")
}

/// The epoch of a file's name; `None` for any other file, such as one that a killed process left unfinished.
pub(super) fn epoch_of(name: &str) -> Option<u64> {
    let epoch = name.parse().ok()?;
    (name_of(epoch) == name).then_some(epoch)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_of_one_epoch() {
        for epoch in [0, 1, 9_999_999_999, 10_000_000_000, u64::MAX] {
            assert_eq!(epoch_of(&name_of(epoch)), Some(epoch));
        }
        for name in ["", "1", "00000000001", "+000000001", ".proofmill-x.tmp"] {
            assert_eq!(epoch_of(name), None, "{name}");
        }
    }

    #[test]
    fn a_file_beyond_the_limit_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, [7; 10]).unwrap();
        assert_eq!(read_limited(&path, 10).unwrap(), [7; 10]);
        let error = read_limited(&path, 9).unwrap_err().to_string();
        assert!(error.ends_with("10 bytes, where there may be 9 at most"));
    }
}
