//! Options of the intake.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::access::AccessError;
use crate::connections::ConnectionLimits;
use crate::port::{PortError, TlsFiles};

/// Options of the intake. Beyond loopback TLS and tokens are required.
#[derive(Clone, Debug)]
pub struct Options {
    /// The address to listen on; port 0 for any free port.
    pub address: SocketAddr,
    /// The certificate and key for TLS; none without TLS.
    pub tls: Option<TlsFiles>,
    /// A file with the tokens of producers, and the queues that they may post to. Each line is `TOKEN`,
    /// `CLIENT TOKEN` or `CLIENT TOKEN queues=NAME,NAME`. Without `queues` a client may post to the queues
    /// that no stage writes; with `queues=*` to all.
    pub tokens: Option<PathBuf>,
    /// Longest wait of a message for room in its queue. Then its producer is told to try again (default
    /// [`PATIENCE`](Self::PATIENCE)).
    pub patience: Duration,
    /// Whether a message for finished blocks whose content differs from theirs is refused (409,
    /// `ALREADY_EXISTS`). Otherwise it is answered as a duplicate with other content.
    pub exact: bool,
    /// Limits on connections, and the time for which an idle one is kept.
    pub connections: ConnectionLimits,
}

/// The reason that the intake cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OptionsError {
    /// The port cannot be offered.
    #[error(transparent)]
    Port(#[from] PortError),
    /// The file of tokens cannot be used.
    #[error(transparent)]
    Access(#[from] AccessError),
}

// === impl Options ===

impl Options {
    /// Default of `patience`.
    pub const PATIENCE: Duration = Duration::from_secs(30);
}
