//! Unix sockets in the file system, which only this user can connect to, and connections to them.

use std::ffi::OsStr;
use std::fs::{File, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tokio::net::{UnixListener, UnixStream};

/// Name of the control socket in a mill's state directory.
pub const SOCKET_NAME: &str = "control.sock";

/// Most bytes of a path that fit into a Unix socket's address on every system.
const ADDRESS_MAX: usize = 100;

/// The socket file of a listening process. Dropping this removes the file, unless another process has
/// replaced it.
pub(crate) struct SocketFile {
    path: PathBuf,
    device_and_inode: (u64, u64),
}

/// Path of the control socket of a state directory.
pub fn socket_path(state: &Path) -> PathBuf {
    state.join(SOCKET_NAME)
}

/// Listens on the socket `path`, and replaces one that an earlier process left.
///
/// The socket is made in a directory that no other user can enter, and moved to its place when its mode is
/// right. So no other user can connect at any moment, whatever the umask and the mode of the directory.
pub(crate) fn bind(path: &Path) -> io::Result<(UnixListener, SocketFile)> {
    let (directory, _) = split(path)?;
    let private = tempfile::Builder::new()
        .prefix(".s")
        .rand_bytes(4)
        .permissions(Permissions::from_mode(0o700))
        .tempdir_in(directory)?;
    let private_path = private.path().join("s");
    let listener = {
        let short_path = ShortPath::to(private.path(), OsStr::new("s"))?;
        UnixListener::bind(short_path.address())?
    };
    std::fs::set_permissions(&private_path, Permissions::from_mode(0o600))?;
    let metadata = std::fs::symlink_metadata(&private_path)?;
    std::fs::rename(&private_path, path)?;
    Ok((
        listener,
        SocketFile {
            path: path.to_owned(),
            device_and_inode: (metadata.dev(), metadata.ino()),
        },
    ))
}

/// Listens on the socket `path` like [`bind`]; `None` if another process listens there.
pub(crate) async fn bind_unless_taken(
    path: &Path,
) -> io::Result<Option<(UnixListener, SocketFile)>> {
    if connect(path).await?.is_some() {
        return Ok(None);
    }
    bind(path).map(Some)
}

/// Connects to the socket `path`; `None` if no process listens there.
///
/// # Errors
///
/// The socket belongs to another user, or may not be used.
pub(crate) async fn connect(path: &Path) -> io::Result<Option<UnixStream>> {
    let metadata = match std::fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => return Ok(None),
        Err(error) => return Err(error),
    };
    let own_uid = rustix::process::geteuid();
    if !own_uid.is_root() && metadata.uid() != own_uid.as_raw() {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!("it belongs to user {}, not to you", metadata.uid()),
        ));
    }
    let (directory, name) = split(path)?;
    let short_path = ShortPath::to(directory, name)?;
    match UnixStream::connect(short_path.address()).await {
        Ok(stream) => Ok(Some(stream)),
        Err(error) => match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => Ok(None),
            _ => Err(error),
        },
    }
}

/// A path's directory and file name.
fn split(path: &Path) -> io::Result<(&Path, &OsStr)> {
    let name = path.file_name().ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::InvalidInput,
            "the path does not end with a name",
        )
    })?;
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    Ok((directory, name))
}

/// A path to a file in a directory, short enough for a socket's address. If the directory's own path is too
/// long, the path leads through a file descriptor of the directory in `/proc/self/fd`.
struct ShortPath {
    address: PathBuf,
    _directory: Option<File>,
}

// === impl ShortPath ===

impl ShortPath {
    fn to(directory: &Path, name: &OsStr) -> io::Result<Self> {
        let address = directory.join(name);
        if address.as_os_str().len() <= ADDRESS_MAX {
            return Ok(Self {
                address,
                _directory: None,
            });
        }
        let open = File::open(directory)?;
        let descriptor_path = Path::new("/proc/self/fd").join(open.as_raw_fd().to_string());
        if !descriptor_path.exists() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("the path is longer than {ADDRESS_MAX} bytes; use a shorter one"),
            ));
        }
        Ok(Self {
            address: descriptor_path.join(name),
            _directory: Some(open),
        })
    }

    fn address(&self) -> &Path {
        &self.address
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let is_same_file = std::fs::symlink_metadata(&self.path)
            .is_ok_and(|found| (found.dev(), found.ino()) == self.device_and_inode);
        if is_same_file {
            // If it cannot be removed, the next process replaces it.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}
