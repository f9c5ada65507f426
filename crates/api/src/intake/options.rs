//! Where messages are taken, and what has to be there for it.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::access::AccessError;
use crate::port::{PortError, TlsFiles};

/// Where messages are taken, and from whom. Beyond loopback TLS and a token are needed.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where to listen; port 0 for any.
    pub address: SocketAddr,
    /// TLS, or none.
    pub tls: Option<TlsFiles>,
    /// A file with the token that producers show.
    pub token: Option<PathBuf>,
    /// How long a message may wait for room in its queue before its producer is told to ask again.
    pub patience: Duration,
}

/// Why messages cannot be taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OptionsError {
    /// The port cannot be offered.
    #[error(transparent)]
    Port(#[from] PortError),
    /// The token cannot be used.
    #[error(transparent)]
    Access(#[from] AccessError),
}

// === impl Options ===

impl Options {
    /// How long a message may wait for room in its queue.
    pub const PATIENCE: Duration = Duration::from_secs(30);
}
