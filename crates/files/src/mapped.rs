//! The bytes of a file in memory: mapped, or read.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use memmap2::Mmap;
use zeroize::Zeroizing;

use crate::FileError;
use crate::regular::open_regular;

/// Files up to this size are read, not mapped: a copy costs less than a page fault each 4 KiB, and
/// is safe from changes.
const READ_LIMIT: u64 = 1 << 20;

/// A file's bytes, mapped or read.
///
/// A mapping reflects later changes of the file. If another process overwrites the file, the bytes change
/// under the reader; if it shortens the file, touching a page beyond the new end ends this process with
/// `SIGBUS`, which no program can rule out for a mapping. So:
///
/// * Replace files by renaming another over them, as [`write_whole`](crate::write_whole) does: the mapping then
///   keeps the old content.
/// * Read files that other programs write in place, such as a witness, with [`read`](Self::read), which makes
///   a copy and detects a file that shrinks meanwhile.
/// * Call [`check_unchanged`](Self::check_unchanged) afterwards, before relying on the content, such as before
///   remembering that a key was checked: it detects changes of the file.
pub struct MappedFile {
    path: PathBuf,
    file: File,
    stamp: Stamp,
    bytes: Bytes,
}

enum Bytes {
    Mapped(Mmap),
    /// A copy may hold a witness: it is erased when dropped.
    Read(Zeroizing<Vec<u8>>),
}

/// Attributes of a file that change when the file does. A process with write access can set back the time
/// of modification, but not the time of the inode's change (ctime).
#[derive(Clone, Copy, PartialEq, Eq)]
struct Stamp {
    length: u64,
    modified: Option<SystemTime>,
    #[cfg(unix)]
    inode: Inode,
}

#[cfg(unix)]
#[derive(Clone, Copy, PartialEq, Eq)]
struct Inode {
    device: u64,
    number: u64,
    owner: (u32, u32),
    /// Seconds and nanoseconds.
    changed: (i64, i64),
}

// === impl Stamp ===

impl Stamp {
    fn of(file: &File) -> io::Result<Self> {
        let metadata = file.metadata()?;
        Ok(Self {
            length: metadata.len(),
            modified: metadata.modified().ok(),
            #[cfg(unix)]
            inode: Inode::of(&metadata),
        })
    }
}

#[cfg(unix)]
impl Inode {
    fn of(metadata: &std::fs::Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        Self {
            device: metadata.dev(),
            number: metadata.ino(),
            owner: (metadata.uid(), metadata.gid()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

// === impl MappedFile ===

impl MappedFile {
    /// The bytes of the file at `path`: mapped into memory, or read if they are few.
    ///
    /// # Errors
    ///
    /// [`FileError::Io`] if it cannot be opened or is no regular file.
    pub fn open(path: &Path) -> Result<Self, FileError> {
        Self::with_limit(path, READ_LIMIT)
    }

    /// Like [`open`](Self::open), but always makes a copy, which is erased when dropped.
    ///
    /// # Errors
    ///
    /// [`FileError::Io`] if it cannot be read; [`FileError::Changed`] if its size changes meanwhile.
    pub fn read(path: &Path) -> Result<Self, FileError> {
        Self::with_limit(path, u64::MAX)
    }

    fn with_limit(path: &Path, read_limit: u64) -> Result<Self, FileError> {
        let io = |source| FileError::io(path, source);
        let mut file = open_regular(path).map_err(io)?;
        let stamp = Stamp::of(&file).map_err(io)?;
        let bytes = if stamp.length <= read_limit {
            let size = usize::try_from(stamp.length)
                .map_err(|_| io(io::ErrorKind::FileTooLarge.into()))?;
            let mut bytes = Zeroizing::new(Vec::new());
            bytes
                .try_reserve_exact(size)
                .map_err(|_| io(io::ErrorKind::OutOfMemory.into()))?;
            // Within the capacity: a vector that grew would leave a copy that is not erased.
            Read::by_ref(&mut file)
                .take(stamp.length)
                .read_to_end(&mut bytes)
                .map_err(io)?;
            if bytes.len() as u64 != stamp.length {
                let path = path.to_owned();
                return Err(FileError::Changed { path });
            }
            Bytes::Read(bytes)
        } else {
            Bytes::Mapped(map(&file).map_err(io)?)
        };
        Ok(Self {
            path: path.to_owned(),
            file,
            stamp,
            bytes,
        })
    }

    /// Checks that neither size, time of modification, owner nor inode of the file changed since it was opened.
    /// A file that was renamed, linked or replaced meanwhile counts as changed too, since the inode's time shows
    /// only that something was done to it. Writes through another process's mapping may go unnoticed: the system
    /// updates the times of such a file with a delay.
    ///
    /// # Errors
    ///
    /// [`FileError::Changed`] if one of them changed, [`FileError::Io`] if they cannot be read.
    pub fn check_unchanged(&self) -> Result<(), FileError> {
        let now = Stamp::of(&self.file).map_err(|source| FileError::io(&self.path, source))?;
        if now == self.stamp {
            Ok(())
        } else {
            let path = self.path.clone();
            Err(FileError::Changed { path })
        }
    }

    /// Removes the pages of `part` of a mapping, which are not needed again, from this process's memory. Later
    /// reads of them come from the system's cache or the disk. Does nothing for bytes that are not of this
    /// mapping.
    pub fn release(&self, part: &[u8]) {
        #[cfg(unix)]
        if let Bytes::Mapped(map) = &self.bytes {
            let offset = (part.as_ptr() as usize).checked_sub(map.as_ptr() as usize);
            let inside = |offset: &usize| {
                offset
                    .checked_add(part.len())
                    .is_some_and(|end| end <= map.len())
            };
            if let Some(offset) = offset.filter(inside) {
                release(map, offset, part.len());
            }
        }
        #[cfg(not(unix))]
        let _ = part;
    }

    /// The path it was opened by.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

#[expect(unsafe_code, reason = "keys of gigabytes are mapped, not copied")]
fn map(file: &File) -> io::Result<Mmap> {
    // SAFETY: the mapping is shared with whoever else uses the file, and read-only here; the pages are
    // only ever read as plain bytes, each of whose values is valid. Whether another process changes or
    // shortens the file cannot be checked here: the type's documentation says what then happens (other bytes, which the parsers
    // treat as hostile in any case, or SIGBUS) and which files must therefore not be mapped.
    let map = unsafe { Mmap::map(file) }?;
    #[cfg(unix)]
    // Only advice: reading ahead saves time on a cold file, and nothing depends on it.
    let _ = map.advise(memmap2::Advice::WillNeed);
    Ok(map)
}

#[cfg(unix)]
#[expect(
    unsafe_code,
    reason = "pages of a mapping are given back before it ends"
)]
fn release(map: &Mmap, offset: usize, length: usize) {
    // SAFETY: nothing was ever written to the mapping, so that each of its pages is the file's: one that
    // is dropped comes back, when it is read, as it would have come the first time.
    let advised =
        unsafe { map.unchecked_advise_range(memmap2::UncheckedAdvice::DontNeed, offset, length) };
    // Only advice: where the system refuses it, the pages stay until the mapping ends.
    drop(advised);
}

impl Deref for MappedFile {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.bytes {
            Bytes::Mapped(map) => map,
            Bytes::Read(bytes) => bytes,
        }
    }
}

impl fmt::Debug for MappedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MappedFile")
            .field("path", &self.path)
            .field("length", &self.stamp.length)
            .field("mapped", &matches!(self.bytes, Bytes::Mapped(_)))
            .finish()
    }
}
