//! Settings of the host's side.

use std::net::SocketAddr;
use std::time::Duration;

use crate::tcp::Digests;

/// Settings of a connection to a device.
#[derive(Clone, Debug)]
pub struct HostOptions {
    /// Address of the target.
    pub address: SocketAddr,
    /// Name of the subsystem; `None` asks the discovery service at the address.
    pub subsystem: Option<String>,
    /// Name of this host.
    pub host: String,
    /// Identifier of this host.
    pub host_id: [u8; 16],
    /// Digests to ask for.
    pub digests: Digests,
    /// Keep alive timeout. Half of it passes between two signs of life.
    pub keep_alive: Duration,
    /// Limit for a connection to be made.
    pub connect_timeout: Duration,
    /// Limit for a command that does not wait for a job.
    pub command_timeout: Duration,
    /// Entries of the I/O queue.
    pub queue_entries: u16,
}

impl HostOptions {
    /// The defaults: both digests, 30 s keep alive, 5 s to connect, 10 s for a command, 64 entries.
    pub fn new(address: SocketAddr) -> Self {
        Self {
            address,
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
            queue_entries: 64,
        }
    }
}
