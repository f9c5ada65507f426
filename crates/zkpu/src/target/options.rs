//! Settings and limits of a target.

use std::net::SocketAddr;
use std::time::Duration;

/// Address and limits of a target.
#[derive(Clone, Debug)]
pub struct TargetOptions {
    /// Address; port 0 takes a free one. NVMe/TCP's is 4420.
    pub address: SocketAddr,
    /// Whether an address other than loopback may be listened on. There is no authentication and no encryption: whoever
    /// reaches the port can use the device.
    pub allow_remote: bool,
    /// Most connections at once, discovery included.
    pub connections_max: usize,
    /// Time for a new connection to initialize and to send Connect.
    pub connect_timeout: Duration,
    /// Time for the peer to take what is sent to it.
    pub write_timeout: Duration,
}

impl TargetOptions {
    /// A target on an address with the default limits: 16 connections, 10 s to connect, 30 s to take an answer.
    pub fn new(address: SocketAddr) -> Self {
        Self {
            address,
            allow_remote: false,
            connections_max: 16,
            connect_timeout: Duration::from_secs(10),
            write_timeout: Duration::from_secs(30),
        }
    }
}
