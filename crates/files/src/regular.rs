//! Opening regular files: no directory, device, socket or pipe.

use std::fs::{File, FileType, Metadata};
use std::io;
use std::path::Path;

/// Opens a regular file for reading. A directory, a device, a socket or a pipe is refused, with its type in
/// the error. Opening does not block, as it would for ever on a pipe without a writer.
///
/// # Errors
///
/// Those of the file system; [`io::ErrorKind::InvalidInput`] if it is not a regular file.
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

/// Like [`open_regular`], but a descriptor that this process inherited may be a pipe: `/dev/stdin`, or
/// `/dev/fd/63` from a shell's `<(…)`.
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

/// Whether a path names an inherited descriptor of this process by its number.
pub fn is_inherited(path: &Path) -> bool {
    let folders = ["/dev/fd", "/proc/self/fd"];
    path == Path::new("/dev/stdin") || folders.iter().any(|folder| path.starts_with(folder))
}

/// Checks that a file is a regular file.
///
/// # Errors
///
/// [`io::ErrorKind::InvalidInput`], with the file's type.
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
