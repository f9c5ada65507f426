//! Files that are read: opening them, and their bytes in memory.

use std::fmt;
use std::fs::{File, FileType, Metadata};
use std::io::{self, Read};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use memmap2::Mmap;
use zeroize::Zeroizing;

use super::FileError;

/// Files up to this size are read, not mapped: a copy costs less than a page fault each 4 KiB, and
/// is safe from changes.
const READ_LIMIT: u64 = 1 << 20;

/// A file's bytes, mapped or read.
///
/// A mapping shows what others do to the file. If another process overwrites it the bytes change
/// under the reader, and if it shortens it, touching a page beyond the new end ends this process
/// with `SIGBUS`; no program can rule that out for a mapping. So:
///
/// * Files are to be replaced by renaming another over them, as [`write_whole`](super::write_whole) does: the mapping
///   then keeps the old content.
/// * What others write in place, such as a witness, is read with [`read`](Self::read), which makes a
///   copy and notices a file that shrinks meanwhile.
/// * [`check_unchanged`](Self::check_unchanged) tells afterwards whether anybody touched the file: call
///   it before relying on what was read, such as remembering that a key was checked.
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

/// Attributes of a file that change when the file does. The time of modification alone can be set
/// back by whoever may write to the file; the time of the inode's change (ctime) cannot.
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

/// Opens a regular file to be read. A directory, a device, a socket or a pipe is refused with what it
/// is, and not waited for: to open a pipe that nobody writes to would wait for ever.
///
/// # Errors
///
/// Those of the file system; [`io::ErrorKind::InvalidInput`] if it is no regular file.
pub fn open_regular(path: &Path) -> io::Result<File> {
    // Looked at before it is opened too: to open a device may do something.
    check_regular(&std::fs::metadata(path)?)?;
    let mut options = File::options();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        // Another file may be there by now.
        let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
        options.custom_flags(flags.bits().cast_signed());
    }
    let file = options.open(path)?;
    check_regular(&file.metadata()?)?;
    Ok(file)
}

/// As [`open_regular`], but what this process was started with may be a pipe: `/dev/stdin`, or
/// `/dev/fd/63`, which a shell's `<(…)` is.
///
/// # Errors
///
/// Those of [`open_regular`].
pub fn open_regular_or_inherited(path: &Path) -> io::Result<File> {
    if is_inherited(path) {
        File::open(path)
    } else {
        open_regular(path)
    }
}

/// Whether a path names what this process was started with, by the number of its descriptor.
pub fn is_inherited(path: &Path) -> bool {
    let folders = ["/dev/fd", "/proc/self/fd"];
    path == Path::new("/dev/stdin") || folders.iter().any(|folder| path.starts_with(folder))
}

/// That a file is a regular one.
///
/// # Errors
///
/// [`io::ErrorKind::InvalidInput`] with what it is instead.
pub fn check_regular(metadata: &Metadata) -> io::Result<()> {
    if metadata.is_file() {
        return Ok(());
    }
    let what = kind(metadata.file_type());
    let why = format!("{what}, where a regular file is needed");
    Err(io::Error::new(io::ErrorKind::InvalidInput, why))
}

fn kind(found: FileType) -> &'static str {
    if found.is_dir() {
        return "a directory";
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        if found.is_fifo() {
            return "a pipe";
        }
        if found.is_socket() {
            return "a socket";
        }
    }
    "a device"
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

    /// As [`open`](Self::open), but always a copy, erased when dropped.
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

    /// That neither size, time of modification, owner nor inode of the file changed since it was opened.
    /// A file that was renamed, linked or replaced by another meanwhile counts as changed too, since the
    /// inode's time tells no more than that something was done to it. Writes by a process that had the
    /// file mapped and written before may go unnoticed: the system dates those when it pleases.
    ///
    /// # Errors
    ///
    /// [`FileError::Changed`] if one did, [`FileError::Io`] if that cannot be told.
    pub fn check_unchanged(&self) -> Result<(), FileError> {
        let now = Stamp::of(&self.file).map_err(|source| FileError::io(&self.path, source))?;
        if now == self.stamp {
            Ok(())
        } else {
            let path = self.path.clone();
            Err(FileError::Changed { path })
        }
    }

    /// Takes the pages of `part` of a mapping out of this process's memory: what was read and is not
    /// needed again. What is read of it all the same comes from the system's cache, or the disk. Does
    /// nothing with other bytes.
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
