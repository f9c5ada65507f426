//! Files that commands write.

use std::io::Write;
use std::path::Path;

use proofmill_r1cs::iden3::{Visibility, write_whole};

use crate::failure::Failure;

/// That there is a folder for a file that will be written: better known before the work than after.
pub(crate) fn check_folder(path: &Path) -> Result<(), Failure> {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() && !folder.is_dir() => {
            Err(Failure::new(format!(
                "{}: there is no folder {}",
                path.display(),
                folder.display()
            )))
        }
        _ => Ok(()),
    }
}

/// Writes a text whole or not at all, for anyone to read.
pub(crate) fn write_text(path: &Path, text: &str) -> Result<(), Failure> {
    write_whole(path, Visibility::Public, |file| {
        file.write_all(text.as_bytes())
    })?;
    Ok(())
}
