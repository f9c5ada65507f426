//! Queues of a device that the kernel's NVMe driver has: commands go through its device files.
//!
//! The kernel has connected the device and keeps it alive; it also keeps the asynchronous events, so that the driver learns of
//! the end of a job by the command Wait, or by the job table.

mod ioctl;

use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::host::error::HostError;
use crate::host::initiator::{CommandData, Response};
use crate::host::options::HostOptions;
use crate::host::passthrough::ioctl::Kind;
use crate::host::queue::{Callback, Link, Queue, succeeded};
use crate::nvme::Command;

/// Most bytes of data of a command: the kernel refuses more than the device's limit, or than it has segments for.
pub(super) const TRANSFER_BYTES_MAX: u32 = 128 << 10;
/// Most commands under way: each has a thread.
const COMMANDS_MAX: usize = 64;
/// Type of a status that is the kernel's own: the path to the device failed.
const PATH_RELATED: u16 = 3;
/// Namespaces of the device's memory and of its program (`docs/zkpu.md`).
const MEMORY: u32 = 2;
const PROGRAM: u32 = 3;

/// The queues of a device.
#[derive(Debug)]
pub(super) struct Passthrough {
    pub(super) admin: PassthroughQueue,
    pub(super) io: PassthroughQueue,
    /// Whether there are device files for the compute personality's namespaces.
    pub(super) has_compute: bool,
}

/// A queue.
#[derive(Debug)]
pub(super) struct PassthroughQueue {
    kind: Kind,
    /// Limit for a command whose end is not waited for by a limit of its own.
    wait_timeout: Duration,
    link: Arc<Files>,
}

/// The device files, until an error ends their use.
#[derive(Debug)]
struct Files {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// The files, or the error that ended their use.
    open: Result<Arc<Open>, HostError>,
    under_way: usize,
}

/// Device files by namespace.
#[derive(Debug)]
struct Open {
    /// Namespace 1; it takes admin commands as well.
    blocks: File,
    memory: Option<File>,
    program: Option<File>,
}

/// A device file's name: `nvme0n1` is namespace 1 of subsystem 0.
fn numbers(path: &Path) -> Option<(u32, u32)> {
    let name = path.file_name()?.to_str()?;
    let (subsystem, namespace) = name.strip_prefix("nvme")?.split_once('n')?;
    Some((subsystem.parse().ok()?, namespace.parse().ok()?))
}

/// Opens the device of a block device file, such as `/dev/nvme0n1`, for nobody else.
///
/// # Errors
///
/// [`HostError::Connect`] for a file that cannot be opened, [`HostError::Unusable`] for one of another kind.
pub(super) fn open(path: &Path, options: &HostOptions) -> Result<Passthrough, HostError> {
    let unusable = |why: String| HostError::Unusable(format!("{}: {why}", path.display()));
    let (subsystem, _) = numbers(path).ok_or_else(|| {
        unusable("expected a namespace's device file, such as /dev/nvme0n1".into())
    })?;
    let mut open = File::options();
    open.read(true)
        .write(true)
        .custom_flags(OFlags::EXCL.bits() as i32);
    let blocks = open.open(path).map_err(|error| HostError::Connect {
        address: options.address.clone(),
        reason: match error.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::BUSY) => "it is mounted, or another program uses it".into(),
            Some(Errno::ACCESS | Errno::PERM) => format!("{error}: run as root"),
            _ => error.to_string(),
        },
    })?;
    match ioctl::namespace(&blocks) {
        Ok(1) => {}
        Ok(other) => {
            return Err(unusable(format!(
                "namespace {other}: a ZKPU's first is expected"
            )));
        }
        Err(error) => return Err(unusable(format!("it is no NVMe namespace: {error}"))),
    }
    // Linux gives namespaces of command sets that it does not know a character device only.
    let generic = |nsid: u32| {
        let files = (1..=8).filter_map(|at| {
            let path = path.with_file_name(format!("ng{subsystem}n{at}"));
            File::options().read(true).write(true).open(path).ok()
        });
        files
            .into_iter()
            .find(|file| ioctl::namespace(file) == Ok(nsid))
    };
    let (memory, program) = (generic(MEMORY), generic(PROGRAM));
    let has_compute = memory.is_some() && program.is_some();
    let link = Arc::new(Files {
        state: Mutex::new(State {
            open: Ok(Arc::new(Open {
                blocks,
                memory,
                program,
            })),
            under_way: 0,
        }),
    });
    let queue = |kind| PassthroughQueue {
        kind,
        wait_timeout: options.wait_timeout,
        link: Arc::clone(&link),
    };
    Ok(Passthrough {
        admin: queue(Kind::Admin),
        io: queue(Kind::Io),
        has_compute,
    })
}

// === impl PassthroughQueue ===

impl Queue for PassthroughQueue {
    fn submit(
        &self,
        command: Command,
        data: CommandData,
        callback: Callback,
    ) -> Result<(), HostError> {
        self.link.enter()?;
        let (link, kind, timeout) = (Arc::clone(&self.link), self.kind, self.wait_timeout);
        let thread = std::thread::Builder::new().name("zkpu-command".into());
        let started = thread.spawn(move || {
            let response = link.execute(kind, command, data, timeout);
            link.leave();
            callback(response);
        });
        started.map(drop).map_err(|error| {
            self.link.leave();
            HostError::Unusable(format!("a thread does not start: {error}"))
        })
    }

    fn link(&self) -> Arc<dyn Link> {
        self.link.clone()
    }

    /// The kernel's driver refuses namespaces that it does not know and data longer than it maps, and has pointers of its own
    /// in place of the metadata's.
    fn passes_on(&self, command: &Command, bytes: u32) -> bool {
        self.kind == Kind::Admin
            || ((1..=PROGRAM).contains(&command.nsid)
                && bytes <= TRANSFER_BYTES_MAX
                && command.metadata == 0)
    }

    /// Executes the command on this thread; the kernel keeps the limit.
    fn call(
        &self,
        name: &'static str,
        command: Command,
        data: CommandData,
        timeout: Duration,
    ) -> Result<Response, HostError> {
        let response = self.link.execute(self.kind, command, data, timeout)?;
        succeeded(name, response)
    }
}

// === impl Files ===

impl Files {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a place for a command.
    fn enter(&self) -> Result<(), HostError> {
        let mut state = self.lock();
        if let Err(failure) = &state.open {
            return Err(failure.clone());
        }
        if state.under_way >= COMMANDS_MAX {
            return Err(HostError::QueueFull);
        }
        state.under_way += 1;
        Ok(())
    }

    fn leave(&self) {
        self.lock().under_way -= 1;
    }

    fn execute(
        &self,
        kind: Kind,
        command: Command,
        data: CommandData,
        timeout: Duration,
    ) -> Result<Response, HostError> {
        let open = self.lock().open.clone()?;
        let file = match kind {
            Kind::Admin => &open.blocks,
            Kind::Io => open.namespace(command.nsid)?,
        };
        let (mut bytes, is_to_host) = match data {
            CommandData::None => (Vec::new(), false),
            CommandData::ToController(bytes) => (bytes, false),
            CommandData::ToHost(length) => (vec![0; length as usize], true),
        };
        let completion = match ioctl::execute(file, kind, &command, &mut bytes, timeout) {
            Ok(completion) if completion.status.kind() == PATH_RELATED => {
                let error = HostError::Lost(format!("the kernel says {}", completion.status));
                self.end(error.clone());
                return Err(error);
            }
            Ok(completion) => completion,
            Err(errno) => return Err(self.refused(errno)),
        };
        Ok(Response {
            completion,
            data: if is_to_host { bytes } else { Vec::new() },
        })
    }

    /// The error of a command that the kernel did not carry out.
    fn refused(&self, errno: Errno) -> HostError {
        let error = io::Error::from(errno);
        match errno {
            Errno::ACCESS | Errno::PERM => HostError::Unusable(format!(
                "the kernel refuses a command of this user ({error}): CAP_SYS_ADMIN is needed"
            )),
            Errno::INVAL | Errno::FAULT | Errno::NOTTY | Errno::OPNOTSUPP => {
                HostError::Unusable(format!("the kernel does not pass a command on: {error}"))
            }
            _ => {
                let lost = HostError::Lost(error.to_string());
                self.end(lost.clone());
                lost
            }
        }
    }
}

impl Link for Files {
    /// Commands under way end by themselves: the kernel has them.
    fn end(&self, error: HostError) {
        let mut state = self.lock();
        // The last command under way closes the files.
        if state.open.is_ok() {
            state.open = Err(error);
        }
    }

    fn failure(&self) -> Option<HostError> {
        self.lock().open.as_ref().err().cloned()
    }
}

impl Open {
    fn namespace(&self, nsid: u32) -> Result<&File, HostError> {
        let file = match nsid {
            MEMORY => self.memory.as_ref(),
            PROGRAM => self.program.as_ref(),
            // The kernel refuses a namespace that the file is not of.
            _ => Some(&self.blocks),
        };
        file.ok_or_else(|| {
            HostError::Unusable(format!("the kernel has no device file of namespace {nsid}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_files_are_known_by_their_names() {
        let numbers = |text: &str| numbers(Path::new(text));
        assert_eq!(numbers("/dev/nvme0n1"), Some((0, 1)));
        assert_eq!(numbers("/dev/nvme12n3"), Some((12, 3)));
        for other in [
            "/dev/nvme0",
            "/dev/nvme0n1p1",
            "/dev/ng0n1",
            "/dev/sda",
            "/dev/nvme0c1n1",
            "/",
        ] {
            assert_eq!(numbers(other), None, "{other}");
        }
    }

    #[test]
    fn what_is_no_namespace_is_refused_with_the_reason() {
        let folder = std::env::temp_dir().join(format!("proofmill-zkpu-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let options = |path: &Path| HostOptions::new(path.to_owned());
        let refuse = |path: &Path| open(path, &options(path)).unwrap_err().to_string();
        let plain = folder.join("nvme9n1");
        let missing = refuse(&plain);
        assert!(
            missing.contains("nvme9n1") && missing.contains("No such file"),
            "{missing}"
        );
        std::fs::write(&plain, "x").unwrap();
        let refused = refuse(&plain);
        assert!(refused.contains("it is no NVMe namespace"), "{refused}");
        let partition = refuse(&folder.join("nvme9n1p1"));
        assert!(partition.contains("such as /dev/nvme0n1"), "{partition}");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
