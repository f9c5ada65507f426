//! Settings of the host's side.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::tcp::Digests;

/// The place of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// An NVMe/TCP target, which the driver connects to by itself.
    Tcp(SocketAddr),
    /// The device file of the first namespace of a device that the kernel has, such as `/dev/nvme0n1`. Linux only.
    Passthrough(PathBuf),
}

/// Settings of a connection to a device.
#[derive(Clone, Debug)]
pub struct HostOptions {
    /// The device.
    pub address: Address,
    /// Name of the subsystem; `None` asks the discovery service at the address. Of a passthrough the kernel knows it.
    pub subsystem: Option<String>,
    /// Name of this host.
    pub host: String,
    /// Identifier of this host.
    pub host_id: [u8; 16],
    /// Digests to ask for.
    pub digests: Digests,
    /// Keep alive timeout. Half of it passes between two signs of life. The kernel keeps a passthrough's.
    pub keep_alive: Duration,
    /// Limit for a connection to be made.
    pub connect_timeout: Duration,
    /// Limit for a command that does not wait for a job.
    pub command_timeout: Duration,
    /// Limit that the kernel has for a command whose end a callback gets. After it the kernel resets the device, so it is
    /// longer than any job may take.
    pub wait_timeout: Duration,
    /// Entries of the I/O queue.
    pub queue_entries: u16,
}

impl HostOptions {
    /// The defaults: both digests, 30 s keep alive, 5 s to connect, 10 s for a command, 150 s for the kernel to wait for one,
    /// 64 entries.
    pub fn new(address: impl Into<Address>) -> Self {
        Self {
            address: address.into(),
            subsystem: None,
            host: "nqn.2026-01.org.proofmill:host".into(),
            host_id: *b"proofmill host 1",
            digests: Digests {
                header: true,
                data: true,
            },
            keep_alive: Duration::from_secs(30),
            connect_timeout: Duration::from_secs(5),
            command_timeout: Duration::from_secs(10),
            wait_timeout: Duration::from_secs(150),
            queue_entries: 64,
        }
    }
}

// === impl Address ===

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Self {
        Self::Tcp(address)
    }
}

impl From<PathBuf> for Address {
    fn from(path: PathBuf) -> Self {
        Self::Passthrough(path)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Passthrough(path) => path.display().fmt(f),
        }
    }
}
