//! Writing input files.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;

use sha2::{Digest, Sha256};

use super::store::{InputName, Inputs, Staged};
use crate::interface::{Error, Secret};

/// A witness that is being streamed to disk. Dropping it before it is submitted removes the file.
pub struct Upload {
    writer: Writer,
    /// Counts the upload until the writer is dropped.
    _open: Open,
}

/// One open upload, counted against the limit until dropped.
struct Open(Inputs);

/// An input file that is being written. Dropping it before it is finished removes the file.
struct Writer {
    inputs: Inputs,
    name: InputName,
    file: File,
    bytes: u64,
    limit: u64,
    hasher: Sha256,
    finished: bool,
}

// === impl Writer ===

impl Writer {
    fn new(inputs: Inputs, limit: u64) -> Result<Self, Error> {
        let name = InputName::random();
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(inputs.path(&name))
            .map_err(storage)?;
        Ok(Self {
            inputs,
            name,
            file,
            bytes: 0,
            limit,
            hasher: Sha256::new(),
            finished: false,
        })
    }

    fn write(&mut self, chunk: &[u8]) -> Result<(), Error> {
        let size = self.bytes + chunk.len() as u64;
        if size > self.limit {
            return Err(Error::TooLarge {
                what: "an input in bytes",
                size,
                limit: self.limit,
            });
        }
        self.inputs.take(chunk.len() as u64)?;
        self.bytes = size;
        self.file.write_all(chunk).map_err(storage)?;
        self.hasher.update(chunk);
        Ok(())
    }

    /// Syncs the file and its folder, before a record of the log names it.
    fn finish(mut self) -> Result<Staged, Error> {
        self.file.sync_all().map_err(storage)?;
        File::open(self.inputs.folder())
            .and_then(|folder| folder.sync_all())
            .map_err(storage)?;
        self.finished = true;
        let digest = std::mem::take(&mut self.hasher).finalize().into();
        Ok(Staged::new(
            self.inputs.clone(),
            self.name.clone(),
            self.bytes,
            digest,
        ))
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if !self.finished {
            self.inputs.remove(&self.name, self.bytes);
        }
    }
}

// === impl Upload ===

impl Upload {
    pub(crate) fn begin(inputs: &Inputs) -> Result<Self, Error> {
        inputs.begin_upload()?;
        let open = Open(inputs.clone());
        let writer = Writer::new(inputs.clone(), inputs.limits().witness_bytes)?;
        Ok(Self {
            writer,
            _open: open,
        })
    }

    /// Appends `chunk` to the file. The data reaches the page cache only; it is synced when the witness is
    /// submitted.
    ///
    /// # Errors
    ///
    /// [`Error::TooLarge`] for the witness, [`Error::Exhausted`] if all inputs together would exceed their
    /// limit, [`Error::Storage`].
    pub async fn write(&mut self, chunk: &[u8]) -> Result<(), Error> {
        self.writer.write(chunk)
    }

    /// Syncs the file to disk; blocks until that is done.
    pub(crate) fn finish(self) -> Result<Staged, Error> {
        self.writer.finish()
    }

    /// Bytes written so far.
    pub const fn bytes(&self) -> u64 {
        self.writer.bytes
    }
}

// === impl Open ===

impl Drop for Open {
    fn drop(&mut self) {
        self.0.end_upload();
    }
}

impl fmt::Debug for Upload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Upload of {} bytes", self.writer.bytes)
    }
}

// === impl Inputs ===

impl Inputs {
    /// Writes an input that is in memory to disk; blocks until it is synced.
    pub(crate) fn stage(&self, content: &Secret, limit: u64) -> Result<Staged, Error> {
        let mut writer = Writer::new(self.clone(), limit)?;
        writer.write(content)?;
        writer.finish()
    }
}

fn storage(error: io::Error) -> Error {
    Error::Storage(error.to_string())
}
