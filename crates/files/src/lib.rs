//! Files of the local disk: atomic writes, private folders, locks, and files mapped into memory.
//!
//! ```
//! use std::io::Write;
//!
//! use proofmill_files::{MappedFile, Visibility, write_whole};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("key");
//! write_whole(&path, Visibility::Private, |file| file.write_all(b"content"))?;
//! let file = MappedFile::open(&path)?;
//! assert_eq!(&*file, b"content");
//! file.check_unchanged()?;
//! # Ok(())
//! # }
//! ```
//!
//! A reader of a file never sees half of it: [`write_whole`] fills a new file beside it, flushes it and renames it.
//! [`StagedFile`] does so for several files together, [`write_small`] for records that are written often.

mod error;
mod lock;
mod mapped;
mod private;
mod regular;
mod small;
mod staged;

pub use error::FileError;
pub use lock::{DirectoryLock, LockError, open_lock_file};
pub use mapped::MappedFile;
pub use private::{check_private_directory, make_private_directory};
pub use regular::{check_regular, is_inherited, open_regular, open_regular_or_inherited};
pub use small::{write_small, write_small_durably};
pub use staged::{StagedFile, Visibility, folder_of, write_whole};
