//! A sink that writes a file for each emitted message into a directory.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use futures_util::future::BoxFuture;

use super::service::{Emitted, Sink, SinkError};
use crate::payload::Encoding;
use proofmill_files::write_small_durably;

/// Writes each message to `FIRST-LAST.json` (or `.bin`), with block numbers padded to ten digits so
/// that names sort in chain order. A file is whole or absent, and an existing file is left
/// unchanged.
pub struct Directory {
    path: PathBuf,
}

// === impl Directory ===

impl Directory {
    /// Writes into the directory `path`, which is created if necessary.
    pub fn open(path: &Path) -> Result<Self, SinkError> {
        std::fs::create_dir_all(path).map_err(|error| failed(path, error))?;
        Ok(Self {
            path: path.to_owned(),
        })
    }

    /// The file name of a message.
    pub fn file_name(emitted: &Emitted) -> String {
        let extension = match emitted.encoding {
            Encoding::Json => "json",
            Encoding::Binary => "bin",
        };
        format!("{:010}-{:010}.{extension}", emitted.first, emitted.last)
    }

    fn write(path: &Path, name: &str, bytes: &[u8]) -> std::io::Result<()> {
        let target = path.join(name);
        if target.try_exists()? {
            return Ok(());
        }
        write_small_durably(&target, bytes, ".emit-")
    }
}

fn failed(path: &Path, why: impl Display) -> SinkError {
    SinkError::new(format_args!("cannot write {}", path.display()), why)
}

impl Sink for Directory {
    fn place(&self, emitted: &Emitted) -> String {
        let path = self.path.join(Self::file_name(emitted));
        let path = std::path::absolute(&path).unwrap_or(path);
        format!("file {}", path.display())
    }

    fn put<'a>(&'a mut self, emitted: &'a Emitted) -> BoxFuture<'a, Result<(), SinkError>> {
        let name = Self::file_name(emitted);
        let (path, bytes) = (self.path.clone(), emitted.bytes.clone());
        Box::pin(async move {
            let shown = path.join(&name);
            let written =
                tokio::task::spawn_blocking(move || Self::write(&path, &name, &bytes)).await;
            match written {
                Ok(result) => result.map_err(|error| failed(&shown, error)),
                Err(error) => Err(failed(&shown, error)),
            }
        })
    }
}
