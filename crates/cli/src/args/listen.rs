//! A TCP port that a service listens on, and TLS there.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use proofmill_api::{ConnectionLimits, TcpOptions, TlsFiles};

/// Where a service listens beside its socket.
#[derive(Clone, Debug, Args)]
pub(crate) struct ListenArgs {
    /// A TCP port, too. Beyond loopback it needs a certificate and tokens.
    #[arg(long, value_name = "ADDRESS", help_heading = "Listening")]
    pub(crate) listen: Option<SocketAddr>,
    /// The certificate to show there (PEM).
    #[arg(long, value_name = "FILE", requires_all = ["tls_key", "listen"], help_heading = "Listening")]
    pub(crate) tls_certificate: Option<PathBuf>,
    /// The certificate's key (PEM); not for everybody to read.
    #[arg(
        long,
        value_name = "FILE",
        requires = "tls_certificate",
        help_heading = "Listening"
    )]
    pub(crate) tls_key: Option<PathBuf>,
}

// === impl ListenArgs ===

impl ListenArgs {
    /// As the service wants them, with its file of tokens.
    pub(crate) fn options(&self, tokens: Option<&PathBuf>) -> Option<TcpOptions> {
        let tls = self.tls_certificate.clone().zip(self.tls_key.clone());
        Some(TcpOptions {
            address: self.listen?,
            tls: tls.map(|(certificate, key)| TlsFiles { certificate, key }),
            tokens: tokens.cloned(),
            connections: ConnectionLimits::default(),
        })
    }
}
