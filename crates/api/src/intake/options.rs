//! Where messages are taken, and what has to be there for it.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::access::AccessError;
use crate::connections::ConnectionLimits;
use crate::port::{PortError, TlsFiles};

/// Where messages are taken, and from whom. Beyond loopback TLS and a token are needed.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where to listen; port 0 for any.
    pub address: SocketAddr,
    /// TLS, or none.
    pub tls: Option<TlsFiles>,
    /// A file with the tokens that producers show, and the queues that they may post to: on each line
    /// `TOKEN`, `CLIENT TOKEN` or `CLIENT TOKEN queues=NAME,NAME`. Without `queues` a client may post to
    /// the queues that no stage writes; with `queues=*` to all.
    pub tokens: Option<PathBuf>,
    /// How long a message may wait for room in its queue before its producer is told to ask again.
    pub patience: Duration,
    /// Whether a message whose blocks are finished, and which carries something else than they did, is
    /// refused (409, `ALREADY_EXISTS`) instead of being answered as a duplicate that is not the same.
    pub exact: bool,
    /// Connections at a time, and how long one is kept that asks nothing.
    pub connections: ConnectionLimits,
}

/// Why messages cannot be taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OptionsError {
    /// The port cannot be offered.
    #[error(transparent)]
    Port(#[from] PortError),
    /// The tokens cannot be used.
    #[error(transparent)]
    Access(#[from] AccessError),
}

// === impl Options ===

impl Options {
    /// How long a message may wait for room in its queue.
    pub const PATIENCE: Duration = Duration::from_secs(30);
}
